"""State access: a mean of every three values of a key, a flag, the values seen, and a count per kind."""

from pyflink.common import Types
from pyflink.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.functions import AggregateFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)


class Highest(AggregateFunction):
    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value if accumulator is None else max(value, accumulator)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return max(acc_a, acc_b)


class MeanOfThree(FlatMapFunction):
    def __init__(self):
        self.sum = None
        self.seen = None
        self.kinds = None
        self.total = None
        self.highest = None

    def open(self, runtime_context: RuntimeContext):
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", pair))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.kinds = runtime_context.get_map_state(MapStateDescriptor("kinds", Types.STRING(), Types.INT()))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda one, other: one + other, Types.LONG())
        )
        self.highest = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("highest", Highest(), Types.LONG())
        )

    def flat_map(self, value):
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.seen.add(value[1])
        self.total.add(value[1])
        self.highest.add(value[1])
        kind = "odd" if value[1] % 2 else "even"
        self.kinds.put(kind, (self.kinds.get(kind) or 0) + 1)
        if count < 3:
            self.sum.update((count, total))
            return
        self.sum.clear()
        yield (
            value[0],
            total // count,
            sorted(self.seen),
            dict(self.kinds.items()),
            self.total.get(),
            self.highest.get(),
        )
        self.seen.update([value[1]])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    values = [(1, 3), (1, 5), (2, 8), (1, 7), (1, 4), (2, 4), (1, 2), (2, 0), (1, 9), (2, -7), (2, 1), (3, 1), (2, 2)]
    stream = env.from_collection(values, Types.TUPLE([Types.INT(), Types.LONG()]))
    stream.key_by(lambda pair: pair[0]).flat_map(MeanOfThree()).map(str, Types.STRING()).map(
        lambda text: text.replace("'", '"'), Types.STRING()
    ).set_parallelism(1).print().set_parallelism(1)
    env.execute()


if __name__ == "__main__":
    main()
