"""Broadcast state: users whose last two actions are those of a pattern that another stream changes."""

import time

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

PATTERNS = MapStateDescriptor("patterns", Types.INT(), Types.PICKLED_BYTE_ARRAY())
ACTIONS = [("wait", ""), ("ann", "login"), ("ann", "pay"), ("bob", "login"), ("ann", "pay"), ("bob", "logout")]


class Matches(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        last = self.last.value()
        for number, pattern in sorted(ctx.get_broadcast_state(PATTERNS).items()):
            if pattern == (last, value[1]):
                yield f"{ctx.get_current_key()} {number} {pattern}"
        self.last.update(value[1])

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        patterns = ctx.get_broadcast_state(PATTERNS)
        if not value[1]:
            patterns.remove(value[0])
        else:
            patterns.put(value[0], tuple(value[1:]))


def waiting(action):
    """The patterns come first."""
    if action[0] == "wait":
        time.sleep(2)
    return action


def main():
    configuration = Configuration()
    configuration.set_string("python.fn-execution.bundle.size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    patterns = env.from_collection(
        [(1, "login", "pay"), (2, "pay", "pay"), (3, "login", "logout"), (2, "", ""), (1, "pay", "pay")],
        Types.TUPLE([Types.INT(), Types.STRING(), Types.STRING()]),
    )
    pair = Types.TUPLE([Types.STRING(), Types.STRING()])
    actions = env.from_collection(ACTIONS, pair).map(waiting, pair)
    actions.key_by(lambda action: action[0]).connect(patterns.broadcast(PATTERNS)).process(
        Matches(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
