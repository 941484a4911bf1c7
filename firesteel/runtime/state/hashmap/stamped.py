"""TTL cells of the hashmap backend: ``[value, last access]``, in the ordinary states of a backend."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from firesteel.api.state import StateDescriptor
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.ttl import CellFormat, alive_after, stored_remainder
from firesteel.runtime.state.hashmap.state_table import StateTable
from firesteel.runtime.state.hashmap.states import HashMapState
from firesteel.types.copying import copy_value

__all__ = ["IncrementalCleanup", "cell_format", "raw_kind"]


def _same(value: Any) -> Any:
    return value


def _stamp(value: Any, now: int) -> list[Any]:
    return [value, now]


def _touched(cell: list[Any], now: int) -> list[Any]:
    return [cell[0], now]


def _stamp_copy(value: Any, now: int) -> list[Any]:
    return [copy_value(value), now]


def _content_copy(cell: list[Any]) -> Any:
    return copy_value(cell[0])


_content, _last_access = itemgetter(0), itemgetter(1)
_SHARED = CellFormat(_stamp, _stamp, _content, _content, _last_access, _touched, _same, _same)
_OWNED = CellFormat(_stamp, _stamp_copy, _content, _content_copy, _last_access, _touched, copy_value, copy_value)


def cell_format(shares: bool) -> CellFormat:
    """Returns the format of cells; with ``shares`` a value is not copied on its way in and out."""
    return _SHARED if shares else _OWNED


def raw_kind(kind: str) -> str:
    """Returns the kind of state that holds the cells of another kind."""
    return kind if kind in ("list", "map") else "value"


class IncrementalCleanup:
    """Checks a few entries of a state at a time, in all its namespaces, and removes the expired ones."""

    def __init__(self, raw: HashMapState, state_table: StateTable, descriptor: StateDescriptor, size: int):
        assert descriptor.ttl_config is not None
        self._raw = raw
        self._state_table = state_table
        self._namespaces = state_table.namespaces
        self._config: StateTtlConfig = descriptor.ttl_config
        self._remainder = stored_remainder(descriptor.kind)
        self._size = size
        self._to_visit: Iterator[tuple[Any, Any]] = iter(())

    def clean_up(self, now: int, _cells: int = 1) -> None:
        """Checks the next entries."""
        namespaces, remainder, after = self._namespaces, self._remainder, alive_after(self._config, now)
        visited = 0
        for namespace, key in islice(self._to_visit, self._size):
            visited += 1
            stored = namespaces.get(namespace, {}).get(key)
            if stored is not None:
                left = remainder(stored, after)
                if left is not stored:
                    self._replace(namespace, key, left)
        if visited < self._size:
            self._to_visit = _entries_of(namespaces)

    def _replace(self, namespace: Any, key: Any, left: Any) -> None:
        table = self._namespaces[namespace]
        if left is None:
            del table[key]
        else:
            table[key] = left
        if self._state_table.tracked:
            self._state_table.changed(namespace).add(key)
        if not table and namespace is not VOID_NAMESPACE and not self._raw.is_at(namespace):
            self._state_table.drop(namespace)


def _entries_of(namespaces: dict[Any, dict[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for namespace in list(namespaces):
        for key in list(namespaces.get(namespace, ())):
            yield namespace, key
