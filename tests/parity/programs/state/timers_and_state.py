"""Event time timers that read and clear state: a session by hand, and a top list."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedCoProcessFunction, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

CLICK = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
CLICKS = [
    ("ann", "home", 1000),
    ("bob", "home", 1500),
    ("ann", "cart", 2500),
    ("ann", "home", 9000),
    ("bob", "news", 2000),
    ("bob", "home", 11000),
    ("cyd", "cart", 12000),
]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Sessions(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.pages = runtime_context.get_list_state(ListStateDescriptor("pages", Types.STRING()))
        self.end = runtime_context.get_state(ValueStateDescriptor("end", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        if self.end.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.end.value())
        self.end.update(ctx.timestamp() + 5000)
        self.pages.add(value[1])
        ctx.timer_service().register_event_time_timer(self.end.value())

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, sorted(self.pages.get())
        self.pages.clear()
        self.end.clear()


class Top(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.counts.put(value[1], (self.counts.get(value[1]) or 0) + 1)
        ctx.timer_service().register_event_time_timer(2**40)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield str(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))


class Matched(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.STRING()))
        self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.STRING()))

    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        self.left.update(value[1])
        ctx.timer_service().register_event_time_timer(2**40)

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        self.right.update(value[1])
        ctx.timer_service().register_event_time_timer(2**40)

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield f"{ctx.get_current_key()} {self.left.value()} {self.right.value()} {ctx.time_domain().name}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(Stamp())
    clicks = env.from_collection(CLICKS, CLICK).assign_timestamps_and_watermarks(strategy)
    sessions = clicks.key_by(lambda click: click[0]).process(
        Sessions(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LIST(Types.STRING())])
    )
    sessions.map(lambda session: f"{session[0]} {session[1]} {session[2]}", Types.STRING()).print("session")
    clicks.key_by(lambda click: 0, Types.INT()).process(Top(), Types.STRING()).print("top")
    odd = clicks.filter(lambda click: click[2] % 1000 != 0)
    even = clicks.filter(lambda click: click[2] % 1000 == 0)
    odd.connect(even).key_by(lambda c: c[0], lambda c: c[0]).process(Matched(), Types.STRING()).print("matched")
    env.execute()


if __name__ == "__main__":
    main()
