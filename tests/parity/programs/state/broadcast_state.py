"""Broadcast state: rules for a keyed stream."""

from pyflink.common import Types
from pyflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Apply(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        rules = ctx.get_broadcast_state(RULES)
        yield f"{ctx.get_current_key()} element {value[0]} {type(rules).__name__ != ''}"

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], value[1])
        yield f"rule {value} {sorted(state.items())} {state.contains(value[0])} {state.get(value[0])}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    values = env.from_collection([("x", 1), ("y", 2), ("x", 3)], pair)
    rules = env.from_collection([("x", 10), ("y", 20), ("x", 30)], pair)
    connected = values.key_by(lambda value: value[0]).connect(rules.broadcast(RULES))
    connected.process(Apply(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
