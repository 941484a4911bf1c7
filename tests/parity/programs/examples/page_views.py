"""Views of pages in event-time windows: tumbling, sliding and sessions, with counts, visitors and durations."""

from collections.abc import Iterable

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)

VIEWS = [
    ("home", "ann", 1_000),
    ("news", "bob", 4_000),
    ("home", "bob", 2_500),
    ("home", "ann", 9_999),
    ("news", "cyd", 10_000),
    ("home", "cyd", 14_000),
    ("news", "bob", 11_000),
    ("home", "ann", 31_000),
    ("help", "dan", 29_000),
]


class ViewTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp: int) -> int:
        return value[2]


class Visitors(AggregateFunction):
    def create_accumulator(self):
        return set()

    def add(self, value, accumulator):
        accumulator.add(value[1])
        return accumulator

    def get_result(self, accumulator):
        return len(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a | acc_b


class WithWindow(ProcessWindowFunction[int, tuple, str, TimeWindow]):
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]):
        for visitors in elements:
            yield key, context.window().start, context.window().end, visitors


class Duration_(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def process(self, key, context, elements):
        times = sorted(element[2] for element in elements)
        yield f"{key} was here for {times[-1] - times[0]} ms and saw {len(times)} pages"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
        ViewTime()
    )
    views = env.from_collection(
        VIEWS, Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
    ).assign_timestamps_and_watermarks(strategy)
    by_page = views.key_by(lambda view: view[0], key_type=Types.STRING())
    result_type = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])
    by_page.window(TumblingEventTimeWindows.of(Time.seconds(10))).aggregate(
        Visitors(), WithWindow(), Types.PICKLED_BYTE_ARRAY(), result_type
    ).print("tumbling")
    by_page.window(SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(5))).aggregate(
        Visitors(), window_function=WithWindow(), output_type=result_type
    ).print("sliding")
    views.key_by(lambda view: view[1], key_type=Types.STRING()).window(
        EventTimeSessionWindows.with_gap(Time.seconds(10))
    ).process(Duration_(), Types.STRING()).print("session")
    env.execute()


if __name__ == "__main__":
    main()
