"""Functions with resources that are opened and closed, in chains."""

from pyflink.common import Types
from pyflink.datastream import FilterFunction, FlatMapFunction, KeySelector, MapFunction, StreamExecutionEnvironment


class Base:
    factor = None

    def open(self, runtime_context):
        self.factor = 2

    def close(self):
        self.factor = None


class Twice(Base, MapFunction):
    def map(self, value):
        return value * self.factor


class Both(Base, FlatMapFunction):
    def flat_map(self, value):
        return [value, value + self.factor]


class Divisible(Base, FilterFunction):
    def filter(self, value):
        return value % self.factor == 0


class Parity(Base, KeySelector):
    def get_key(self, value):
        return value % self.factor


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], Types.INT())
    numbers.map(Twice(), Types.INT()).flat_map(Both(), Types.INT()).filter(Divisible()).print("chain")
    numbers.key_by(Parity()).sum().print("keyed")
    env.execute()


if __name__ == "__main__":
    main()
