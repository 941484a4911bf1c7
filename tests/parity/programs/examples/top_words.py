"""The most frequent words of each window: count per word, then the best of all in the window's end."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows


def count_type():
    return Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class WithEnd(ProcessWindowFunction):
    def process(self, key, context, elements):
        for count in elements:
            yield key, context.window().end, count


class Top(KeyedProcessFunction):
    def __init__(self, size):
        self.size = size

    def open(self, runtime_context: RuntimeContext):
        self.counts = runtime_context.get_list_state(ListStateDescriptor("counts", count_type()))

    def process_element(self, value, ctx):
        self.counts.add(value)
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        best = sorted(self.counts.get(), key=lambda count: (-count[2], count[0]))[: self.size]
        self.counts.clear()
        yield f"{ctx.get_current_key()}: {[(count[0], count[2]) for count in best]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    text = "a b a c a b d e e e a b c c c c d a b b"
    words = [(word, second) for second, word in enumerate(text.split())]
    stream = env.from_collection(words, Types.TUPLE([Types.STRING(), Types.LONG()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    counts = (
        stream.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda pair: pair[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(Sum(), WithEnd(), accumulator_type=Types.LONG(), output_type=count_type())
    )
    top = counts.key_by(lambda count: count[1], Types.LONG()).process(Top(2), Types.STRING())
    with top.execute_and_collect() as results:
        for line in sorted(results):
            print(line)


if __name__ == "__main__":
    main()
