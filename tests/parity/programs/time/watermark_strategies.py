"""Strategies for watermarks: monotonous, bounded out of orderness, idleness, none."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{context.window().start} {sorted(elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategies = {
        "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
        "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)),
        "idle": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_idleness(
            Duration.of_minutes(1)
        ),
        "none": WatermarkStrategy.no_watermarks(),
    }
    times = env.from_collection([3, 1, 12, 5, 25], Types.LONG())
    for name, strategy in strategies.items():
        stamped = times.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Millis()))
        stamped.key_by(lambda x: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).process(
            Show(), Types.STRING()
        ).print(name)
    env.execute()


if __name__ == "__main__":
    main()
