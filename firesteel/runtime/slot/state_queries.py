"""Queryable state: reads the keyed state of a running task by key, without changing it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.api.state import StateDescriptor
from firesteel.common.errors import FiresteelError
from firesteel.common.types import Row
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from firesteel.runtime.model.serialization import preview_record
from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.ttl import alive_after, stored_remainder, without_stamps

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator
    from firesteel.runtime.task.task import Task

__all__ = ["ListStates", "QueryState", "StateAnswer", "namespace_text", "to_json"]

MAX_ITEMS = 20_000
"""Of a value: the task stands still while it is read."""
MAX_NAMESPACES = 200
_MAX_INT64 = 2**63 - 1


class TooLargeError(FiresteelError):
    """A value has too many parts to be read while a task waits."""


@dataclass(frozen=True)
class StateAnswer:
    """What a state holds of a key; plain data."""

    kind: str | None
    """None if the operator has no state of that name."""
    states: dict[str, str]
    """The kinds of the operator's states, by name."""
    values: dict[str, Any]
    """By namespace as text, '' where the state belongs to no window."""


@dataclass(frozen=True)
class ListStates:
    """Asks which keyed states the operators of a task have."""

    vertex_id: str
    subtask: int

    def answer_of(self, task: Task) -> dict[str, dict[str, str]]:
        """Kinds by operator id and name of the state."""
        return {
            chained.descriptor.operator_id: _kinds(chained) for chained in task.chain if chained.backend is not None
        }


@dataclass(frozen=True)
class QueryState:
    """Asks for what a state holds of one key."""

    vertex_id: str
    subtask: int
    operator_id: str
    name: str
    key: Any

    def answer_of(self, task: Task) -> StateAnswer:
        """The value in every namespace; expired ones are left out."""
        (chained,) = (each for each in task.chain if each.descriptor.operator_id == self.operator_id)
        assert chained.backend is not None
        descriptor = chained.backend.descriptors().get(self.name)
        if descriptor is None:
            return StateAnswer(None, _kinds(chained), {})
        values = {}
        now = task.processing_time()
        for namespace, stored in chained.backend.stored(self.name, self.key).items():
            value = _read(descriptor, stored, now)
            if value is not None:
                values[namespace_text(namespace)] = to_json(value)
            if len(values) >= MAX_NAMESPACES:
                break
        return StateAnswer(descriptor.kind, _kinds(chained), values)


def _kinds(chained: RunningOperator) -> dict[str, str]:
    assert chained.backend is not None
    return {name: descriptor.kind for name, descriptor in chained.backend.descriptors().items()}


def _read(descriptor: StateDescriptor, stored: Any, now: int) -> Any:
    """A stored value as the state's own methods would give it; None if all of it has expired."""
    if descriptor.ttl_config is not None:
        alive = stored_remainder(descriptor.kind)(stored, alive_after(descriptor.ttl_config, now))
        stored = None if alive is None else without_stamps(descriptor.kind, alive)
    if stored is None:
        return None
    if descriptor.kind == "aggregating":
        function: Any = descriptor.get_agg_function()  # type: ignore[attr-defined]
        return function.get_result(stored)
    return stored


def namespace_text(namespace: Any) -> str:
    """A namespace as it is written in a query: a time window as ``start-end``, '' where there is none.

    >>> namespace_text(TimeWindow(1000, 2000))
    '1000-2000'
    """
    if namespace is VOID_NAMESPACE:
        return ""
    if isinstance(namespace, TimeWindow):
        return f"{namespace.start}-{namespace.end}"
    if isinstance(namespace, CountWindow):
        return str(namespace.id)
    return "global" if isinstance(namespace, GlobalWindow) else preview_record(namespace)


def to_json(value: Any) -> Any:
    """A value as JSON has it; other values become ``{"repr": ...}``.

    >>> to_json((1, "a", {2: b"x"}))
    [1, 'a', [{'key': 2, 'value': {'repr': "b'x'"}}]]
    """
    return _Converter().convert(value)


class _Converter:
    def __init__(self) -> None:
        self._left = MAX_ITEMS

    def convert(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooLargeError(f"the value has more than {MAX_ITEMS:,} parts")
        if value is None or value.__class__ in (bool, str):
            return value
        if value.__class__ is int and -_MAX_INT64 <= value <= _MAX_INT64:
            return value
        if value.__class__ is float and math.isfinite(value):
            return value
        if isinstance(value, Row):
            return self._row(value)
        if value.__class__ in (list, tuple):
            return [self.convert(item) for item in value]
        if value.__class__ is dict:
            return self._mapping(value)
        return {"repr": preview_record(value)}

    def _row(self, row: Row) -> Any:
        names = getattr(row, "_fields", None)
        if names:
            return self._mapping(dict(zip(names, row, strict=True)))
        return [self.convert(item) for item in row]

    def _mapping(self, mapping: Mapping[Any, Any]) -> Any:
        if all(key.__class__ is str for key in mapping):
            return {key: self.convert(item) for key, item in mapping.items()}
        return [{"key": self.convert(key), "value": self.convert(item)} for key, item in mapping.items()]
