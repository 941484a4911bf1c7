"""Migration of rows with an earlier key encoding to the current one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from typing import Any

from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.runtime.state.api.chunks import is_timer_table
from firesteel.runtime.state.api.moved_keys import moved_out, two_states
from firesteel.runtime.state.rocksdb.database import ColumnFamilyTable, Database
from firesteel.runtime.state.rocksdb.keys import KeyEncoder, encode_namespace, encode_object, split_row
from firesteel.runtime.state.rocksdb.row_encoding import Rows, RowWriter, bounds_of, group_of, row_originals, timer_row

__all__ = ["MovedEntries", "move_rows"]


def move_rows(
    database: Database, states: Mapping[str, StateMeta], encoder: KeyEncoder, key_groups: KeyGroupRange
) -> None:
    """Moves every row of the database to where its key is looked up; refuses what cannot be."""
    for name, table in database.tables.items():
        meta = StateMeta(name, "timers") if is_timer_table(name) else states[name]
        # closed at once where a row is refused: a reference to the error must not keep the database open
        with closing(table.scan(*bounds_of(key_groups))) as rows:
            for start, group in groupby(rows, key=_start):
                _move_group(table, meta, encoder, key_groups, start, group)


def _start(row: tuple[bytes, bytes]) -> bytes:
    """The part of a row's key that encodes key and namespace."""
    return row[0][: len(row[0]) - len(split_row(row[0])[2])]


def _move_group(
    table: ColumnFamilyTable, meta: StateMeta, encoder: KeyEncoder, key_groups: KeyGroupRange, start: bytes, rows: Rows
) -> None:
    new_start: bytes | None = None
    changes: dict[bytes, bytes | None] = {}
    for row, data in rows:
        originals = row_originals(meta, data)
        if originals is None:
            continue  # the row's key can be decoded: no such key has moved
        key, namespace, *map_key = originals
        if new_start is None:
            new_start = encoder.prefix_of(key) + encode_namespace(namespace)
            if group_of(new_start) not in key_groups:
                raise moved_out(table.name, key)
            if new_start != start and next(table.scan_prefix(new_start), None) is not None:
                raise two_states(table.name, key)
        new_row = new_start + (encode_object(map_key[0]) if map_key else row[len(start) :])
        if new_row == row:
            continue
        if changes.get(new_row) is not None or (new_start == start and table.get(new_row) is not None):
            raise two_states(table.name, map_key[0] if map_key else key)
        changes.setdefault(row, None)
        changes[new_row] = data
    table.change(changes.items())


class MovedEntries:
    """Entries of a canonical snapshot whose keys belong to other key groups than those they are stored in."""

    def __init__(self, encoder: KeyEncoder, key_groups: KeyGroupRange):
        self._encoder = encoder
        self._key_groups = key_groups
        self._entries: list[tuple[str, Any, Any, Any]] = []

    def take(
        self, table: str, stored_group: int, chunks: Iterable[tuple[Any, list[Any], list[Any]]]
    ) -> list[tuple[Any, list[Any], list[Any]]]:
        """The entries of one key group (namespace, keys, values) without those that have moved, which are kept."""
        left: list[tuple[Any, list[Any], list[Any]]] = []
        seen: set[Any] = set()
        for namespace, keys, values in chunks:
            staying: list[tuple[Any, Any]] = []
            for key, value in zip(keys, values, strict=True):
                own_key = key[1] if is_timer_table(table) else key
                group = group_of(self._encoder.prefix_of(own_key))
                if group not in self._key_groups:
                    raise moved_out(table, own_key)
                if (namespace, key) in seen:
                    raise two_states(table, own_key)
                seen.add((namespace, key))
                if group == stored_group:
                    staying.append((key, value))
                else:
                    self._entries.append((table, namespace, key, value))
            left.append((namespace, [key for key, _ in staying], [value for _, value in staying]))
        return left

    def write(self, database: Database, states: Mapping[str, StateMeta], writer: RowWriter) -> None:
        """Writes those that were kept, once all others are in the database."""
        for name, namespace, key, value in self._entries:
            table = database.table(name)
            rows = list(self._rows(name, states, writer, namespace, key, value))
            if rows and next(table.scan_prefix(_start(rows[0])), None) is not None:
                raise two_states(name, key[1] if is_timer_table(name) else key)
            table.change(rows)
        self._entries.clear()

    def _rows(
        self, name: str, states: Mapping[str, StateMeta], writer: RowWriter, namespace: Any, key: Any, value: Any
    ) -> Iterator[tuple[bytes, bytes]]:
        if is_timer_table(name):
            yield timer_row(self._encoder, key, value)
        else:
            yield from writer.rows(states[name], namespace, [key], [value])
