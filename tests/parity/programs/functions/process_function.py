"""ProcessFunction: several results, none, and the context."""

from pyflink.common import Types
from pyflink.datastream import ProcessFunction, RuntimeContext, StreamExecutionEnvironment


class Explode(ProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = 0

    def process_element(self, value, ctx: ProcessFunction.Context):
        self.seen += 1
        if value % 2:
            yield value
            yield value * 10
        elif value == 4:
            return
        else:
            yield from ()

    def close(self):
        self.seen = 0


class Silent(ProcessFunction):
    def process_element(self, value, ctx):
        return None


class AsList(ProcessFunction):
    def process_element(self, value, ctx):
        return [value, value]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    numbers.process(Explode(), output_type=Types.INT()).print("explode")
    numbers.process(AsList(), output_type=Types.INT()).print("list")
    env.execute()


if __name__ == "__main__":
    main()
