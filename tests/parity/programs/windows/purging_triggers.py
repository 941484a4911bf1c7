"""Triggers: count and purging, on windows and global windows."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    CountTrigger,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
)

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {[value[1] for value in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(0)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    events = [("a", 1), ("b", 3), ("a", 6), ("a", 9), ("b", 14), ("a", 18), ("a", 21), ("b", 29)]
    keyed = env.from_collection(events, PAIR).assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0])
    triggers = {
        "counted": CountTrigger.of(2),
        "purging": PurgingTrigger.of(CountTrigger.of(2)),
        "purging at the end": PurgingTrigger.of(EventTimeTrigger.create()),
    }
    for name, trigger in triggers.items():
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(20))).trigger(trigger)
        windows.process(Contents(), Types.STRING()).print(name)
    everything = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(3)))
    everything.process(Contents(), Types.STRING()).print("global")
    env.execute()


if __name__ == "__main__":
    main()
