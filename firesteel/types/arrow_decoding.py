"""Converts Arrow batches to records: column by column, then row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.typeinfo import TypeInformation, Types, from_logical
from firesteel.common.types import Row, named_rows
from firesteel.types.arrow import check_names, from_arrow_schema, is_big_int, require_pyarrow
from firesteel.types.number_records import NumberRecords

__all__ = ["ArrowRecords", "record_type"]

Decode = Callable[[Any], list[Any]]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def record_type(schema: Any, as_tuples: bool = False) -> TypeInformation:
    """The type of the records that the rows of an Arrow schema become."""
    return from_logical(from_arrow_schema(schema, as_tuples), Types.LIST)


class ArrowRecords:
    """Decodes batches of one schema: each row becomes a Row with the columns' names, or a tuple.

    Values are what Flink's types say: an Instant for a timestamp with a zone, a naive ``datetime`` for one without, a
    ``Decimal``, a ``date``, a list, a dict for a map and a Row for a struct; None for null. Tuples cost a half of
    what Rows cost to make, and a tenth to send to another task.
    """

    def __init__(self, schema: Any, as_tuples: bool = False) -> None:
        if not schema.names or not as_tuples:
            check_names(schema.names)
        self._names = tuple(schema.names)
        self._as_tuples = as_tuples
        self._columns = [_field_decoder(field) for field in schema]
        self._are_numbers = bool(self._columns) and all(_is_number(field.type) for field in schema)

    def decode(self, batch: Any) -> Sequence[Any]:
        """The records of a RecordBatch, in order."""
        if self._are_numbers and not any(column.null_count for column in batch.columns):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            columns = [column.astype("<i8" if column.dtype.kind in "iu" else "<f8", copy=False) for column in columns]
            return NumberRecords(columns, None if self._as_tuples else self._names)
        columns = [decode(column) for decode, column in zip(self._columns, batch.columns, strict=True)]
        rows = zip(*columns, strict=True)
        return list(rows) if self._as_tuples else named_rows(self._names, rows)


def _is_number(type_: Any) -> bool:
    """Whether all values of a type fit into 8 bytes as an int or a float."""
    types = require_pyarrow("Arrow data").types
    return types.is_floating(type_) or (types.is_integer(type_) and not types.is_uint64(type_))


def _field_decoder(field: Any) -> Decode:
    return _whole_numbers if is_big_int(field) else _decoder(field.type)


def _decoder(type_: Any) -> Decode:
    types = require_pyarrow("Arrow data").types
    if types.is_dictionary(type_):
        decode = _decoder(type_.value_type)
        return lambda array: decode(array.dictionary_decode())
    if types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_):
        return _numbers
    if types.is_date(type_):
        return _through_numpy
    if types.is_timestamp(type_):
        return _local_timestamps if type_.tz is None else _instants(_PER_SECOND[type_.unit])
    if types.is_duration(type_):
        return lambda array: _plain(array.cast("duration[us]", safe=False))
    if types.is_map(type_):
        return _maps(_field_decoder(type_.key_field), _field_decoder(type_.item_field))
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return _lists(_field_decoder(type_.value_field))
    if types.is_struct(type_):
        fields = [type_.field(index) for index in range(type_.num_fields)]
        return _structs(tuple(field.name for field in fields), [_field_decoder(field) for field in fields])
    return _plain


def _plain(array: Any) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def _whole_numbers(array: Any) -> list[Any]:
    """Decimals that stand for ints."""
    return [None if value is None else int(value) for value in array.to_pylist()]


def _numbers(array: Any) -> list[Any]:
    # numpy would make floats of integers with nulls
    return _plain(array) if array.null_count else _through_numpy(array)


def _through_numpy(array: Any) -> list[Any]:
    """Much faster than asking Arrow for one value after the other; its NaT becomes None."""
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def _local_timestamps(array: Any) -> list[Any]:
    pa = require_pyarrow("Arrow data")
    return _through_numpy(array.cast(pa.timestamp("us"), safe=False))


def _instants(per_second: int) -> Decode:
    to_nanos = 10**9 // per_second

    def decode(array: Any) -> list[Any]:
        numbers = _numbers(array.cast("int64"))
        if array.null_count:
            return [
                None if number is None else Instant(number // per_second, number % per_second * to_nanos)
                for number in numbers
            ]
        return [Instant(number // per_second, number % per_second * to_nanos) for number in numbers]

    return decode


def _lists(element: Decode) -> Decode:
    def decode(array: Any) -> list[Any]:
        return _cut(element(array.flatten()), array.value_lengths().to_pylist())

    return decode


def _cut(elements: Iterable[Any], lengths: Sequence[int | None]) -> list[Any]:
    remaining = iter(elements)
    return [None if length is None else list(islice(remaining, length)) for length in lengths]


def _maps(key: Decode, value: Decode) -> Decode:
    def decode(array: Any) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
        # a slice of an array has the keys and values of the whole
        pairs = list(zip(key(array.keys[first:last]), value(array.items[first:last]), strict=True))
        ends = zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
        return [dict(pairs[begin - first : end - first]) if valid else None for begin, end, valid in ends]

    return decode


def _structs(names: tuple[str, ...], fields: list[Decode]) -> Decode:
    def decode(array: Any) -> list[Any]:
        columns = [decode(column) for decode, column in zip(fields, array.flatten(), strict=True)]
        rows: list[Row | None] = list(named_rows(names, zip(*columns, strict=True)))
        if array.null_count:
            return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
        return rows

    return decode
