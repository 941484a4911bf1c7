"""The five kinds of keyed state for incremental snapshots: as in ``states``, and each change adds its key to a set.

They are classes of their own so that jobs without checkpoints pay nothing. The methods called per record are written
out again, since a call of the untracked one would cost more than what is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.api.state import StateDescriptor
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, KeyedStateBackend, check_not_none
from firesteel.runtime.state.hashmap import states
from firesteel.runtime.state.hashmap.state_table import StateTable

__all__ = ["STATES", "TrackedState"]


class TrackedState(states.HashMapState):
    """What the tracked kinds share."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: StateDescriptor):
        super().__init__(backend, state_table, descriptor)
        self._changed = state_table.changed(VOID_NAMESPACE)
        state_table.on_snapshot(self._start_over)

    def _start_over(self) -> None:
        self._changed = self._state_table.changed(self._namespace)

    def set_current_namespace(self, namespace: Any) -> None:
        """Turns to the table of a namespace; an empty one is dropped when left."""
        current = self._namespace
        if namespace == current:
            return
        if not self._table and current is not VOID_NAMESPACE:
            self._state_table.drop(current)
        table = self._namespaces.get(namespace)
        if table is None:
            table = self._namespaces[namespace] = {}
        self._namespace = namespace
        self._table = table
        self._changed = self._state_table.changed(namespace)

    def clear(self) -> None:
        key = self._backend.key
        if key in self._table:
            del self._table[key]
            self._changed.add(key)

    def take(self, namespaces: Iterable[Any]) -> list[Any]:
        """Removes and returns the current key's values in the given namespaces."""
        key = self._backend.key
        values = []
        for namespace in namespaces:
            table = self._namespaces.get(namespace)
            if table is not None and key in table:
                values.append(table.pop(key))
                self._state_table.changed(namespace).add(key)
                if not table and table is not self._table:
                    self._state_table.drop(namespace)
        return values

    def store_in(self, namespace: Any, value: Any) -> None:
        """Sets the current key's value in a namespace."""
        super().store_in(namespace, value)
        self._state_table.changed(namespace).add(self._backend.key)


class TrackedValueState(TrackedState, states.HashMapValueState):
    """One value per key."""

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if value is None:
            self.clear()
        else:
            key = self._backend.key
            self._table[key] = value
            self._changed.add(key)


class TrackedListState(TrackedState, states.HashMapListState):
    """A list per key."""

    def add(self, value: Any) -> None:
        check_not_none(value)
        key = self._backend.key
        elements = self._table.get(key)
        if elements is None:
            self._table[key] = [value]
        else:
            elements.append(value)
        self._changed.add(key)

    def update(self, values: Sequence[Any]) -> None:
        super().update(values)
        self._changed.add(self._backend.key)


class TrackedMapState(TrackedState, states.HashMapMapState):
    """A map per key."""

    def put(self, key: Any, value: Any) -> None:
        current = self._backend.key
        entries = self._table.get(current)
        if entries is None:
            self._table[current] = {key: value}
        else:
            entries[key] = value
        self._changed.add(current)

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        super().put_all(dict_value)
        self._changed.add(self._backend.key)

    def remove(self, key: Any) -> None:
        super().remove(key)
        self._changed.add(self._backend.key)


class TrackedReducingState(TrackedState, states.HashMapReducingState):
    """One value per key, reduced with each addition."""

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        key = self._backend.key
        current = self._table.get(key)
        self._table[key] = value if current is None else self._reduce(current, value)
        self._changed.add(key)


class TrackedAggregatingState(TrackedState, states.HashMapAggregatingState):
    """One accumulator per key."""

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        key = self._backend.key
        accumulator = self._table.get(key)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._table[key] = self._function.add(value, accumulator)
        self._changed.add(key)


STATES: dict[str, Any] = {
    "value": TrackedValueState,
    "list": TrackedListState,
    "map": TrackedMapState,
    "reducing": TrackedReducingState,
    "aggregating": TrackedAggregatingState,
}
