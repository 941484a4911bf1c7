"""The five kinds of keyed state with copy-on-access values: as with RocksDB, a change counts once it is stored.

What is stored is copied, and so is what is read, unless it is immutable. ``_is_plain`` is true if only immutable values
were stored so far, so that a read needs no check. A reduced value and an accumulator are handed to the user's function
as they are: it may change them and return them, but not keep them. As in ``tracked_states``, what is called per record
is written out for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.api.state import StateDescriptor
from firesteel.runtime.codegen.ownership import python_type
from firesteel.runtime.state.api.backend import KeyedStateBackend, check_not_none
from firesteel.runtime.state.hashmap import states, tracked_states
from firesteel.runtime.state.hashmap.state_table import StateTable
from firesteel.types.copying import IMMUTABLE, are_immutable, copy_flat, copy_known_flat, copy_value, is_fixed

__all__ = ["classes"]

_STORED_AS_THEY_ARE = IMMUTABLE - {type(None)}


class _OwningState(states.HashMapState):
    """What the kinds with plain values share."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: StateDescriptor):
        super().__init__(backend, state_table, descriptor)
        self._is_plain = all(
            are_immutable(self._values_in(stored))
            for table in state_table.namespaces.values()
            for stored in self._parts(table)
        )
        self._copy: Callable[[Any], Any] = copy_known_flat if self._is_plain else copy_value
        """Copies what is read: with less ado as long as nothing nested was stored."""

    def _parts(self, table: dict[Any, Any]) -> Iterable[Any]:
        """Collections of values, of what was restored."""
        return table.values()

    def _values_in(self, stored: Iterable[Any]) -> Iterable[Any]:
        return stored

    def _take_in(self, value: Any) -> Any:
        """What to store for a value that may change."""
        copied = copy_flat(value)
        if copied is None:
            copied = copy_value(value)
            if copied is not value:
                self._copy = copy_value
        if copied is not value:
            self._is_plain = False
        return copied


class OwningValueState(_OwningState, states.HashMapValueState):
    """One value per key."""

    def _parts(self, table: dict[Any, Any]) -> Iterable[Any]:
        return (table.values(),)

    def value(self) -> Any:
        """The current key's value, or None."""
        value = self._table.get(self._backend.key)
        return value if self._is_plain or value.__class__ in IMMUTABLE else self._copy(value)

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if value.__class__ in _STORED_AS_THEY_ARE or (value.__class__ is tuple and is_fixed(value)):
            self._table[self._backend.key] = value
        else:
            self._update(value)

    def _update(self, value: Any) -> None:
        """With None, or with a value that may change."""
        super().update(None if value is None else self._take_in(value))


class TrackedOwningValueState(OwningValueState, tracked_states.TrackedValueState):
    """One value per key."""

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if value.__class__ in _STORED_AS_THEY_ARE or (value.__class__ is tuple and is_fixed(value)):
            key = self._backend.key
            self._table[key] = value
            self._changed.add(key)
        else:
            self._update(value)


class PlainValueState(OwningValueState):
    """One value per key, of a type declared to be immutable. It is an ordinary one as soon as that proves wrong."""

    _ordinary: type[OwningValueState] = OwningValueState

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: StateDescriptor):
        super().__init__(backend, state_table, descriptor)
        self._expected = python_type(descriptor.type_info)
        self._look()

    value = states.HashMapValueState.value

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        # a test for one class takes half the time of one for many
        if value.__class__ is self._expected:
            self._table[self._backend.key] = value
        else:
            super().update(value)

    def _update(self, value: Any) -> None:
        super()._update(value)
        self._look()

    def _look(self) -> None:
        if not self._is_plain:
            self.__class__ = self._ordinary  # type: ignore[assignment]


class TrackedPlainValueState(PlainValueState, TrackedOwningValueState):
    """One value per key, of a type declared to be immutable."""

    _ordinary = TrackedOwningValueState

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if value.__class__ is self._expected:
            key = self._backend.key
            self._table[key] = value
            self._changed.add(key)
        else:
            super().update(value)


class _OwningListState(_OwningState, states.HashMapListState):
    def get(self) -> list[Any]:
        """Copies of the current key's elements."""
        elements = self._table.get(self._backend.key, ())
        return list(elements) if self._is_plain else list(map(self._copy, elements))

    def update(self, values: Sequence[Any]) -> None:
        super().update([value if value.__class__ in IMMUTABLE else self._take_in(value) for value in values])


class OwningListState(_OwningListState):
    """A list per key."""

    def add(self, value: Any) -> None:
        if value.__class__ not in IMMUTABLE:
            value = self._take_in(value)
        else:
            check_not_none(value)
        elements = self._table.get(self._backend.key)
        if elements is None:
            self._table[self._backend.key] = [value]
        else:
            elements.append(value)


