"""Windows with an offset."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{context.window()} {list(elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    times = env.from_collection([0, 3, 7, 12, 18], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    keyed = times.key_by(lambda x: 0)
    keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3))).process(
        Show(), Types.STRING()
    ).print("tumbling")
    keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5), Time.milliseconds(1))).process(
        Show(), Types.STRING()
    ).print("sliding")
    env.execute()


if __name__ == "__main__":
    main()
