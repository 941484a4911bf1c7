"""reduce and aggregate with window functions of both kinds, and with types of their own."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

SALE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Total(WindowFunction):
    def apply(self, key, window, inputs):
        for shop, _, amount in inputs:
            yield key, window.start, window.max_timestamp(), shop, amount


class Best(ProcessWindowFunction):
    def process(self, key, context, elements):
        for element in elements:
            yield f"{key} {context.window()} {element}"


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[2]

    def get_result(self, accumulator):
        return f"{accumulator} pieces"

    def merge(self, a, b):
        return a + b


class AllTotal(AllWindowFunction):
    def apply(self, window, inputs):
        yield f"{window.start} {sum(amount for _, _, amount in inputs)}"


class AllCount(ProcessAllWindowFunction):
    def process(self, context, elements):
        for element in elements:
            yield f"{context.window().end}: {element}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = [("north", 1, 5), ("south", 2, 3), ("north", 7, 4), ("south", 11, 8), ("north", 15, 2), ("north", 19, 9)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    stream = env.from_collection(sales, SALE).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by(lambda sale: sale[0], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )

    def add(one, other):
        return one[0], max(one[1], other[1]), one[2] + other[2]

    def larger(one, other):
        return one if one[2] >= other[2] else other

    total = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING(), Types.INT()])
    windows.reduce(add).print("reduced")
    windows.reduce(add, window_function=Total(), output_type=total).print("total")
    windows.reduce(larger, window_function=Best(), output_type=Types.STRING()).print("best")
    windows.aggregate(Count(), output_type=Types.STRING()).print("count")
    windows.aggregate(Count(), window_function=Best(), output_type=Types.STRING()).print("counted")
    windows.apply(Total(), total).print("applied")
    everything = stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    everything.apply(AllTotal(), Types.STRING()).print("all")
    everything.reduce(add, window_function=AllTotal(), output_type=Types.STRING()).print("all reduced")
    everything.aggregate(Count(), window_function=AllCount(), output_type=Types.STRING()).print("all counted")
    env.execute()


if __name__ == "__main__":
    main()