class TrackedOwningListState(_OwningListState, tracked_states.TrackedListState):
    """A list per key."""

    def add(self, value: Any) -> None:
        if value.__class__ not in IMMUTABLE:
            value = self._take_in(value)
        else:
            check_not_none(value)
        key = self._backend.key
        elements = self._table.get(key)
        if elements is None:
            self._table[key] = [value]
        else:
            elements.append(value)
        self._changed.add(key)


class _OwningMapState(_OwningState, states.HashMapMapState):
    def _values_in(self, stored: Any) -> Iterable[Any]:
        values: Iterable[Any] = stored.values()
        return values

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        entries = self._table.get(self._backend.key)
        value = None if entries is None else entries.get(key)
        return value if self._is_plain or value.__class__ in IMMUTABLE else self._copy(value)

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        entries = dict(dict_value).items()
        super().put_all(
            {key: value if value.__class__ in IMMUTABLE else self._take_in(value) for key, value in entries}
        )

    def items(self) -> list[tuple[Any, Any]]:
        """All entries: copies, so that the map may be changed while they are read."""
        entries = self._table.get(self._backend.key, {})
        if self._is_plain:
            return list(entries.items())
        return [(key, self._copy(value)) for key, value in entries.items()]

    def values(self) -> list[Any]:
        """All values: copies."""
        values = self._table.get(self._backend.key, {}).values()
        return list(values) if self._is_plain else list(map(self._copy, values))


class OwningMapState(_OwningMapState):
    """A map per key."""

    def put(self, key: Any, value: Any) -> None:
        if value.__class__ not in IMMUTABLE:
            value = self._take_in(value)
        entries = self._table.get(self._backend.key)
        if entries is None:
            self._table[self._backend.key] = {key: value}
        else:
            entries[key] = value


class TrackedOwningMapState(_OwningMapState, tracked_states.TrackedMapState):
    """A map per key."""

    def put(self, key: Any, value: Any) -> None:
        if value.__class__ not in IMMUTABLE:
            value = self._take_in(value)
        current = self._backend.key
        entries = self._table.get(current)
        if entries is None:
            self._table[current] = {key: value}
        else:
            entries[key] = value
        self._changed.add(current)


class OwningReducingState(states.HashMapReducingState):
    """One value per key, reduced with each addition."""

    def get(self) -> Any:
        """The reduced value, or None."""
        value = self._table.get(self._backend.key)
        return value if value.__class__ in IMMUTABLE else copy_value(value)

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        key = self._backend.key
        if value.__class__ not in IMMUTABLE:
            value = copy_value(value)
        current = self._table.get(key)
        self._table[key] = value if current is None else self._reduce(current, value)


class TrackedOwningReducingState(OwningReducingState, tracked_states.TrackedReducingState):
    """One value per key, reduced with each addition."""

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        OwningReducingState.add(self, value)
        self._changed.add(self._backend.key)


class OwningAggregatingState(states.HashMapAggregatingState):
    """One accumulator per key."""

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        accumulator = self._table.get(self._backend.key)
        if accumulator is None:
            return None
        # it may be the accumulator itself, or a part of it
        result = self._function.get_result(accumulator)
        return result if result.__class__ in IMMUTABLE else copy_value(result)

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        key = self._backend.key
        if value.__class__ not in IMMUTABLE:
            value = copy_value(value)
        accumulator = self._table.get(key)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._table[key] = self._function.add(value, accumulator)


class TrackedOwningAggregatingState(OwningAggregatingState, tracked_states.TrackedAggregatingState):
    """One accumulator per key."""

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        OwningAggregatingState.add(self, value)
        self._changed.add(self._backend.key)


_STATES: dict[str, Any] = {
    "value": OwningValueState,
    "list": OwningListState,
    "map": OwningMapState,
    "reducing": OwningReducingState,
    "aggregating": OwningAggregatingState,
}
_TRACKED_STATES: dict[str, Any] = {
    "value": TrackedOwningValueState,
    "list": TrackedOwningListState,
    "map": TrackedOwningMapState,
    "reducing": TrackedOwningReducingState,
    "aggregating": TrackedOwningAggregatingState,
}


def classes(is_plain: bool, tracked: bool) -> dict[str, Any]:
    """The classes of the five kinds; with ``is_plain`` the declared type is immutable."""
    by_kind = _TRACKED_STATES if tracked else _STATES
    return {**by_kind, "value": TrackedPlainValueState if tracked else PlainValueState} if is_plain else by_kind
