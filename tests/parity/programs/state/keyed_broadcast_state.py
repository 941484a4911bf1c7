"""A keyed and a broadcast stream: several descriptors, keyed state, timers at the end."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedBroadcastProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

RATES = MapStateDescriptor("rates", Types.STRING(), Types.DOUBLE())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.STRING())
BLOCKED = MapStateDescriptor("blocked", Types.STRING(), Types.BOOLEAN())
RULES = OutputTag("rules", Types.STRING())
REFUSED = OutputTag("refused", Types.TUPLE([Types.STRING(), Types.INT()]))


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return 1


class Convert(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.amounts = runtime_context.get_list_state(ListStateDescriptor("amounts", Types.INT()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.amounts.add(value[1])
        self.count.update((self.count.value() or 0) + 1)
        # rules may come later: what is seen at the end does not depend on the order
        ctx.timer_service().register_event_time_timer(100)
        return []

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        kind, key, item = value
        state = ctx.get_broadcast_state({"rate": RATES, "name": NAMES, "block": BLOCKED}[kind])
        if kind == "rate":
            state.put(key, float(item))
        elif kind == "name":
            state.put_all([(key, item)])
        elif item == "yes":
            state.put(key, True)
        else:
            state.remove(key)
        yield RULES, f"{kind} {sorted(state.keys())} {state.contains(key)}"

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        key = ctx.get_current_key()
        amounts = sorted(self.amounts.get())
        if ctx.get_broadcast_state(BLOCKED).contains(key):
            yield REFUSED, (key, self.count.value())
            return
        rate = ctx.get_broadcast_state(RATES).get(key)
        name = ctx.get_broadcast_state(NAMES).get(key)
        yield f"{name} {[round(amount * rate, 2) for amount in amounts]} {timestamp}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    rules = env.from_collection(
        [
            ("rate", "usd", "1.1"),
            ("rate", "gbp", "0.85"),
            ("name", "usd", "dollar"),
            ("block", "gbp", "yes"),
            ("name", "gbp", "pound"),
            ("block", "gbp", "no"),
            ("block", "xyz", "yes"),
        ],
        Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING()]),
    ).assign_timestamps_and_watermarks(strategy)
    amounts = env.from_collection(
        [("usd", 10), ("gbp", 5), ("usd", 3), ("xyz", 1), ("gbp", 2)], Types.TUPLE([Types.STRING(), Types.INT()])
    ).assign_timestamps_and_watermarks(strategy)
    converted = (
        amounts.key_by(lambda amount: amount[0], Types.STRING())
        .connect(rules.broadcast(RATES, NAMES, BLOCKED))
        .process(Convert(), Types.STRING())
    )
    converted.print("converted")
    converted.get_side_output(RULES).print("rules")
    converted.get_side_output(REFUSED).print("refused")
    env.execute()


if __name__ == "__main__":
    main()
