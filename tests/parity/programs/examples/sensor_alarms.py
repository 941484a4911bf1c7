"""Timers: an alarm when a sensor is silent for five seconds of event time, in a process function with state."""

from pyflink.common import Duration, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

READINGS = [
    Row("north", 1_000, 20.5),
    Row("south", 1_500, 18.0),
    Row("north", 3_000, 21.0),
    Row("south", 8_000, 17.5),
    Row("north", 4_200, 20.75),
    Row("south", 9_000, 17.25),
    Row("north", 30_000, 19.5),
]


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp: int) -> int:
        return value["at"]


class Silence(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        service = ctx.timer_service()
        timer = self.timer.value()
        if timer is not None:
            service.delete_event_time_timer(timer)
        timer = ctx.timestamp() + 5_000
        service.register_event_time_timer(timer)
        self.timer.update(timer)
        last = self.last.value()
        self.last.update(value.degrees)
        yield Row(value.sensor, "reading", 0.0 if last is None else value.degrees - last)

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield Row(ctx.get_current_key(), f"silent at {timestamp}", self.last.value())
        self.timer.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    row_type = Types.ROW_NAMED(["sensor", "at", "degrees"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4)).with_timestamp_assigner(
        ReadingTime()
    )
    readings = env.from_collection(READINGS, row_type).assign_timestamps_and_watermarks(strategy)
    alarms = readings.key_by(lambda row: row.sensor, Types.STRING()).process(
        Silence(), Types.ROW_NAMED(["sensor", "event", "degrees"], [Types.STRING(), Types.STRING(), Types.DOUBLE()])
    )
    alarms.print()
    alarms.filter(lambda row: row.event != "reading").map(
        lambda row: {row.sensor: row.degrees}, Types.MAP(Types.STRING(), Types.DOUBLE())
    ).print("map")
    env.execute("silence")


if __name__ == "__main__":
    main()
