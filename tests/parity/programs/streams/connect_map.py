"""connect with CoMapFunction and CoFlatMapFunction, whose None and empty results are dropped."""

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, StreamExecutionEnvironment


class Describe(CoMapFunction):
    def map1(self, value):
        return f"number {value}" if value != 2 else None

    def map2(self, value):
        return f"word {value}"


class Expand(CoFlatMapFunction):
    def flat_map1(self, value):
        for i in range(value):
            yield str(i)

    def flat_map2(self, value):
        return value.split() if value != "skip" else None


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], Types.INT())
    words = env.from_collection(["a b", "skip", "c"], Types.STRING())
    connected = numbers.connect(words)
    connected.map(Describe()).print("map")
    connected.flat_map(Expand(), output_type=Types.STRING()).print("flat_map")
    env.execute()


if __name__ == "__main__":
    main()
