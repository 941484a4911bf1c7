"""CoProcessFunction with side outputs, and KeyedCoProcessFunction with timers."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import CoProcessFunction, KeyedCoProcessFunction, OutputTag, StreamExecutionEnvironment

WORDS = OutputTag("words", Types.STRING())


class Mixed(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value * 2

    def process_element2(self, value, ctx):
        yield WORDS, value.upper()


class Timed(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        yield f"first {value} {ctx.timestamp()} {ctx.get_current_key()}"

    def process_element2(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 20)
        yield f"second {value} {ctx.timestamp()} {ctx.get_current_key()}"

    def on_timer(self, timestamp, ctx):
        yield f"timer {timestamp} {ctx.get_current_key()} {ctx.time_domain().name}"


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], Types.LONG())
    words = env.from_collection(["x", "y"], Types.STRING())
    mixed = numbers.connect(words).process(Mixed(), Types.LONG())
    mixed.print("main")
    mixed.get_side_output(WORDS).print("words")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    first = env.from_collection([1, 2], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    second = env.from_collection([3, 4], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    first.connect(second).key_by(lambda x: x % 2, lambda x: x % 2).process(Timed(), Types.STRING()).print("timed")
    env.execute()


if __name__ == "__main__":
    main()
