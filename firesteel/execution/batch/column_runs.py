"""Producer side of columnar exchanges: converts records to columns and partitions them into buckets of keys."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter, is_, itemgetter
from typing import Any

from firesteel.common.types import Row, RowKind
from firesteel.execution.batch.columns import Columns, Layout, Shape, numpy_type
from firesteel.runtime.codegen.functions import converted_function
from firesteel.runtime.codegen.inlining import inline_expression
from firesteel.runtime.model.key_groups import HASH_SEED
from firesteel.types.number_records import NumberRecords

__all__ = ["RECORD_ITSELF", "ColumnRuns", "KeyDivisions", "field_of_key"]

RECORD_ITSELF = -1
_MAX_FIELDS = 100
_RUN_VALUES = 2_000_000
"""How many numbers are gathered before they are divided."""
_HASH_RECORDS = 1 << 15
"""Few enough to stay in the processor's cache while they are hashed."""
Reduction = tuple[str, "int | str"]
"""``sum``, ``min`` or ``max``, and of which field."""
_CODES: dict[type, str] = {int: "q", float: "d"}

_names_of = attrgetter("_fields")
_kind_of = attrgetter("_row_kind")
_values_of = attrgetter("_values")


def field_of_key(selector: Callable[[Any], Any]) -> int | str | None:
    """Which field of a record a key selector gives, RECORD_ITSELF, or None if it does something else.

    >>> from operator import itemgetter
    >>> field_of_key(itemgetter(1))
    1
    """
    converted = converted_function(selector)
    if converted is not None:
        return field_of_key(converted.call) if converted.keeps_longs else None
    field: Any = None
    if type(selector) is itemgetter:
        fields: Any = selector.__reduce__()[1]
        field = fields[0] if len(fields) == 1 else None
    elif (inlined := inline_expression(selector)) is not None:
        match ast.parse(inlined.text, mode="eval").body:
            case ast.Name(id=name) if name == inlined.argument:
                return RECORD_ITSELF
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=field)) if name == inlined.argument:
                pass
            case ast.Attribute(value=ast.Name(id=name), attr=field) if name == inlined.argument:
                pass
            case _:
                field = None
    return field if (type(field) is int and field >= 0) or type(field) is str else None


class KeyDivisions:
    """Finds the buckets of many keys at once: the same as a KeyBucketTable for each."""

    def __init__(self, parallelism: int, max_parallelism: int, buckets: int):
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._buckets = buckets

    def places_of(self, keys: Any) -> Any:
        """For each of an array of ints the place of its bucket among those of all subtasks."""
        import numpy

        places = numpy.empty(len(keys), dtype=numpy.uint16)
        for begin in range(0, len(keys), _HASH_RECORDS):
            part = keys[begin : begin + _HASH_RECORDS]
            rest, group = numpy.divmod(_murmur3(part), numpy.uint32(self._max_parallelism))
            subtask = group.astype(numpy.uint64) * self._parallelism // self._max_parallelism
            places[begin : begin + len(part)] = subtask * self._buckets + rest % numpy.uint32(self._buckets)
        return places


def _murmur3(keys: Any) -> Any:
    """The hash of each key: that of ``key_groups``, of eight bytes."""
    import numpy

    words = numpy.ascontiguousarray(keys, dtype="<i8").view("<u4").reshape(-1, 2)
    found = numpy.full(len(words), HASH_SEED, dtype=numpy.uint32)
    for column in (0, 1):
        word = words[:, column] * numpy.uint32(0xCC9E2D51)
        word = (word << numpy.uint32(15)) | (word >> numpy.uint32(17))
        word *= numpy.uint32(0x1B873593)
        found ^= word
        found = (found << numpy.uint32(13)) | (found >> numpy.uint32(19))
        found *= numpy.uint32(5)
        found += numpy.uint32(0xE6546B64)
    found ^= numpy.uint32(8)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        found ^= found >> numpy.uint32(shift)
        found *= numpy.uint32(factor)
    found ^= found >> numpy.uint32(16)
    return found


