"""Sliding event-time windows with an aggregate and a window function."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows

EVENTS = [("a", 1), ("a", 4), ("b", 6), ("a", 7), ("a", 13)]


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class WithWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        (count,) = elements
        yield key, context.window().start, context.window().end, count


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0]).window(
        SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    ).aggregate(
        Count(),
        window_function=WithWindow(),
        accumulator_type=Types.INT(),
        output_type=Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()]),
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
