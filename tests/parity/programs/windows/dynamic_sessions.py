"""Session windows whose gap depends on the record."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

EVENTS = [("a", 1, 2), ("a", 2, 10), ("a", 11, 1), ("a", 13, 3), ("a", 20, 1)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {context.window().end} {sorted(e[1] for e in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0]).window(
        EventTimeSessionWindows.with_dynamic_gap(Gap())
    ).process(Show()).print()
    env.execute()


if __name__ == "__main__":
    main()
