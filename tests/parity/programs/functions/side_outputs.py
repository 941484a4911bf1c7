"""Side outputs with types, several tags, from process, keyed process, co-process and window functions."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.window import TumblingEventTimeWindows

ODD = OutputTag("odd", Types.STRING())
BIG = OutputTag("big", Types.TUPLE([Types.INT(), Types.DOUBLE()]))
UNTYPED = OutputTag("untyped")


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        if value % 2:
            yield ODD, f"odd {value}"
        if value > 3:
            yield BIG, (value, value / 3)
        yield UNTYPED, {"value": value}


class SplitKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield ODD, f"{ctx.get_current_key()}: {value}"


class SplitWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        values = list(elements)
        yield len(values)
        yield ODD, f"window {context.window().start} {values}"


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT())
    split = numbers.process(Split(), Types.INT())
    split.print("main")
    split.get_side_output(ODD).print("odd")
    split.get_side_output(BIG).print("big")
    split.get_side_output(UNTYPED).print("untyped")
    keyed = numbers.key_by(lambda x: x % 2).process(SplitKeyed(), Types.INT())
    keyed.get_side_output(ODD).print("keyed")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Millis())
    windows = numbers.assign_timestamps_and_watermarks(strategy).key_by(lambda x: 0)
    windowed = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(2))).process(SplitWindow(), Types.INT())
    windowed.print("window")
    windowed.get_side_output(ODD).print("window side")
    env.execute()


if __name__ == "__main__":
    main()
