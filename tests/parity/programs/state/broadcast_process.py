"""A broadcast stream and a stream that is not keyed, with a side output."""

from pyflink.common import Types
from pyflink.datastream import BroadcastProcessFunction, OutputTag, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())
OTHERS = MapStateDescriptor("others", Types.INT(), Types.STRING())
SEEN = OutputTag("seen", Types.STRING())


class Join(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield f"element {value}"

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(NAMES if value[0] % 2 else OTHERS).put(value[0], value[1])
        yield SEEN, f"{sorted(ctx.get_broadcast_state(NAMES).keys())} {sorted(ctx.get_broadcast_state(OTHERS).keys())}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = env.from_collection([1, 2, 3], Types.INT())
    names = env.from_collection([(1, "one"), (2, "two"), (3, "three")], Types.TUPLE([Types.INT(), Types.STRING()]))
    joined = values.connect(names.broadcast(NAMES, OTHERS)).process(Join(), Types.STRING())
    joined.print("main")
    joined.get_side_output(SEEN).print("seen")
    env.execute()


if __name__ == "__main__":
    main()
