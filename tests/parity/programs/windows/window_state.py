"""State per window and state of the key across windows in a ProcessWindowFunction."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

EVENTS = [("a", 1), ("a", 5), ("b", 3), ("a", 12), ("b", 25), ("a", 27)]


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Running(ProcessWindowFunction):
    def process(self, key, context, elements):
        everything = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
        everything.update((everything.value() or 0) + 1)
        window = context.window_state().get_state(ValueStateDescriptor("firings", Types.INT()))
        window.update((window.value() or 0) + 1)
        yield key, context.window().start, len(list(elements)), everything.value(), window.value()

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("firings", Types.INT())).clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    ).process(Running(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT(), Types.INT(), Types.INT()])).print()
    env.execute()


if __name__ == "__main__":
    main()
