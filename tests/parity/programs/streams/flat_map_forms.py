"""flat_map with generators, lists, empty results and a FlatMapFunction."""

from pyflink.common import Types
from pyflink.datastream import FlatMapFunction, StreamExecutionEnvironment


class Repeat(FlatMapFunction):
    def flat_map(self, value):
        for _ in range(value):
            yield value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([0, 1, 2, 3], type_info=Types.INT())
    numbers.flat_map(Repeat(), output_type=Types.INT()).print("repeat")
    numbers.flat_map(lambda x: [x, -x]).print("list")
    numbers.flat_map(lambda x: range(x), output_type=Types.LONG()).print("range")
    numbers.flat_map(lambda x: "ab" if x == 1 else ()).print("text")
    env.execute()


if __name__ == "__main__":
    main()
