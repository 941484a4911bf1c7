"""Late records of windows: a side output for them, and windows that fire again within the allowed lateness."""

import time

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

# a pause lets the watermark pass
EVENTS = [
    *[("a", 1), ("b", 2), ("a", 12), ("pause", 13)],
    *[("a", 3), ("b", 11), ("b", 31), ("pause", 32)],
    *[("a", 4), ("b", 21), ("a", 33), ("b", 1)],
]


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Contents(ProcessWindowFunction):
    def process(self, key, context: ProcessWindowFunction.Context, elements):
        window = context.window()
        yield f"{key} {window.start}-{window.end} {sorted(second for _, second in elements)}"

    def clear(self, context):
        pass


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


def pair_type():
    """A new one for each use: PyFlink cannot send a tag whose type has been used by a stream."""
    return Types.TUPLE([Types.STRING(), Types.LONG()])


def pausing(value):
    if value[0] == "pause":
        time.sleep(0.4)
    return value


def main():
    configuration = Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(10)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    events = (
        env.from_collection(EVENTS, pair_type())
        .assign_timestamps_and_watermarks(strategy)
        .map(pausing, pair_type())
        .filter(lambda event: event[0] != "pause")
    )
    keyed = events.key_by(lambda event: event[0], Types.STRING())

    late = OutputTag("late", pair_type())
    tumbling = (
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(late)
        .process(Contents(), Types.STRING())
    )
    tumbling.print("tumbling")
    tumbling.get_side_output(late).print("tumbling late")

    too_late = OutputTag("too late", pair_type())
    patient = (
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .allowed_lateness(15000)
        .side_output_late_data(too_late)
        .aggregate(Count(), accumulator_type=Types.LONG(), output_type=Types.LONG())
    )
    patient.print("patient")
    patient.get_side_output(too_late).map(lambda event: f"{event[0]} {event[1]}", Types.STRING()).print("too late")

    of_sliding = OutputTag("of sliding", pair_type())
    sliding = (
        keyed.window(SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(10)))
        .side_output_late_data(of_sliding)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    sliding.print("sliding")
    sliding.get_side_output(of_sliding).print("sliding late")

    of_sessions = OutputTag("of sessions", pair_type())
    sessions = (
        keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(5)))
        .allowed_lateness(3000)
        .side_output_late_data(of_sessions)
        .process(Contents(), Types.STRING())
    )
    sessions.print("sessions")
    sessions.get_side_output(of_sessions).print("sessions late")
    env.execute()


if __name__ == "__main__":
    main()
