"""The same program as a batch: reduce emits one result per key."""

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)
    words = env.from_collection(["to", "be", "or", "not", "to", "be"], Types.STRING())
    counts = (
        words.map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.print()
    counts.map(lambda pair: pair[1], Types.INT()).key_by(lambda n: 0).sum().print("total")
    env.execute()


if __name__ == "__main__":
    main()
