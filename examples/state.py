"""Keeps state per key: drops readings that were sent twice, then gives a running average for each sensor."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from firesteel.common import Time
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import StateTtlConfig, ValueStateDescriptor

Reading = tuple[str, str, float]

READINGS: list[Reading] = [  # message id, sensor, degrees
    ("m1", "boiler", 70.0),
    ("m2", "cellar", 12.0),
    ("m3", "boiler", 72.0),
    ("m1", "boiler", 70.0),  # sent again
    ("m4", "cellar", 13.0),
    ("m5", "boiler", 74.0),
    ("m4", "cellar", 13.0),  # sent again
]


class FirstOnly(KeyedProcessFunction):
    """Remembers an id for an hour after it was seen; then the state is gone by itself."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self._seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterable[Reading]:
        if self._seen.value() is None:
            self._seen.update(True)
            yield value


class Average(KeyedProcessFunction):
    """One function object serves all keys of a subtask: what belongs to a key is in its state, not in ``self``."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("count and sum"))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterable[str]:
        count, total = self._total.value() or (0, 0.0)
        count, total = count + 1, total + value[2]
        self._total.update((count, total))
        yield f"{ctx.get_current_key():<6} {value[2]:>5.1f}  average of {count}: {total / count:.1f}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    (
        env.from_collection(READINGS)
        .key_by(lambda reading: reading[0])
        .process(FirstOnly())
        .key_by(lambda reading: reading[1])
        .process(Average())
        .print()
    )
    env.execute("running average")


if __name__ == "__main__":
    main()
