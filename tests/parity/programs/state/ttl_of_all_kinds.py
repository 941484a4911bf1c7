"""Time-to-live of reducing and aggregating state, from its configuration; nothing expires."""

from pyflink.common import Time, Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor, StateTtlConfig


class Longest(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return max(value, accumulator, key=len)

    def get_result(self, accumulator):
        return accumulator.upper()

    def merge(self, a, b):
        return max(a, b, key=len)


class Words(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        ttl = (
            StateTtlConfig.new_builder(Time.days(1))
            .update_ttl_on_create_and_write()
            .return_expired_if_not_cleaned_up()
            .use_processing_time()
            .cleanup_full_snapshot()
            .cleanup_in_rocksdb_compact_filter(1000)
            .build()
        )
        lengths = ReducingStateDescriptor("lengths", lambda a, b: a + b, Types.INT())
        longest = AggregatingStateDescriptor("longest", Longest(), Types.STRING())
        lengths.enable_time_to_live(ttl)
        longest.enable_time_to_live(ttl)
        self.lengths = runtime_context.get_reducing_state(lengths)
        self.longest = runtime_context.get_aggregating_state(longest)

    def process_element(self, value, ctx):
        self.lengths.add(len(value))
        self.longest.add(value)
        yield f"{value} {self.lengths.get()} {self.longest.get()}"


def main():
    ttl = StateTtlConfig.new_builder(Time.minutes(5)).disable_cleanup_in_background().build()
    print(ttl.is_enabled(), ttl.get_ttl() == Time.minutes(5), ttl.get_update_type().name)
    print(ttl.get_state_visibility().name, ttl.get_ttl_time_characteristic().name)
    strategies = ttl.get_cleanup_strategies()
    print(strategies.is_cleanup_in_background(), strategies.in_full_snapshot())
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["apple", "avocado", "bean", "beet", "aubergine"], Types.STRING())
    words.key_by(lambda word: word[0]).process(Words(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
