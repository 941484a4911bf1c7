"""Repartitions, on disk, a bucket of keys that does not fit into memory."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mmh3

from firesteel.execution.batch.grouped_input import Grouping, count_records
from firesteel.execution.stages.exchange_rows import ExchangeRow
from firesteel.execution.stages.row_spool import RowSpool
from firesteel.runtime.model.key_groups import encode_key
from firesteel.runtime.model.serialization import deserialize_batch, serialize_records

__all__ = ["BucketSplit", "is_large"]

_MAX_RECORDS = 500_000
_MAX_BYTES = 64 << 20
_COUNTED_FROM = 4 << 20
"""Buckets with fewer bytes cannot have too many records."""
_MAX_PARTS = 256
_SEED = 7

_Place = tuple[int, int, int]
"""Input, position in the file and length."""


def is_large(run: RowSpool) -> bool:
    """Whether the records of a bucket should not be held in memory together."""
    return run.bytes > _MAX_BYTES or (run.bytes > _COUNTED_FROM and _records(run) > _MAX_RECORDS)


def _records(run: RowSpool) -> int:
    return sum(map(count_records, run.rows()))


class BucketSplit:
    """The records of a bucket in parts by their keys' hash. Each key is in one part, except that of a *heavy* key, one
    with very many records, only the first are: the rest is by itself, to be read as it is needed."""

    def __init__(self, groupings: Mapping[int, Grouping], run: RowSpool):
        self._groupings = groupings
        self.parts = min(_MAX_PARTS, max(_records(run) * 2 // _MAX_RECORDS, run.bytes * 2 // _MAX_BYTES) + 1)
        self._file = tempfile.TemporaryFile(prefix="firesteel-bucket-")  # noqa: SIM115 - closed in close
        self._places: list[list[_Place]] = [[] for _ in range(self.parts)]
        self._heavy: dict[Any, list[_Place]] = {}
        self._counts: Counter[Any] = Counter()
        self._bytes_per_record = max(1, run.bytes // max(1, _records(run)))

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()

    def add(self, row: ExchangeRow, index: int) -> None:
        """Takes the records of a row."""
        grouping = self._groupings[index]
        grouping.add_row(row)
        plain: dict[int, list[Any]] = defaultdict(list)
        for key, values in grouping.plain.items():
            if self._is_heavy(key, len(values)):
                self._write(self._heavy.setdefault(key, []), index, values, None)
            else:
                plain[self._part_of(key)] += values
        stamped: dict[int, tuple[list[Any], list[int]]] = defaultdict(lambda: ([], []))
        for key, (_, _, values, timestamps) in grouping.stamped.items():
            if self._is_heavy(key, len(values)):
                self._write(self._heavy.setdefault(key, []), index, values, timestamps)
            else:
                part = stamped[self._part_of(key)]
                part[0].extend(values)
                part[1].extend(timestamps)
        grouping.clear()
        for number, values in plain.items():
            self._write(self._places[number], index, values, None)
        for number, (values, timestamps) in stamped.items():
            self._write(self._places[number], index, values, timestamps)

    def read(self, part: int) -> Iterator[tuple[int, Sequence[Any], Sequence[int] | None]]:
        """The records of a part, with the inputs they came through, in the order they were added."""
        for place in self._places[part]:
            yield place[0], *self._read(place)

    def read_heavy(self, key: Any, index: int) -> Iterator[tuple[Sequence[Any], Sequence[int] | None]]:
        """Those records of a key and an input that are in no part."""
        for place in self._heavy.get(key, ()):
            if place[0] == index:
                yield self._read(place)

    def _is_heavy(self, key: Any, more: int) -> bool:
        # its first records stay where all others are, so that the key is found there
        seen = self._counts[key]
        self._counts[key] = seen + more
        return seen > 0 and (
            key in self._heavy or seen * 4 > _MAX_RECORDS or seen * self._bytes_per_record * 4 > _MAX_BYTES
        )

    def _part_of(self, key: Any) -> int:
        return mmh3.mmh3_32_uintdigest(encode_key(key), _SEED) % self.parts

    def _write(self, places: list[_Place], index: int, values: list[Any], timestamps: list[int] | None) -> None:
        payload = serialize_records(values, timestamps)
        places.append((index, self._file.tell(), len(payload)))
        self._file.write(payload)

    def _read(self, place: _Place) -> tuple[Sequence[Any], Sequence[int] | None]:
        self._file.seek(place[1])
        batch = deserialize_batch(self._file.read(place[2]))
        return batch.values, batch.timestamps
