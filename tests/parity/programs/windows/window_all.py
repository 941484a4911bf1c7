"""window_all: windows of the whole stream."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import CountTrigger, GlobalWindows, TumblingEventTimeWindows


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Show(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"{context.window().start} {sorted(elements)}"


class Sum(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.end, sum(inputs)


class Kept(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield len(list(elements))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    times = env.from_collection([1, 4, 9, 12, 13, 27], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    windows = times.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    for stream in (
        windows.process(Show(), Types.STRING()),
        windows.apply(Sum(), Types.TUPLE([Types.LONG(), Types.LONG()])),
        windows.reduce(lambda a, b: a + b),
        times.window_all(GlobalWindows.create()).trigger(CountTrigger.of(3)).process(Kept(), Types.INT()),
    ):
        with stream.execute_and_collect() as results:
            print(sorted(results))


if __name__ == "__main__":
    main()
