"""key_type: keys are converted to the declared type before they are compared."""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{ctx.get_current_key()!r} {self.count.value()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 1.0, True, 1.7, 2, 2.0])
    for name, key_type in {
        "int": Types.INT(),
        "long": Types.LONG(),
        "double": Types.DOUBLE(),
        "float": Types.FLOAT(),
        "boolean": Types.BOOLEAN(),
    }.items():
        numbers.key_by(lambda key: key, key_type=key_type).process(Count(), Types.STRING()).print(name)
    text = numbers.map(lambda x: x * 0.1)
    text.key_by(lambda x: x, Types.FLOAT()).process(Count(), Types.STRING()).print("32 bits")
    named = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    numbers.key_by(lambda x: Row(int(x), "k"), named).process(Count(), Types.STRING()).print("row")
    numbers.key_by(lambda x: (x, "k"), Types.TUPLE([Types.INT(), Types.STRING()])).process(
        Count(), Types.STRING()
    ).print("tuple")
    env.execute()


if __name__ == "__main__":
    main()
