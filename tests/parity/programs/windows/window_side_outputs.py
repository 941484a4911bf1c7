"""Side outputs of window functions, of windows of all records too, and side outputs of side outputs."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import CountWindow, TumblingEventTimeWindows

EVENTS = [("a", 1, 4), ("b", 2, 5), ("a", 3, 6), ("b", 12, 1), ("a", 14, 2), ("a", 25, 9)]
LARGE = OutputTag("large", Types.STRING())
UNTYPED = OutputTag("untyped")


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Sums(ProcessWindowFunction):
    def process(self, key, context, elements):
        total = sum(element[2] for element in elements)
        if total > 8:
            yield LARGE, f"{key} {total} until {context.window().end}"
        yield UNTYPED, {"key": key, "total": total}
        yield key, total


class Everything(ProcessAllWindowFunction):
    def process(self, context, elements):
        values = sorted(element[2] for element in elements)
        yield LARGE, f"all {values}"
        yield Row(context.window().start, len(values))


class Counted(ProcessWindowFunction[tuple, tuple, str, CountWindow]):
    def process(self, key, context, elements):
        yield LARGE, f"count {key} {[element[2] for element in elements]}"


class Further(ProcessFunction):
    def process_element(self, value, ctx):
        if value.startswith("a"):
            yield UNTYPED, value.upper()
        yield len(value)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    events = env.from_collection(
        EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
    ).assign_timestamps_and_watermarks(strategy)
    keyed = events.key_by(lambda event: event[0], Types.STRING())
    sums = keyed.window(TumblingEventTimeWindows.of(Time.seconds(10))).process(
        Sums(), Types.TUPLE([Types.STRING(), Types.INT()])
    )
    sums.print("sums")
    sums.get_side_output(UNTYPED).print("untyped")
    large = sums.get_side_output(LARGE)
    large.print("large")
    further = large.process(Further(), Types.INT())
    further.print("lengths")
    further.get_side_output(UNTYPED).print("further")
    everything = events.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).process(
        Everything(), Types.ROW([Types.LONG(), Types.INT()])
    )
    everything.print("all")
    everything.get_side_output(LARGE).print("large of all")
    counted = keyed.count_window(2).process(Counted())
    counted.print("nothing")
    counted.get_side_output(LARGE).print("counted")
    env.execute()


if __name__ == "__main__":
    main()
