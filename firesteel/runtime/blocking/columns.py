"""Records of numbers as columns, which cross an exchange and are sorted without being objects.

To bring objects into the order of their keys is a walk through memory: each that is pickled, and each that is
processed, is far from the one before. So where all records of a batch are ints, floats or tuples of these, and their
keys are ints, they become columns while they are still in the processor's cache, and objects again just before they are
processed. What comes out is what went in: a batch with anything else in it, also a bool, a subclass of int or an int of
more than 64 bits, is pickled.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

__all__ = [
    "ColumnRuns",
    "Columns",
    "Layout",
    "are_columns",
    "decode_columns",
    "has_numpy",
    "sort_columns",
    "to_columns",
]

_MAGIC = 0x43
"""The first byte; that of a pickle is 0x80."""
_HEADER = 5
_MOST_FIELDS = 100
_CODES: dict[type, str] = {int: "q", float: "d"}
_IS_TUPLE, _WITH_TIMESTAMPS = 1, 2
_CHUNK_RECORDS = 4096
_RUN_VALUES = 2_000_000
"""How many numbers are gathered before they are divided."""

has_numpy = sys.byteorder == "little" and find_spec("numpy") is not None
"""Whether columns can be used at all: they are written as they are in memory."""


class Layout(NamedTuple):
    """Which columns there are: the fields of the record, then its key if that is none of them, then its timestamp."""

    is_tuple: bool
    with_timestamps: bool
    fields: int
    key: int
    """The column of the key."""
    codes: str
    """A type code of ``array`` for each column."""

    def header(self) -> bytes:
        """What stands before the columns."""
        flags = _IS_TUPLE * self.is_tuple | _WITH_TIMESTAMPS * self.with_timestamps
        return bytes((_MAGIC, flags, self.fields, self.key, len(self.codes))) + self.codes.encode()

    def encode(self, columns: Sequence[Any]) -> bytes:
        """A frame of a row."""
        return b"".join((self.header(), *(column.tobytes() for column in columns)))


class Columns(NamedTuple):
    """Records as columns: ``array`` objects, or what numpy makes of them."""

    layout: Layout
    columns: tuple[Any, ...]

    def records(self, begin: int, end: int) -> tuple[list[Any], list[int] | None]:
        """Some of the records and their timestamps."""
        layout = self.layout
        columns = [column[begin:end].tolist() for column in self.columns]
        timestamps = columns.pop() if layout.with_timestamps else None
        return list(zip(*columns[: layout.fields], strict=True)) if layout.is_tuple else columns[0], timestamps


def to_columns(keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int] | None) -> Columns | None:
    """The columns of records, None if they cannot be put so. There is at least one."""
    is_tuple = values[0].__class__ is tuple
    fields: tuple[Sequence[Any], ...] = (values,)
    if is_tuple:
        if set(map(type, values)) != {tuple}:
            return None
        try:
            fields = tuple(zip(*values, strict=True))
        except ValueError:
            return None
        if not 0 < len(fields) < _MOST_FIELDS:
            return None
    # almost always the very same objects, which are compared fast
    key = next((index for index, field in enumerate(fields) if list(field) == keys), len(fields))
    columns = fields if key < len(fields) else (*fields, keys)
    if timestamps is not None:
        columns = (*columns, timestamps)
    encoded = []
    for column in columns:
        types = set(map(type, column))
        code = _CODES.get(types.pop()) if len(types) == 1 else None
        if code is None:
            return None
        try:
            encoded.append(array(code, column))
        except OverflowError:
            return None
    codes = "".join(column.typecode for column in encoded)
    if codes[key] != "q":
        return None
    return Columns(Layout(is_tuple, timestamps is not None, len(fields), key, codes), tuple(encoded))


class ColumnRuns:
    """Columns of the same layout, gathered to be divided by bucket all at once."""

    def __init__(self) -> None:
        self.count = 0
        self._layout: Layout | None = None
        self._places: list[array[int]] = []
        self._columns: list[tuple[Any, ...]] = []

    def fits(self, columns: Columns) -> bool:
        """Whether there is room for more columns, and they are like those that are there."""
        return not self.count or (self._layout == columns.layout and self.count * len(columns.columns) < _RUN_VALUES)

    def add(self, places: array[int], columns: Columns) -> None:
        """Takes columns, with the bucket of each record."""
        self._layout = columns.layout
        self.count += len(places)
        self._places.append(places)
        self._columns.append(columns.columns)

    def take(self) -> Iterator[tuple[int, int, bytes]]:
        """For each bucket with records: which one it is, how many there are, and a frame of them in their order."""
        import numpy

        layout = self._layout
        assert layout is not None
        places = numpy.concatenate([numpy.frombuffer(part, dtype="u2") for part in self._places])
        order = numpy.argsort(places, kind="stable")
        columns = [
            numpy.concatenate([numpy.frombuffer(part, dtype=_dtype(code)) for part in parts])[order]
            for code, parts in zip(layout.codes, zip(*self._columns, strict=True), strict=True)
        ]
        self.__init__()  # type: ignore[misc]
        places = places[order]
        begin = 0
        for end in [*(numpy.flatnonzero(places[1:] != places[:-1]) + 1).tolist(), len(places)]:
            yield int(places[begin]), end - begin, layout.encode([column[begin:end] for column in columns])
            begin = end


def are_columns(frame: memoryview) -> bool:
    """Whether a frame of a row holds columns, and not a pickle."""
    return frame[0] == _MAGIC


def decode_columns(frame: memoryview) -> Columns:
    """The columns of a frame, where they are in memory."""
    import numpy

    _, flags, fields, key, count = frame[:_HEADER]
    start = _HEADER + count
    codes = bytes(frame[_HEADER:start]).decode()
    layout = Layout(bool(flags & _IS_TUPLE), bool(flags & _WITH_TIMESTAMPS), fields, key, codes)
    length = (len(frame) - start) // count
    columns = [
        numpy.frombuffer(frame[start + index * length : start + (index + 1) * length], dtype=_dtype(code))
        for index, code in enumerate(codes)
    ]
    return Columns(layout, tuple(columns))


def _dtype(code: str) -> str:
    return "<i8" if code == "q" else "<f8"


def sort_columns(parts: Sequence[Columns]) -> Iterator[tuple[Any, list[Any], list[int] | None, bool]]:
    """Records of the same layout by key, and those of a key by timestamp, or as they came.

    Gives key, records, timestamps, and whether these are the last of their key; those of a key may come in parts.
    """
    import numpy

    layout = parts[0].layout
    if len(parts) == 1:
        columns = list(parts[0].columns)
    else:
        columns = [numpy.concatenate(pieces) for pieces in zip(*(part.columns for part in parts), strict=True)]
    keys = columns[layout.key]
    # the last of these keys is the first to sort by
    order = numpy.lexsort((columns[-1], keys)) if layout.with_timestamps else numpy.argsort(keys, kind="stable")
    in_order = Columns(layout, tuple(column[order] for column in columns))
    keys = keys[order]
    ends = [*(numpy.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
    firsts = keys[[0, *ends[:-1]]].tolist()
    return _groups(in_order, firsts, ends)


def _groups(
    records: Columns, keys: list[int], ends: list[int]
) -> Iterator[tuple[Any, list[Any], list[int] | None, bool]]:
    """Makes objects of some thousand records at a time; a group may be in two such chunks."""
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
