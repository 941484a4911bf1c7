"""The word count of the documentation: flat_map, map, key_by, reduce."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

LINES = ["To be, or not to be,--that is the question:--", "Whether 'tis nobler in the mind to suffer", "", "be be"]


def split(line):
    yield from line.lower().replace(",", " ").split()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    counts = (
        env.from_collection(LINES)
        .flat_map(split)
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.print()
    env.execute("word count")


if __name__ == "__main__":
    main()
