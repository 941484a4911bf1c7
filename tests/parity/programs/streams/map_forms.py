"""map with a lambda, a function, a MapFunction and a callable object."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class AddOffset(MapFunction):
    def __init__(self, offset):
        self.offset = offset
        self.opened = 0

    def open(self, runtime_context: RuntimeContext):
        self.opened += 1

    def map(self, value):
        return value + self.offset * self.opened


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, value):
        return value * self.factor


def square(value):
    return value * value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    numbers.map(lambda x: x + 0.5).print("lambda")
    numbers.map(square, output_type=Types.LONG()).print("function")
    numbers.map(AddOffset(10), output_type=Types.INT()).print("class")
    numbers.map(Times(3)).print("callable")
    numbers.map(str.__class__).print("type")
    env.execute()


if __name__ == "__main__":
    main()
