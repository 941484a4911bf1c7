"""Tumbling event-time windows with reduce, apply, process and aggregate."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

EVENTS = [("a", 1, 2), ("a", 2, 4), ("b", 3, 3), ("a", 9, 1), ("b", 11, 5), ("a", 12, 6), ("a", 25, 7)]
EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Sum(WindowFunction):
    def apply(self, key, window: TimeWindow, inputs: Iterable):
        yield key, window.start, window.end, sum(value[2] for value in inputs)


class Process(ProcessWindowFunction):
    def process(self, key, context: ProcessWindowFunction.Context, elements):
        values = sorted(value[2] for value in elements)
        yield f"{key} {context.window().start}-{context.window().max_timestamp()} {values}"


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    events = env.from_collection(EVENTS, EVENT).assign_timestamps_and_watermarks(strategy)
    windows = events.key_by(lambda event: event[0], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.seconds(10))
    )
    windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).print("reduce")
    result = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])
    windows.apply(Sum(), result).print("apply")
    windows.process(Process(), Types.STRING()).print("process")
    windows.aggregate(Mean(), output_type=Types.DOUBLE()).print("aggregate")
    env.execute()


if __name__ == "__main__":
    main()
