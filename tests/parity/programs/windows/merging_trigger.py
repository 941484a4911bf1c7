"""A trigger in session windows: count and continuous triggers that merge."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
)

EVENTS = [("a", 1), ("a", 3), ("a", 4), ("a", 20), ("b", 2), ("b", 30)]


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start}-{context.window().end} {sorted(e[1] for e in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0])
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    keyed.window(sessions).trigger(CountTrigger.of(2)).process(Show(), Types.STRING()).print("count")
    keyed.window(sessions).trigger(EventTimeTrigger.create()).process(Show(), Types.STRING()).print("event time")
    keyed.window(sessions).trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(100))).process(
        Show(), Types.STRING()
    ).print("continuous")
    env.execute()


if __name__ == "__main__":
    main()
