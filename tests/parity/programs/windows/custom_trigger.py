"""A trigger of one's own with state: fires when the sum of a window has reached ten."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import TimeWindow, Trigger, TriggerResult, TumblingEventTimeWindows

EVENTS = [("a", 1, 4), ("a", 2, 5), ("a", 3, 6), ("a", 5, 1), ("b", 4, 10), ("a", 12, 3)]


class SumTrigger(Trigger):
    def __init__(self):
        self.descriptor = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        total = ctx.get_partitioned_state(self.descriptor)
        total.add(element[2])
        if total.get() >= 10:
            total.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window: TimeWindow, ctx):
        ctx.get_partitioned_state(self.descriptor).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {[e[2] for e in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    ).trigger(SumTrigger()).process(Show(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
