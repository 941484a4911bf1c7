"""The assigners of count windows used with window()."""

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountSlidingWindowAssigner, CountTumblingWindowAssigner


class Product(AggregateFunction):
    def create_accumulator(self):
        return 1

    def add(self, value, accumulator):
        return accumulator * value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a * b


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    keyed = env.from_collection([1, 2, 3, 4, 5, 6, 7], Types.INT()).key_by(lambda x: "k")
    keyed.window(CountTumblingWindowAssigner.of(2)).aggregate(Product(), output_type=Types.LONG()).print("tumbling")
    keyed.window(CountSlidingWindowAssigner.of(4, 2)).aggregate(Product(), output_type=Types.LONG()).print("sliding")
    env.execute()


if __name__ == "__main__":
    main()
