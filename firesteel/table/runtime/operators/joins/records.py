"""The rows that a regular join keeps of one side: columns, found by key and by identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from firesteel.runtime.state.columnar.hashing import SEED, hash_words
from firesteel.runtime.state.columnar.integer_index import IntegerIndex
from firesteel.runtime.state.columnar.slots import grown
from firesteel.table.runtime.operators.joins.keyed_rows import KeyedRows
from firesteel.table.runtime.operators.joins.sides import JoinSide, Record

__all__ = ["Records"]

_COUNTS, _ASSOCIATIONS, _WRITTEN, _HASHES = "counts", "associations", "written", "hashes"


class Records(KeyedRows):
    """A record is a row, how often it occurs, with how many rows it is joined, and when it was written.

    Rows are told apart as in Flink: by the unique key of the side, or by all columns and then counted. A side without a
    unique key that only grows has a record for each row.
    """

    def __init__(self, side: JoinSide):
        super().__init__(side.row_type, (_COUNTS, _ASSOCIATIONS, _WRITTEN, _HASHES))
        self.side = side
        self._is_counted = side.unique_key is None and not side.only_grows
        self._identity: tuple[int, ...] = side.unique_key or ()
        if self._is_counted:
            self._identity = tuple(range(len(side.row_type.fields)))
        self._index = IntegerIndex()
        """Records by the hash of their identity, if the key of the join is not enough."""
        self.is_changed = np.zeros(len(self.keys), bool)

    @property
    def counts(self) -> Any:
        """How often the row of each record occurs."""
        return self.columns[_COUNTS]

    @property
    def associations(self) -> Any:
        """With how many rows each record is joined."""
        return self.columns[_ASSOCIATIONS]

    @property
    def _written(self) -> Any:
        return self.columns[_WRITTEN]

    # -- reading -----------------------------------------------------------------------------------------------

    def matches(self, keys: Any, now: int) -> tuple[Any, Any]:
        """The records of keys, which may be several times there, and for each the position of its key."""
        positions, records = self.members(keys)
        if self.side.ttl_ms and len(records):
            kept = self._written[records] > now - self.side.ttl_ms
            if not kept.all():
                positions, records = positions[kept], records[kept]
        return positions, records

    def entries(self, keys: Any) -> list[tuple[Record, ...]]:
        _, records = self.members(keys)
        parts = (self.counts[records].tolist(), self.associations[records].tolist(), self._written[records].tolist())
        found = list(map(list, zip(self.tuples(records), *parts, strict=True)))
        ends = np.cumsum(self.sizes(keys))
        starts = ends - self.sizes(keys)
        return [tuple(found[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    # -- writing -----------------------------------------------------------------------------------------------

    def reserve(self, capacity: int) -> None:
        super().reserve(capacity)
        self.is_changed = grown(self.is_changed, capacity)

    def load(self, keys: Any, stored: Sequence[Any]) -> None:
        entries = list(map(_stored_records, stored))
        records = [record for found in entries for record in found]
        if not records:
            return
        data = self.codec.encode([record[0] for record in records])
        of_keys = np.repeat(keys, [len(found) for found in entries])
        slots = self._add(data, of_keys, self._hash(data, of_keys) if self._identity else None)
        _, counts, associations, written = zip(*records, strict=True)
        self.counts[slots] = counts
        self.associations[slots] = associations
        self._written[slots] = written

    def associate(self, records: Any, associations: Any, now: int) -> None:
        """Sets with how many rows records are joined."""
        self.associations[records] = associations
        self._written[records] = now
        self.is_changed[self.keys[records]] = True

    def apply(self, data: Any, keys: Any, is_added: Any, associations: Any, now: int) -> None:
        """Adds and retracts rows; ``is_added`` is None if all are added, ``associations`` None if they are not kept."""
        self.is_changed[keys] = True
        if self.side.only_grows:
            slots = self._add(data, keys, None)
            self.counts[slots] = 1
            self._written[slots] = now
            if associations is not None:
                self.associations[slots] = associations
            return
        if is_added is None:
            is_added = np.ones(len(keys), bool)
        codes, known, hashes = self._identify(data, keys)
        last_rows = np.zeros(len(known), np.int64)
        last_rows[codes] = np.arange(len(codes))
        if self._is_counted:
            before = np.where(known >= 0, self.counts[known], 0)
            if self.side.ttl_ms:
                before[self._written[known] <= now - self.side.ttl_ms] = 0
            counts = _counts(before, codes, is_added)
            rows = last_rows
            # retracted rows leave the number of associations as it is
            last_added = np.full(len(known), -1)
            last_added[codes[is_added]] = np.flatnonzero(is_added)
        else:
            counts = is_added[last_rows].astype(np.int64)
            rows = last_added = last_rows
        is_known, remains = known >= 0, counts > 0
        self._drop(known[is_known & ~remains])
        is_new = remains & ~is_known
        if is_new.any():
            chosen = rows[is_new]
            new = data if len(chosen) == len(codes) else data.take(pa.array(chosen))
            known[is_new] = self._add(new, keys[chosen], None if hashes is None else hashes[is_new])
        is_kept = remains & is_known
        if not self._is_counted and is_kept.any():
            self.replace(known[is_kept], data.take(pa.array(rows[is_kept])))
        changed = known[remains]
        self.counts[changed] = counts[remains]
        self._written[changed] = now
        if associations is not None:
            has_added = remains & (last_added >= 0)
            self.associations[known[has_added]] = associations[last_added[has_added]]
        self.collect_garbage()

    def expire(self, now: int) -> Any:
        """Removes records that have expired; returns their keys."""
        live = self.live()
        expired = live[self._written[live] <= now - self.side.ttl_ms]
        keys = np.unique(self.keys[expired])
        self.is_changed[keys] = True
        self._drop(expired)
        self.collect_garbage()
        return keys

    def _add(self, data: Any, keys: Any, hashes: Any) -> Any:
        slots = self.append(data, keys)
        self.associations[slots] = 0
        if hashes is not None:
            self.columns[_HASHES][slots] = hashes
            self._index.insert(hashes, slots)
        return slots

    def _drop(self, records: Any) -> None:
        self.remove(records)
        if self._identity and len(records):
            self._index.remove(self.columns[_HASHES][records], records)

    # -- identity ----------------------------------------------------------------------------------------------

    def _hash(self, data: Any, keys: Any) -> Any:
        columns = [data.column(column) for column in self._identity]
        return self.rows.hash(columns, self._identity, hash_words(SEED, keys.astype(np.uint64))).view(np.int64)

    def _identify(self, data: Any, keys: Any) -> tuple[Any, Any, Any]:
        """Numbers the distinct identities: the number of each row, the record of each, or -1, and their hashes."""
        if not self._identity:
            encoded = pa.array(keys).dictionary_encode()
            codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            return codes, self.first(encoded.dictionary.to_numpy()), None
        hashes = self._hash(data, keys)
        codes = pa.array(hashes).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        first_rows = _first_rows(codes)
        columns = [data.column(column) for column in self._identity]
        repeated = np.flatnonzero(first_rows[codes] != np.arange(len(codes)))
        if len(repeated) and not self._are_equal(columns, keys, repeated, first_rows[codes[repeated]]):
            # two identities have the same hash
            texts = zip(keys.tolist(), *(self.decode(at, data.column(at)) for at in self._identity), strict=True)
            numbers: dict[str, int] = {}
            codes = np.array([numbers.setdefault(repr(text), len(numbers)) for text in texts], np.int64)
            first_rows = _first_rows(codes)
        hashes = hashes[first_rows]

        def equal(positions: Any, records: Any) -> Any:
            rows = first_rows[positions]
            same = self.rows.equal(self.row_numbers(records), columns, rows, self._identity)
            return same & (self.keys[records] == keys[rows])

        return codes, self._index.find_equal(hashes, equal), hashes

    def _are_equal(self, columns: list[Any], keys: Any, left: Any, right: Any) -> bool:
        if (keys[left] != keys[right]).any():
            return False
        numbers, others = pa.array(left), pa.array(right)
        return all(
            self.rows.are_equal(at, column.take(numbers), column.take(others)).all()
            for at, column in zip(self._identity, columns, strict=True)
        )


def _first_rows(codes: Any) -> Any:
    rows = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    rows[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return rows


def _counts(before: Any, codes: Any, is_added: Any) -> Any:
    """How often rows occur after additions and retractions in order; what is not there is not retracted.

    >>> _counts(np.array([0, 2]), np.array([0, 1, 0]), np.array([False, False, True])).tolist()
    [1, 1]
    """
    if is_added.all():
        return before + np.bincount(codes, minlength=len(before))
    order = np.argsort(codes, kind="stable")
    steps = np.where(is_added[order], 1, -1)
    starts = np.searchsorted(codes[order], np.arange(len(before)))
    sums = np.cumsum(steps)
    sums += np.repeat(before - (sums[starts] - steps[starts]), np.diff(np.append(starts, len(codes))))
    ends = np.append(starts[1:], len(codes)) - 1
    return sums[ends] - np.minimum(np.minimum.reduceat(sums, starts), 0)


def _stored_records(stored: Any) -> Sequence[Record]:
    """The records of a key in stored state. Earlier versions had a dictionary of them, or a list of rows."""
    if not stored:
        return ()
    if isinstance(stored, dict):
        return list(stored.values())
    if isinstance(stored, list):
        return [[row, 1, 0, 0] for row in stored]
    return cast("tuple[Record, ...]", stored)
