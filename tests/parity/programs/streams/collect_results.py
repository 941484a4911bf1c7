"""execute_and_collect: iteration, limit, typed and untyped values, order of one subtask."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([3, 1, 2], Types.INT())
    with numbers.map(lambda x: x * 2, Types.INT()).execute_and_collect() as results:
        print("typed", list(results))
    results = numbers.map(lambda x: {"x": x}).execute_and_collect("untyped")
    print("untyped", next(results), next(results))
    results.close()
    print("limit", numbers.execute_and_collect(limit=2))
    print("named", numbers.map(lambda x: -x, Types.LONG()).execute_and_collect("job", 10))
    rows = numbers.map(lambda x: Row(x, None), Types.ROW([Types.INT(), Types.STRING()]))
    with rows.execute_and_collect() as results:
        for row in results:
            print("row", row, row[0], row[1])
    pairs = numbers.map(lambda x: (x, str(x)), Types.TUPLE([Types.INT(), Types.STRING()]))
    with pairs.execute_and_collect() as results:
        for number, text in results:
            print("pair", number, text)
    with numbers.key_by(lambda x: x % 2, Types.INT()).execute_and_collect() as results:
        for row in results:
            print("keyed", row[0], row[1])


if __name__ == "__main__":
    main()
