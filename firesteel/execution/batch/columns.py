"""Records of numbers as columns, which cross an exchange and are sorted without being objects.

To bring objects into the order of their keys is a walk through memory: each that is pickled, and each that is
processed, is far from the one before. So where all records of a batch are ints, floats, or tuples or Rows of these, and
their keys are ints, they become columns while they are still in the processor's cache, and objects again just before
they are processed. What comes out is what went in: a batch with anything else in it, also a bool, a subclass of int or
an int of more than 64 bits, is pickled.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from importlib.util import find_spec
from typing import Any, NamedTuple

from firesteel.common.types import Row, named_rows

__all__ = [
    "Columns",
    "Layout",
    "Shape",
    "SortedPart",
    "are_columns",
    "decode_columns",
    "has_numpy",
    "numpy_type",
    "sort_columns",
]

_MAGIC = 0x43
"""The first byte; that of a pickle is 0x80."""
_HEADER = struct.Struct("<BBBBBBH")
_CHUNK_RECORDS = 1024
"""So many records are made at a time: as objects they still are in the processor's cache when they are processed."""

has_numpy = sys.byteorder == "little" and find_spec("numpy") is not None
"""Whether columns can be used at all: they are written as they are in memory."""

SortedPart = tuple[Any, list[Any], "list[int] | None", bool]
"""Key, records, their timestamps, and whether these are the last of the key."""


class Shape(IntEnum):
    """What a record is."""

    NUMBER = 0
    TUPLE = 1
    ROW = 2


class Layout(NamedTuple):
    """Which columns there are: the fields of the record, then its key if that is none of them, then its timestamp."""

    shape: Shape
    names: tuple[str, ...] | None
    """Those of Rows, if they have names."""
    fields: int
    key: int
    """The column of the key."""
    with_timestamps: bool
    codes: str
    """A type code of ``array`` for each column: q or d."""

    def encode(self, columns: Sequence[Any]) -> bytes:
        """A frame of a row."""
        names = b"" if self.names is None else pickle.dumps(self.names, 5)
        header = _HEADER.pack(
            _MAGIC, self.shape, self.fields, self.key, self.with_timestamps, len(self.codes), len(names)
        )
        return b"".join((header, self.codes.encode(), names, *(column.tobytes() for column in columns)))


class Columns(NamedTuple):
    """Records as columns: ``array`` objects, or those of numpy."""

    layout: Layout
    columns: tuple[Any, ...]

    def records(self, begin: int, end: int) -> tuple[list[Any], list[int] | None]:
        """Some of the records and their timestamps."""
        shape, names, fields, _, with_timestamps, _ = self.layout
        columns = [column[begin:end].tolist() for column in self.columns]
        timestamps = columns.pop() if with_timestamps else None
        if shape is Shape.NUMBER:
            return columns[0], timestamps
        rows = zip(*columns[:fields], strict=True)
        if shape is Shape.TUPLE:
            return list(rows), timestamps
        return [Row(*row) for row in rows] if names is None else list(named_rows(names, rows)), timestamps


def numpy_type(code: str) -> str:
    """What numpy calls the type of a column."""
    return "<i8" if code == "q" else "<f8"


def are_columns(frame: memoryview) -> bool:
    """Whether a frame of a row holds columns, and not a pickle."""
    return frame[0] == _MAGIC


def decode_columns(frame: memoryview) -> Columns:
    """The columns of a frame, where they are in memory."""
    import numpy

    _, shape, fields, key, with_timestamps, count, length = _HEADER.unpack_from(frame)
    names_at = _HEADER.size + count
    begin = names_at + length
    codes = bytes(frame[_HEADER.size : names_at]).decode()
    names = pickle.loads(frame[names_at:begin]) if length else None
    layout = Layout(Shape(shape), names, fields, key, bool(with_timestamps), codes)
    size = (len(frame) - begin) // count
    columns = [
        numpy.frombuffer(frame[begin + place * size : begin + (place + 1) * size], dtype=numpy_type(code))
        for place, code in enumerate(codes)
    ]
    return Columns(layout, tuple(columns))


def sort_columns(parts: Sequence[Columns]) -> Iterator[SortedPart]:
    """Records of the same layout by key, those of a key by timestamp or as they came, and in parts if they are many."""
    import numpy

    layout = parts[0].layout
    columns = [numpy.concatenate(pieces) for pieces in zip(*(part.columns for part in parts), strict=True)]
    keys = columns[layout.key]
    # the last of what is given to lexsort is the first to sort by
    order = numpy.lexsort((columns[-1], keys)) if layout.with_timestamps else numpy.argsort(keys, kind="stable")
    in_order = Columns(layout, tuple(column[order] for column in columns))
    keys = keys[order]
    ends = [*(numpy.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
    return _groups(in_order, keys[[0, *ends[:-1]]].tolist(), ends)


def _groups(records: Columns, keys: list[int], ends: list[int]) -> Iterator[SortedPart]:
    """The groups of keys whose records end at the given places; one may be in several chunks."""
    values: list[Any] = []
    timestamps: list[int] | None = None
    begin = first = last = 0  # the chunk is from first to last
    for key, end in zip(keys, ends, strict=True):
        while begin < end:
            if begin == last:
                first, last = last, min(last + _CHUNK_RECORDS, ends[-1])
                values, timestamps = records.records(first, last)
            upto = min(end, last)
            part = values[begin - first : upto - first]
            times = None if timestamps is None else timestamps[begin - first : upto - first]
            begin = upto
            yield key, part, times, upto == end
