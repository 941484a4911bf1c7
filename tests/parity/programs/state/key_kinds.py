"""Keys of many kinds: what is one key, and what get_current_key returns."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

KEYS = [
    "a",
    1,
    2,
    None,
    (1, "x"),
    (1, None),
    [1, 2],
    {"a": 1},
    b"bytes",
    1.5,
    Decimal("2.5"),
    datetime.date(2020, 1, 1),
    Row(1, "x"),
    (1, [2, {"b": None}]),
]


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{ctx.get_current_key()!r} {self.count.value()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(KEYS + KEYS).key_by(lambda key: key).process(Count(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
