"""The five kinds of keyed state over a dictionary from key to value. These methods are the hot path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.api.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    StateDescriptor,
    ValueState,
)
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, KeyedStateBackend, check_not_none
from firesteel.runtime.state.hashmap.state_table import StateTable

__all__ = [
    "STATES",
    "HashMapAggregatingState",
    "HashMapListState",
    "HashMapMapState",
    "HashMapReducingState",
    "HashMapState",
    "HashMapValueState",
]


class HashMapState:
    """Common base of all kinds: the table of the current namespace, and the backend that has the current key."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: StateDescriptor):
        self._backend = backend
        self._state_table = state_table
        self._namespaces = state_table.namespaces
        self._namespace: Any = VOID_NAMESPACE
        self._table = state_table.namespaces[VOID_NAMESPACE]
        self._descriptor = descriptor

    def set_current_namespace(self, namespace: Any) -> None:
        """Turns to the table of a namespace; an empty one is dropped when left."""
        current = self._namespace
        if namespace == current:
            return
        if not self._table and current is not VOID_NAMESPACE:
            self._namespaces.pop(current, None)
        table = self._namespaces.get(namespace)
        if table is None:
            table = self._namespaces[namespace] = {}
        self._namespace = namespace
        self._table = table

    def is_at(self, namespace: Any) -> bool:
        """Whether the namespace is the current one."""
        return bool(namespace == self._namespace)

    def clear(self) -> None:
        self._table.pop(self._backend.key, None)

    def take(self, namespaces: Iterable[Any]) -> list[Any]:
        """Removes and returns the current key's values in the given namespaces."""
        key = self._backend.key
        values = []
        for namespace in namespaces:
            table = self._namespaces.get(namespace)
            if table is not None and key in table:
                values.append(table.pop(key))
                if not table and table is not self._table:
                    del self._namespaces[namespace]
        return values

    def store_in(self, namespace: Any, value: Any) -> None:
        """Sets the current key's value in a namespace."""
        self._namespaces.setdefault(namespace, {})[self._backend.key] = value


class HashMapValueState(HashMapState, ValueState[Any]):
    """One value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        return self._table.get(self._backend.key)

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if value is None:
            self.clear()
        else:
            self._table[self._backend.key] = value


class HashMapListState(HashMapState, ListState[Any]):
    """A list per key."""

    def get(self) -> list[Any]:
        """The current key's elements: a copy, so that it may be updated while it is read."""
        return list(self._table.get(self._backend.key, ()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        check_not_none(value)
        elements = self._table.get(self._backend.key)
        if elements is None:
            self._table[self._backend.key] = [value]
        else:
            elements.append(value)

    def add_all(self, values: Sequence[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Sequence[Any]) -> None:
        values = list(values)
        if values:
            for value in values:
                check_not_none(value)
            self._table[self._backend.key] = values
        else:
            self.clear()

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target."""
        taken = self.take(sources)
        if taken:
            elements = self._namespaces.get(target, {}).get(self._backend.key, [])
            for part in taken:
                elements.extend(part)
            self.store_in(target, elements)

    def slots(self) -> Iterable[tuple[int, Any]]:
        """The elements with their positions."""
        return enumerate(self.get())

    def change(self, changes: Iterable[tuple[int, Any]]) -> None:
        """Replaces elements by position, and removes those for which there is None."""
        elements = self.get()
        for position, element in changes:
            elements[position] = element
        self.update([element for element in elements if element is not None])


class HashMapMapState(HashMapState, MapState[Any, Any]):
    """A map per key."""

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        entries = self._table.get(self._backend.key)
        return None if entries is None else entries.get(key)

    def put(self, key: Any, value: Any) -> None:
        entries = self._table.get(self._backend.key)
        if entries is None:
            self._table[self._backend.key] = {key: value}
        else:
            entries[key] = value

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        entries = dict(dict_value)
        if entries:
            self._table.setdefault(self._backend.key, {}).update(entries)

    def remove(self, key: Any) -> None:
        entries = self._table.get(self._backend.key)
        if entries is not None and key in entries:
            del entries[key]
            if not entries:
                self.clear()

    def contains(self, key: Any) -> bool:
        entries = self._table.get(self._backend.key)
        return entries is not None and key in entries

    def items(self) -> list[tuple[Any, Any]]:
        """All entries: a copy, so that the map may be changed while it is read."""
        return list(self._table.get(self._backend.key, {}).items())

    def keys(self) -> list[Any]:
        return list(self._table.get(self._backend.key, ()))

    def values(self) -> list[Any]:
        return list(self._table.get(self._backend.key, {}).values())

    def is_empty(self) -> bool:
        return not self._table.get(self._backend.key)

    def slots(self) -> Iterable[tuple[Any, Any]]:
        """The entries; the slot of an entry is its map key."""
        return self.items()

    def slot_of(self, key: Any) -> Any:
        """The slot of a map key."""
        return key

    def key_of(self, slot: Any, _value: Any) -> Any:
        """The map key of a slot."""
        return slot

    def at(self, slot: Any) -> Any:
        """The value in a slot, or None."""
        entries = self._table.get(self._backend.key)
        return None if entries is None else entries.get(slot)

    def put_at(self, slot: Any, value: Any) -> None:
        """Replaces the value in a slot."""
        self.put(slot, value)

    def remove_at(self, slot: Any) -> None:
        """Removes the entry in a slot."""
        self.remove(slot)

    def change(self, changes: Iterable[tuple[Any, Any]]) -> None:
        """Replaces the values of keys, and removes the entries for which there is None."""
        for key, value in changes:
            if value is None:
                self.remove(key)
            else:
                self.put(key, value)


class HashMapReducingState(HashMapState, ReducingState[Any]):
    """One value per key, reduced with each addition."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: Any):
        super().__init__(backend, state_table, descriptor)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        return self._table.get(self._backend.key)

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        key = self._backend.key
        current = self._table.get(key)
        self._table[key] = value if current is None else self._reduce(current, value)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        taken = self.take([target, *sources])
        if taken:
            result = taken[0]
            for value in taken[1:]:
                result = self._reduce(result, value)
            self.store_in(target, result)


class HashMapAggregatingState(HashMapState, AggregatingState[Any, Any]):
    """One accumulator per key."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: Any):
        super().__init__(backend, state_table, descriptor)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        accumulator = self._table.get(self._backend.key)
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        key = self._backend.key
        accumulator = self._table.get(key)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._table[key] = self._function.add(value, accumulator)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        taken = self.take([target, *sources])
        if taken:
            result = taken[0]
            for accumulator in taken[1:]:
                result = self._function.merge(result, accumulator)
            self.store_in(target, result)


STATES: dict[str, Any] = {
    "value": HashMapValueState,
    "list": HashMapListState,
    "map": HashMapMapState,
    "reducing": HashMapReducingState,
    "aggregating": HashMapAggregatingState,
}