class ColumnRuns:
    """Columns of the same layout, gathered to be divided all at once. ``key_field`` is as of ``field_of_key``."""

    def __init__(
        self, divisions: KeyDivisions, key_field: int | str | None = None, reduction: Reduction | None = None
    ) -> None:
        self.count = 0
        self._divisions = divisions
        self._key_field = key_field
        self._reduction = reduction
        self._layout: Layout | None = None
        self._columns: list[tuple[Any, ...]] = []

    def to_columns(
        self, values: Sequence[Any], timestamps: Sequence[int] | None, keys: list[Any] | None
    ) -> Columns | None:
        """The columns of records, None if they cannot be put so. Without ``keys`` the key is a field."""
        taken = _fields_of(values)
        if taken is None:
            return None
        shape, names, fields = taken
        columns = list(fields)
        key = len(fields)
        if keys is None:
            place = _place_of(self._key_field, shape, names)
            if place is None or place >= len(fields):
                return None
            key = place
        else:
            columns.append(keys)
        if timestamps is not None:
            columns.append(timestamps)
        encoded = [_encode(column) for column in columns]
        codes = "".join("" if column is None else column[0] for column in encoded)
        if len(codes) < len(columns) or codes[key] != "q":
            return None
        layout = Layout(shape, names, len(fields), key, timestamps is not None, codes)
        return Columns(layout, tuple(column[1] for column in encoded if column is not None))

    def fits(self, columns: Columns) -> bool:
        """Whether there is room for more columns, and they are like those that are there."""
        return not self.count or (self._layout == columns.layout and self.count * len(columns.columns) < _RUN_VALUES)

    def add(self, columns: Columns, count: int) -> None:
        """Takes columns."""
        self._layout = columns.layout
        self.count += count
        self._columns.append(columns.columns)

    def take(self) -> Iterator[tuple[int, int, bytes]]:
        """For each bucket with records: which one it is, how many there are, and a frame of them in their order."""
        import numpy

        layout = self._layout
        assert layout is not None
        columns = [
            numpy.concatenate([numpy.frombuffer(part, dtype=numpy_type(code)) for part in parts])
            for code, parts in zip(layout.codes, zip(*self._columns, strict=True), strict=True)
        ]
        self.count = 0
        self._columns = []
        if self._reduction is not None:
            columns = self._reduce(layout, columns, self._reduction)
        places = self._divisions.places_of(columns[layout.key])
        order = numpy.argsort(places, kind="stable")
        columns = [column[order] for column in columns]
        places = places[order]
        begin = 0
        for end in [*(numpy.flatnonzero(places[1:] != places[:-1]) + 1).tolist(), len(places)]:
            yield int(places[begin]), end - begin, layout.encode([column[begin:end] for column in columns])
            begin = end

    def _reduce(self, layout: Layout, columns: list[Any], reduction: Reduction) -> list[Any]:
        """Makes one record of all with the same key, where that is exactly what the consumer would do with them.

        It is with ints that cannot overflow, and records without timestamps, by which they would be sorted first.
        """
        import numpy

        what, field = reduction
        # of a bare number position 0 is the number itself
        place = 0 if layout.shape is Shape.NUMBER and field == 0 else _place_of(field, layout.shape, layout.names)
        if place is None or not 0 <= place < layout.fields or layout.with_timestamps:
            return columns
        if place == layout.key or layout.codes[place] != "q":
            return columns
        order = numpy.argsort(columns[layout.key], kind="stable")
        keys = columns[layout.key][order]
        begins = numpy.concatenate(([0], numpy.flatnonzero(keys[1:] != keys[:-1]) + 1))
        if len(begins) * 2 > len(keys):
            self._reduction = None  # most keys are different: it costs more than it saves
            return columns
        values = columns[place][order]
        if what == "sum":
            most = int(numpy.diff(begins, append=len(keys)).max())
            if max(-int(values.min()), int(values.max())) * most >= 1 << 63:
                return columns
        reduced = [column[order[begins]] for column in columns]
        reductions = {"sum": numpy.add, "min": numpy.minimum, "max": numpy.maximum}
        reduced[place] = reductions[what].reduceat(values, begins)
        return reduced


def _place_of(field: int | str | None, shape: Shape, names: tuple[str, ...] | None) -> int | None:
    """Which column a field of a record is."""
    if field == RECORD_ITSELF:
        return 0 if shape is Shape.NUMBER else None
    if isinstance(field, int):
        return None if shape is Shape.NUMBER else field
    return names.index(field) if names is not None and field in names else None


def _fields_of(values: Sequence[Any]) -> tuple[Shape, tuple[str, ...] | None, Sequence[Any]] | None:
    """What records are and what each of their fields holds, None if they are of several kinds."""
    if type(values) is NumberRecords:
        return (Shape.TUPLE if values.names is None else Shape.ROW), values.names, values.columns
    first = values[0]
    names = None
    rows: Any = values
    if type(first) is Row:
        names = first._fields
        if set(map(type, values)) != {Row} or not (
            all(map(is_, map(_names_of, values), repeat(names)))
            and all(map(is_, map(_kind_of, values), repeat(RowKind.INSERT)))
        ):
            return None
        rows = map(_values_of, values)
    elif type(first) is not tuple:
        return Shape.NUMBER, None, (values,)
    elif set(map(type, values)) != {tuple}:
        return None
    try:
        fields = tuple(zip(*rows, strict=True))
    except ValueError:
        return None
    if not 0 < len(fields) < _MAX_FIELDS or (names is not None and len(names) != len(fields)):
        return None
    return (Shape.ROW if type(first) is Row else Shape.TUPLE), names, fields


def _encode(column: Any) -> tuple[str, Any] | None:
    """The type code of a column and the column itself, None if its values are not all ints or all floats."""
    dtype = getattr(column, "dtype", None)
    if dtype is not None:
        return ("q" if dtype.kind == "i" else "d"), _contiguous(column)
    types = set(map(type, column))
    code = _CODES.get(types.pop()) if len(types) == 1 else None
    if code is None:
        return None
    try:
        return code, array(code, column)
    except OverflowError:
        return None


def _contiguous(column: Any) -> Any:
    import numpy

    return numpy.ascontiguousarray(column)
