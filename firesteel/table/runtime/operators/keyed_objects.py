"""State with one Python object per key, read and written for all keys of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.typeinfo import Types
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, KeyedStateBackend, ObjectStateBackend

__all__ = ["KeyedObjects", "ObjectTableState", "keyed_objects"]


class KeyedObjects:
    """A value state. Where the backend stores bytes, objects are read for each batch and written after it."""

    def __init__(self, backend: KeyedStateBackend, descriptor: ValueStateDescriptor):
        self._backend = backend
        self._name = descriptor.get_name()
        self._state = backend.get_state(descriptor, internal=True)
        self._swept: Iterator[Any] = iter(())

    def load(self, keys: Sequence[Any]) -> list[Any]:
        """The object of each key, or None. It may be changed; then it has to be stored."""
        if hasattr(self._state, "values_of"):
            found: list[Any] = self._state.values_of(keys)
            return found
        return list(map(self._get, keys))

    def _get(self, key: Any) -> Any:
        self._backend.key = key
        return self._state.value()

    def store(self, key: Any, value: Any) -> None:
        """Stores a new or changed object; an empty one is removed."""
        self._backend.key = key
        if value:
            self._state.update(value)
        else:
            self._state.clear()

    def store_all(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Stores the objects of several keys; empty ones are removed."""
        if hasattr(self._state, "update_all"):
            self._state.update_all(keys, (value or None for value in values))
            return
        for key, value in zip(keys, values, strict=True):
            self.store(key, value)

    def keys(self) -> Iterator[Any]:
        """All keys."""
        return self._backend.keys(self._name)

    def sweep(self, count: int, remains: Callable[[Any], bool]) -> None:
        """Looks at the objects of some keys, those after the last sweep: ``remains`` removes parts, true if it did."""
        keys = list(islice(self._swept, count))
        if len(keys) < count:
            self._swept = self.keys()
        for key in keys:
            (value,) = self.load([key])
            if value is not None and remains(value):
                self.store(key, value)


class ObjectTableState(KeyedObjects):
    """The objects are in a dictionary of the backend."""

    def __init__(self, backend: ObjectStateBackend, name: str):
        super().__init__(backend, _descriptor(name))
        self._table = backend.state_table(name)
        self.entries: dict[Any, Any] = self._table.namespaces[VOID_NAMESPACE]
        self._tracked = self._table.tracked
        self._changed: set[Any] = set()
        if self._tracked:
            self._start_over()
            self._table.on_snapshot(self._start_over)

    def _start_over(self) -> None:
        self._changed = self._table.changed(VOID_NAMESPACE)

    def load(self, keys: Sequence[Any]) -> list[Any]:
        return list(map(self.entries.get, keys))

    def store(self, key: Any, value: Any) -> None:
        if value:
            self.entries[key] = value
        else:
            self.entries.pop(key, None)
        if self._tracked:
            self._changed.add(key)

    def mark_changed(self, keys: Iterable[Any]) -> None:
        """Objects of these keys were changed in ``entries``."""
        if self._tracked:
            self._changed.update(keys)

    def keys(self) -> Iterator[Any]:
        return iter(list(self.entries))


def keyed_objects(backend: KeyedStateBackend, name: str) -> KeyedObjects:
    """The state of a name, with what was restored."""
    if isinstance(backend, ObjectStateBackend):
        return ObjectTableState(backend, name)
    return KeyedObjects(backend, _descriptor(name))


def _descriptor(name: str) -> ValueStateDescriptor:
    return ValueStateDescriptor(name, Types.PICKLED_BYTE_ARRAY())
