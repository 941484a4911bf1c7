"""State with a time-to-live that does not end, in all its settings."""

from pyflink.common import Time, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor


class Counter(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .cleanup_incrementally(10, True)
            .build()
        )
        value, items, counts = (
            ValueStateDescriptor("count", Types.INT()),
            ListStateDescriptor("items", Types.STRING()),
            MapStateDescriptor("counts", Types.STRING(), Types.INT()),
        )
        for descriptor in (value, items, counts):
            descriptor.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(value)
        self.items = runtime_context.get_list_state(items)
        self.counts = runtime_context.get_map_state(counts)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.items.add(value)
        self.counts.put(value, len(value))
        yield f"{self.count.value()} {list(self.items)} {sorted(self.counts.items())}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["ab", "ac", "b", "ad", "ab"], Types.STRING())
    words.key_by(lambda word: word[0]).process(Counter(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
