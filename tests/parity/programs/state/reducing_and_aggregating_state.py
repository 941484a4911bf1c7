"""ReducingState and AggregatingState."""

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Statistics(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx):
        if value < 0:
            self.total.clear()
            self.mean.clear()
            yield "cleared", self.total.get(), 0.0
        else:
            self.total.add(value)
            self.mean.add(value)
            yield "now", self.total.get(), self.mean.get()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([1, 2, 5, -1, 10, 4, -3, 7]).key_by(lambda x: x % 2).process(Statistics()).print()
    env.execute()


if __name__ == "__main__":
    main()
