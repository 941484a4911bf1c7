"""Dates, times, timestamps and instants: in streams, state, rows, keys and windows."""

import datetime

from pyflink.common import Instant, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows

EVENT = Types.ROW_NAMED(["name", "at", "day"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.SQL_DATE()])
DAY = datetime.date(2024, 2, 29)
EVENTS = [
    Row("a", datetime.datetime(2024, 2, 29, 12, 0, 0), DAY),
    Row("b", datetime.datetime(2024, 2, 29, 12, 0, 9, 123000), DAY),
    Row("a", datetime.datetime(2024, 2, 29, 12, 0, 21, 5000), None),
    Row("c", None, DAY + datetime.timedelta(days=1)),
]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        if value.at is None:
            return 0
        return int(value.at.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


class Since(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.SQL_TIMESTAMP()))

    def process_element(self, value, ctx):
        last = self.last.value()
        if value.at is not None:
            self.last.update(value.at)
        yield f"{value.name} {value.at - last if last and value.at else None}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, EVENT)
    events.print("events")
    events.filter(lambda event: event.at is not None).map(lambda event: event.at, Types.SQL_TIMESTAMP()).print("at")
    events.filter(lambda event: event.day is not None).map(lambda event: event.day, Types.SQL_DATE()).print("day")
    events.map(lambda event: datetime.time(1, 2, 3), Types.SQL_TIME()).print("time")
    events.key_by(lambda event: event.name).process(Since(), Types.STRING()).print("since")
    events.key_by(lambda event: event.day, Types.SQL_DATE()).map(lambda event: event.name, Types.STRING()).print(
        "keyed"
    )
    instants = events.map(lambda event: Instant.of_epoch_milli(1500 * len(event.name)), Types.INSTANT())
    instants.map(lambda i: f"{i.seconds} {i.nanos} {i.to_epoch_milli()}", Types.STRING()).print("instant")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    known = events.filter(lambda event: event.at is not None).assign_timestamps_and_watermarks(strategy)
    known.map(lambda e: (e.name, 1), Types.TUPLE([Types.STRING(), Types.INT()])).window_all(
        TumblingEventTimeWindows.of(Time.seconds(10))
    ).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])).print("window")
    env.execute()


if __name__ == "__main__":
    main()
