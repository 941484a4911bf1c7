"""Timestamps that functions see, and how they pass through operators."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


class Show(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield f"{value} {ctx.timestamp()}"


class Later(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return record_timestamp + 1


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    stamped = env.from_collection([1, 2, 3], Types.INT()).assign_timestamps_and_watermarks(strategy)
    stamped.process(Show()).print("direct")
    stamped.map(lambda x: -x, Types.INT()).flat_map(lambda x: [x, x]).process(Show()).print("through")
    again = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Later())
    stamped.assign_timestamps_and_watermarks(again).process(Show()).print("again")
    env.execute()


if __name__ == "__main__":
    main()
