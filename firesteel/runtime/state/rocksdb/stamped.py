"""TTL cells of the RocksDB backend: the value of a row ends with the time of the last access.

So expiry is judged and a time of access replaced without unpickling anything. A new cell has no originals (see
``values``): they are added where it is stored.

Flink removes expired values while RocksDB compacts; from Python there is no way to take part in that, so a few rows are
looked at as the state is used, and at each snapshot, until all have been, and again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from firesteel.api.state import StateDescriptor
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.runtime.state.api.ttl import CellFormat, alive_after
from firesteel.runtime.state.rocksdb.database import ColumnFamilyTable
from firesteel.runtime.state.rocksdb.keys import decode_object, encode_object
from firesteel.runtime.state.rocksdb.states import (
    RocksDBListState,
    RocksDBMapState,
    RocksDBState,
    RocksDBValueState,
    pack_number,
)
from firesteel.runtime.state.rocksdb.value_encoding import (
    PROTOCOL,
    STAMP_BYTES,
    originals_of,
    pack_stamp,
    stamp_of,
    without_originals,
)
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend

__all__ = ["RAW_STATES", "SWEEP_ROWS", "RowSweep", "StampedState"]

SWEEP_ROWS = 512
"""Rows that are looked at together, after as many accesses: so each access pays for one."""

_END = b"\xff" * 16


class StampedState(RocksDBState):
    """What the raw states share."""

    def cell_format(self) -> CellFormat:
        # pickling copies
        stamp, loads = self._stamp, pickle.loads
        return CellFormat(stamp, stamp, loads, loads, stamp_of, _touched, argument=copy_value, result=_same)

    def slots(self) -> Iterator[tuple[bytes, bytes]]:
        """The current key's rows."""
        if self._backend.key is not self._key:
            self._turn()
        return self._table.scan_prefix(self._row)

    def change(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replaces rows, and deletes those for which there is None."""
        for row, cell in changes:
            if cell is None:
                self._delete(row)
            else:
                self._put(row, cell)

    def _stamp(self, value: Any, now: int) -> bytes:
        try:
            return self._dumps(value, PROTOCOL) + pack_stamp(now)
        except Exception:  # noqa: BLE001 - user classes may raise anything
            return self._dump_differently(value) + pack_stamp(now)


class StampedValueState(StampedState, RocksDBValueState):
    """One cell per key."""

    def value(self) -> bytes | None:
        """The current key's cell, or None."""
        if self._backend.key is not self._key:
            self._turn()
        return self._get(self._row)

    def update(self, value: bytes) -> None:
        """Replaces the current key's cell."""
        if self._backend.key is not self._key:
            self._turn()
        self._put(self._row, _with_originals(value, self._trailer) if self._trailer else value)

    def store_in(self, namespace: Any, value: bytes) -> None:
        """Sets the current key's cell in a namespace."""
        turn_back = self._turn_to(namespace)
        self.update(value)
        turn_back()


class StampedListState(StampedState, RocksDBListState):
    """A list of cells per key."""

    def add(self, value: bytes) -> None:
        """Appends one cell."""
        if self._backend.key is not self._key:
            self._turn()
        row = self._row + pack_number(self._next_number())
        self._put(row, _with_originals(value, self._trailer) if self._trailer else value)

    def _moved(self, data: bytes) -> bytes:
        return _with_originals(data, self._trailer)


class StampedMapState(StampedState, RocksDBMapState):
    """A map of cells per key."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: ColumnFamilyTable, descriptor: StateDescriptor):
        super().__init__(backend, table, descriptor)
        self.at: Callable[[bytes], bytes | None] = table.get
        self.put_at: Callable[[bytes, bytes], None] = table.put
        self.remove_at: Callable[[bytes], None] = table.delete

    def slot_of(self, key: Any) -> bytes:
        """The row of a map key."""
        if self._backend.key is not self._key:
            self._turn()
        return self._row + encode_object(key)

    def put(self, key: Any, value: bytes) -> None:
        """Sets the cell of a map key."""
        if self._backend.key is not self._key:
            self._turn()
        trailer = self._trailer_with(key)
        self._put(self._row + encode_object(key), _with_originals(value, trailer) if trailer else value)

    def key_of(self, slot: bytes, cell: bytes) -> Any:
        """The map key of a row."""
        originals = originals_of(cell[:-STAMP_BYTES])
        return decode_object(slot[len(self._row) :]) if originals is None else originals[2]


RAW_STATES: dict[str, type[StampedState]] = {
    "value": StampedValueState,
    "list": StampedListState,
    "map": StampedMapState,
    "reducing": StampedValueState,
    "aggregating": StampedValueState,
}


def _same(value: Any) -> Any:
    return value


def _touched(cell: bytes, now: int) -> bytes:
    return cell[:-STAMP_BYTES] + pack_stamp(now)


def _with_originals(cell: bytes, trailer: bytes) -> bytes:
    return without_originals(cell[:-STAMP_BYTES]) + trailer + cell[-STAMP_BYTES:]


class RowSweep:
    """Checks rows of a table in turns and deletes those that have expired."""

    def __init__(self, table: ColumnFamilyTable, config: StateTtlConfig):
        self._table = table
        self._config = config
        self._accesses = 0
        self._swept_to = b""

    def clean_up(self, now: int, cells: int = 1) -> None:
        """Counts an access, and sweeps after ``SWEEP_ROWS`` of them."""
        self._accesses += cells
        if self._accesses >= SWEEP_ROWS:
            self.sweep(now)

    def sweep(self, now: int) -> None:
        """Checks the next rows and removes those that have expired."""
        self._accesses = 0
        after = alive_after(self._config, now)
        rows = list(islice(self._table.scan(self._swept_to, _END), SWEEP_ROWS))
        for row, data in rows:
            if stamp_of(data) <= after:
                self._table.delete(row)
        # a row right after the last one begins with it
        self._swept_to = rows[-1][0] + b"\0" if len(rows) == SWEEP_ROWS else b""
