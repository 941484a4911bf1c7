"""ValueState with None, updates and clear."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Deduplicate(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        last = self.last.value()
        if value[1] == 0:
            self.last.clear()
        elif last != value[1]:
            self.last.update(value[1])
        yield ctx.get_current_key(), last, value[1], self.last.value()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    changes = env.from_collection(
        [("a", 1), ("a", 1), ("b", 2), ("a", 0), ("a", 3), ("b", 2), ("b", 5)],
        Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    changes.key_by(lambda change: change[0], key_type=Types.STRING()).process(Deduplicate()).print()
    env.execute()


if __name__ == "__main__":
    main()
