"""Columns of all keys of a join as state tables of the hashmap backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.typeinfo import Types
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, ObjectStateBackend
from firesteel.runtime.state.api.chunks import CHUNK_ENTRIES, encode_chunks
from firesteel.runtime.state.columnar.keys import BatchKeys, are_integers
from firesteel.runtime.state.columnar.slots import KeySlots, key_slots
from firesteel.runtime.state.hashmap.state_table import Cleanup, StateTable
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["SideRows", "SideTables", "key_types", "value_state"]


class SideRows(Protocol):
    """What is kept of one side, or of both, by slots of keys."""

    is_changed: Any
    """Which keys have changed since the last snapshot."""

    def reserve(self, capacity: int) -> None:
        """Makes room for slots of keys."""

    def load(self, keys: Any, stored: Sequence[Any]) -> None:
        """Adds what was stored of keys."""

    def entries(self, keys: Any) -> Sequence[Any]:
        """What is stored of each key."""

    def sizes(self, keys: Any) -> Any:
        """Of each key a number that is 0 if nothing is kept."""

    def release(self, keys: Any) -> None:
        """Forgets keys of which nothing is kept."""


class SideTables:
    """Gives keys slots, which all sides share; each side is a state table of which snapshots are made."""

    def __init__(self, backend: ObjectStateBackend, names: Sequence[str], types: Sequence[Any], sides: Sequence[Any]):
        self._keys = key_slots(types)
        self._sides: Sequence[SideRows] = sides
        self._tables: list[_SideTable] = []
        restored: list[Mapping[Any, Any]] = []
        for name, side in zip(names, sides, strict=True):
            backend.get_state(value_state(name), internal=True)
            table = cast("StateTable", backend.state_table(name))
            restored.append(table.namespaces.get(VOID_NAMESPACE, {}))
            self._tables.append(_SideTable(name, table.tracked, self._keys, side))
        self._load(restored)
        for made in self._tables:
            backend.replace_table(made)

    def _load(self, restored: Sequence[Mapping[Any, Any]]) -> None:
        keys = list(dict.fromkeys(key for entries in restored for key in entries))
        if not keys:
            return
        self._keys.load(keys)
        for side, entries in zip(self._sides, restored, strict=True):
            side.reserve(self._keys.capacity)
            slots = np.array([slot for slot, key in enumerate(keys) if key in entries], np.int64)
            side.load(slots, [entries[keys[slot]] for slot in slots.tolist()])

    def lookup(self, keys: BatchKeys) -> Any:
        """The slot of each distinct key of a batch."""
        slots = self._keys.find(keys)
        is_new = slots < 0
        if is_new.any():
            codes = np.flatnonzero(is_new)
            taken = self._keys.take(len(codes))
            self._keys.insert(keys, codes, taken)
            slots[codes] = taken
            for side in self._sides:
                side.reserve(self._keys.capacity)
        return slots

    def release(self, slots: Any) -> None:
        """Forgets those of some keys, each given once, of which nothing is kept."""
        is_empty = np.ones(len(slots), bool)
        for side in self._sides:
            is_empty &= side.sizes(slots) == 0
        empty = slots[is_empty]
        if len(empty):
            for table in self._tables:
                table.forget(empty)
            self._keys.remove(empty)


class _SideTable(StateTable):
    """The state table of one side."""

    def __init__(self, name: str, tracked: bool, keys: KeySlots, side: SideRows):
        super().__init__(name, tracked)
        self._keys = keys
        self._side = side
        self._removed: set[Any] = set()
        """Keys that the last snapshot may have and that are not there any more, unless they came again."""
        self.namespaces = {VOID_NAMESPACE: _Entries(self)}  # type: ignore[dict-item]

    def forget(self, slots: Any) -> None:
        """Nothing is kept of these keys on any side."""
        if self.tracked:
            self._removed.update(self._keys.keys_at(slots))
        self._side.release(slots)
        self._side.is_changed[slots] = False

    def encode_all(self, cleanup: Cleanup | None, now: int) -> Iterator[bytes]:
        return self._encode(self.slots())

    def encode_changes(self) -> Iterator[bytes]:
        changed = np.flatnonzero(self._side.is_changed)
        sizes = self._side.sizes(changed)
        removed = list(self._removed)
        slots = self._keys.slots_of(removed)
        # a key may have come again on the other side only
        is_gone = (slots < 0) | (self._side.sizes(slots) == 0)
        gone = [key for key, there in zip(removed, is_gone.tolist(), strict=True) if there]
        gone += self._keys.keys_at(changed[sizes == 0])
        yield from encode_chunks(self.name, VOID_NAMESPACE, gone, None)
        yield from self._encode(changed[sizes > 0])

    def _encode(self, slots: Any) -> Iterator[bytes]:
        for start in range(0, len(slots), CHUNK_ENTRIES):
            part = slots[start : start + CHUNK_ENTRIES]
            yield from encode_chunks(self.name, VOID_NAMESPACE, self._keys.keys_at(part), self._side.entries(part))

    def slots(self) -> Any:
        """The slots of keys of which something is kept."""
        live = self._keys.live()
        return live[self._side.sizes(live) > 0]

    def keys(self) -> list[Any]:
        """The keys of which something is kept."""
        return self._keys.keys_at(self.slots())

    def entry(self, key: Any) -> Any:
        """What is stored of a key, None if nothing is."""
        slots = self._keys.slots_of([key])
        if slots[0] < 0 or self._side.sizes(slots)[0] == 0:
            return None
        return self._side.entries(slots)[0]

    def count(self) -> int:
        return len(self.slots())

    def start_over(self, *, known: bool = False) -> None:
        self._side.is_changed[:] = False
        self._removed = set()


class _Entries(Mapping[Any, Any]):
    """The entries as those read them who know state tables."""

    def __init__(self, table: _SideTable):
        self._table = table

    def __getitem__(self, key: Any) -> Any:
        stored = self._table.entry(key)
        if stored is None:
            raise KeyError(key)
        return stored

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.keys())

    def __len__(self) -> int:
        return self._table.count()


def key_types(types: Sequence[RowType], keys: Sequence[Sequence[int]]) -> tuple[Any, ...]:
    """The types of the key's columns, if both sides have the same, or integers of any width."""
    schemas = [columns_schema(type_) for type_ in types]
    found = [
        tuple(schema.field(column).type for column in columns) for schema, columns in zip(schemas, keys, strict=True)
    ]
    return found[0] if found[0] == found[1] or all(map(are_integers, found)) else ()


def value_state(name: str) -> ValueStateDescriptor:
    """The state that one side is in snapshots: an object per key."""
    return ValueStateDescriptor(name, Types.PICKLED_BYTE_ARRAY())
