"""Rows with names in windows, reduced and aggregated to rows."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

READING = Types.ROW_NAMED(["sensor", "time", "value"], [Types.STRING(), Types.LONG(), Types.FLOAT()])
READINGS = [Row("x", 1, 1.1), Row("x", 2, 2.2), Row("y", 3, 0.1), Row("x", 14, 3.3)]


class Time1(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.time


class Extent(AggregateFunction):
    def create_accumulator(self):
        return Row(None, 0)

    def add(self, value, accumulator):
        return Row(value.sensor, accumulator[1] + 1)

    def get_result(self, accumulator):
        return Row(sensor=accumulator[0], count=accumulator[1])

    def merge(self, a, b):
        return Row(a[0], a[1] + b[1])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Time1())
    readings = env.from_collection(READINGS, READING).assign_timestamps_and_watermarks(strategy)
    windows = readings.key_by(lambda row: row.sensor, Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    windows.reduce(lambda a, b: Row(a.sensor, b.time, a.value + b.value)).print("reduce")
    windows.aggregate(Extent(), output_type=Types.ROW_NAMED(["sensor", "count"], [Types.STRING(), Types.LONG()])).print(
        "aggregate"
    )
    env.execute()


if __name__ == "__main__":
    main()
