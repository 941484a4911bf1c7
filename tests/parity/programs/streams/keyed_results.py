"""execute_and_collect: of keyed streams, with a limit, closed early, typed and not."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
    with pairs.key_by(lambda pair: pair[0], Types.STRING()).execute_and_collect() as results:
        for result in results:
            print(type(result).__name__, result)
    with pairs.key_by(lambda pair: pair[1], Types.INT()).sum(1).execute_and_collect("sums") as results:
        print(sorted(results))
    print(pairs.execute_and_collect(limit=2))
    results = pairs.map(lambda pair: Row(name=pair[0], size=pair[1])).execute_and_collect()
    print(next(results))
    results.close()
    row = Types.ROW_NAMED(["name", "size"], [Types.STRING(), Types.FLOAT()])
    with pairs.map(lambda pair: Row(pair[0], pair[1] / 10), row).execute_and_collect() as results:
        print([result.as_dict() for result in results])
    with pairs.map(lambda pair: {pair[0]: [pair[1]]}).execute_and_collect() as results:
        print(list(results))
    kinds = [
        (Types.LIST(Types.LONG()), lambda pair: [pair[1]] * 2),
        (Types.MAP(Types.STRING(), Types.INT()), lambda pair: {pair[0]: pair[1]}),
        (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), lambda pair: [pair[1] / 3]),
        (Types.BASIC_ARRAY(Types.STRING()), lambda pair: [pair[0], None]),
        (Types.PICKLED_BYTE_ARRAY(), lambda pair: {pair}),
        (Types.BOOLEAN(), lambda pair: pair[1] > 1),
    ]
    for type_info, function in kinds:
        with pairs.map(function, type_info).execute_and_collect() as results:
            print(list(results))


if __name__ == "__main__":
    main()
