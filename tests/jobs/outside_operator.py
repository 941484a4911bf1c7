"""Operators that are defined outside of Firesteel: a spec creates its own operator, and nothing else knows it.

``Deduplicate`` works on whole batches, has keyed state and timers, and another operator in a batch. ``Explode`` becomes
lines of the generated loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common import Types
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import FunctionSpec, OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.inline import InlineOperator

RECORDS = [("a", 1), ("b", 2), ("a", 1), ("c", 3), ("b", 2), ("a", 1), ("d", 4), ("c", 3), ("a", 1), ("e", 5)]


@dataclass(frozen=True)
class DeduplicateSpec(OperatorSpec):
    """Emits the first record of each key and, at the end of event time, how many more there were."""

    def create(self, runtime: OperatorRuntime) -> StreamOperator:
        return GroupedDeduplicate() if runtime.execution.one_key_at_a_time else Deduplicate()

    def without_user_functions(self) -> OperatorSpec:
        return self


class Deduplicate(StreamOperator):
    """One record after the other."""

    emits_own_records = True

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._count = context.backend.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._timers = context.timer_service("deduplicate", self)

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        select = self.context.key_selectors[0]
        for value in values:
            self._backend.key = select(value)
            count = self._count.value() or 0
            self._count.update(count + 1)
            if count == 0:
                self._timers.register_event_time_timer(None, MAX_WATERMARK)
                self.context.emit([("first", *value)], None)

    def fire_timers(self, timestamp: int) -> bool:
        return self._timers.advance_watermark(timestamp)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        self.context.emit([("repeated", key, self._count.value() - 1)], None)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        raise AssertionError("no such timer is registered")


class GroupedDeduplicate(StreamOperator):
    """All records of a key at once."""

    emits_own_records = True

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._count = 0

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        raise AssertionError("records come in groups")

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        if self._count == 0:
            self.context.emit([("first", *values[0])], None)
        self._count += len(values)

    def end_key(self) -> None:
        assert self.context.backend is not None
        self.context.emit([("repeated", self.context.backend.key, self._count - 1)], None)
        self._count = 0

    def end_groups(self) -> None:
        """Nothing was collected."""


@dataclass(frozen=True)
class ExplodeSpec(FunctionSpec):
    """Emits a record as often as the function returns."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        return Explode(self.function)


class Explode(InlineOperator):
    method = "explode"

    def write(self, writer: Any, value: str) -> None:
        self.write_key(writer, value)
        times = writer.call(self.call, value)
        with writer.block(f"for _ in range({times}):", element=value):
            writer.write_consumers(value)
            writer.write_room_check()


def build(env: StreamExecutionEnvironment) -> DataStream:
    row = Types.TUPLE([Types.STRING(), Types.INT()])
    exploded = env.from_collection(RECORDS, row)._transform("Explode", ExplodeSpec(lambda record: record[1] % 3), row)
    keyed = exploded.key_by(lambda record: record[0], Types.STRING())
    return keyed._transform("Deduplicate", DeduplicateSpec(), None)


def key_of(result: Any) -> Any:
    return result[1]
