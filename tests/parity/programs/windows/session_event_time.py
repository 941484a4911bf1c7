"""Session windows with a fixed gap, also with reduce."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

EVENTS = [("hi", 1), ("hi", 2), ("hi", 3), ("hi", 4), ("hi", 8), ("hi", 9), ("hi", 15), ("yo", 3)]


class First(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return int(value[1])


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, len(list(elements))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.INT()]))
    sessions = (
        events.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda x: x[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    )
    result = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
    sessions.process(Count(), result).print("process")
    sessions.reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    env.execute()


if __name__ == "__main__":
    main()
