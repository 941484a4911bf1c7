"""filter with truthy results and a FilterFunction."""

from pyflink.common import Types
from pyflink.datastream import FilterFunction, StreamExecutionEnvironment


class Every(FilterFunction):
    def __init__(self, n):
        self.n = n
        self.seen = 0

    def filter(self, value):
        self.seen += 1
        return self.seen % self.n == 0


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["", "a", "bb", "ccc", "dddd"], type_info=Types.STRING())
    words.filter(lambda word: word).print("truthy")
    words.filter(lambda word: len(word) % 2 == 0).print("even")
    words.filter(Every(2)).print("every")
    env.execute()


if __name__ == "__main__":
    main()
