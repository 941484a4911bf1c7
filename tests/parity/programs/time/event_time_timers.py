"""Event-time timers: registered, deleted, registered twice, in order per key."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor

EVENTS = [("a", 1), ("a", 5), ("b", 2), ("a", 8), ("b", 30)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        service = ctx.timer_service()
        self.seen.add(ctx.timestamp())
        service.register_event_time_timer(ctx.timestamp() + 100)
        service.register_event_time_timer(ctx.timestamp() + 100)
        service.register_event_time_timer(ctx.timestamp() + 7)
        if value[1] == 5:
            service.delete_event_time_timer(ctx.timestamp() + 7)
        yield f"element {value} at {ctx.timestamp()}"

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield f"timer {timestamp} {ctx.get_current_key()} {ctx.timestamp()} {ctx.time_domain().name} {list(self.seen)}"
        if timestamp == 101:
            ctx.timer_service().register_event_time_timer(500)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0]).process(
        Timers(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
