"""Balances of accounts in state with a time-to-live, alerts as a side output, and a report at the end of event time."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor

ALERTS = OutputTag("alerts", Types.STRING())


class Balance(KeyedProcessFunction):
    def __init__(self):
        self.balance = None

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("balance", Types.FLOAT())
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .disable_cleanup_in_background()
            .build()
        )
        descriptor.enable_time_to_live(ttl)
        self.balance = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        balance = (self.balance.value() or 0) + value[2]
        self.balance.update(balance)
        if balance < 0:
            yield ALERTS, f"{value[1]} is overdrawn by {-balance:.2f}"
        yield value[1], balance
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 2000)

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{ctx.get_current_key()} at {timestamp}", self.balance.value() is not None


class BookingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp: int) -> int:
        return int(value[0])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    bookings = env.from_collection(
        collection=[
            (1000, "alice", 110.5),
            (4000, "bob", 30.25),
            (3000, "alice", -120.0),
            (2000, "bob", 53.5),
            (5000, "alice", 13.125),
            (7000, "bob", -100.0),
        ],
        type_info=Types.TUPLE([Types.LONG(), Types.STRING(), Types.FLOAT()]),
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
        BookingTime()
    )
    balances = bookings.assign_timestamps_and_watermarks(strategy).key_by(lambda booking: booking[1]).process(Balance())
    balances.print()
    balances.get_side_output(ALERTS).print("alert")
    env.execute()


if __name__ == "__main__":
    main()
