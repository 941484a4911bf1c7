"""Keyed state in map, flat_map and filter functions of a keyed stream."""

from pyflink.common import Types
from pyflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor


class Number(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return value[0], count


class Average(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("average", Types.PICKLED_BYTE_ARRAY())
        self.sum = runtime_context.get_state(descriptor)

    def flat_map(self, value):
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        if count == 2:
            self.sum.clear()
            yield value[0], total / count
        else:
            self.sum.update((count, total))


class New(FilterFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def filter(self, value):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pairs = env.from_collection(
        [(1, 3), (1, 5), (2, 7), (1, 4), (2, 2), (1, 6)], Types.TUPLE([Types.LONG(), Types.LONG()])
    )
    keyed = pairs.key_by(lambda pair: pair[0])
    keyed.map(Number(), Types.TUPLE([Types.LONG(), Types.LONG()])).print("map")
    keyed.flat_map(Average()).print("flat_map")
    keyed.filter(New()).print("filter")
    env.execute()


if __name__ == "__main__":
    main()
