"""Watermarks: idleness, out of order records, timestamps of sources, and what functions see of them."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Tens(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 10


class Times(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield f"{value} {ctx.timestamp()}"


class AtTheEnd(KeyedProcessFunction):
    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)
        if value % 2:
            ctx.timer_service().delete_event_time_timer(ctx.timestamp() + 5)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        has_passed = ctx.timer_service().current_watermark() >= timestamp
        yield f"{ctx.get_current_key()} at {timestamp} {ctx.timestamp()} {has_passed}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_source(NumberSequenceSource(1, 4), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    strategies = {
        "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
        "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)),
        "idle": WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_minutes(1)),
        "aligned": WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
            "group", Duration.of_seconds(20), Duration.of_seconds(1)
        ),
        "none": WatermarkStrategy.no_watermarks(),
    }
    for name, strategy in strategies.items():
        stamped = numbers.map(lambda x: x, Types.LONG()).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(Tens())
        )
        stamped.process(Times(), Types.STRING()).print(name)
        keyed = stamped.key_by(lambda x: x % 3)
        keyed.process(AtTheEnd(), Types.STRING()).print(f"{name} timers")
    env.execute()


if __name__ == "__main__":
    main()
