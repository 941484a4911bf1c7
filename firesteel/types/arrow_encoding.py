"""Converts records to Arrow batches, with an error that names a value that does not fit its column."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from firesteel.common.errors import FiresteelError, RecordSerializationError
from firesteel.common.time import Instant
from firesteel.common.types import Row
from firesteel.types.arrow import require_pyarrow
from firesteel.types.number_records import NumberRecords
from firesteel.types.python import to_single

__all__ = ["ArrowBatchEncoder", "preview"]

Encode = Callable[[Any], Any]
"""Makes of a value that is not None what Arrow takes for its type."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MAX_TEXT = 200
_FIELDS, _VALUES = attrgetter("_fields"), attrgetter("_values")
_NONE: frozenset[type] = frozenset({type(None)})


class ArrowBatchEncoder:
    """Encodes records for one Arrow schema: Rows, tuples, lists, dicts and dataclasses, or values for its one column.

    Fields of records that have names go by name, others by position. ``columns`` describes the schema, for errors.
    """

    def __init__(self, schema: Any, columns: str | None = None) -> None:
        self._pa = require_pyarrow("Arrow data")
        self._schema = schema
        self._description = columns or ", ".join(f"{field.name} {field.type}" for field in schema)
        self._names = tuple(schema.names)
        self._encoders = [_column(field.type) for field in schema]

    def to_batch(self, records: Sequence[Any]) -> Any:
        """The records as one RecordBatch."""
        arrays = self._from_numbers(records) if isinstance(records, NumberRecords) else None
        if arrays is None:
            columns = self._columns(records)
            arrays = [self._array(index, column, records) for index, column in enumerate(columns)]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def mismatch(self, record: Any, column: str | None, problem: str) -> FiresteelError:
        """The error that names what does not fit; ``column`` is None if it is the record as a whole."""
        text = preview(record)
        where = "the columns" if column is None else f"column '{column}'"
        return RecordSerializationError(
            f"The record {text} does not fit {where}: {problem.rstrip('.')}.",
            record=text,
            hint=f"The columns are {self._description}.",
        )

    def _from_numbers(self, records: NumberRecords) -> list[Any] | None:
        """Columns as they are; None if they are other ones than the schema's."""
        if len(records.columns) != len(self._names) or records.names not in (None, self._names):
            return None
        try:
            return [
                self._cast(self._pa.array(column), field.type)
                for column, field in zip(records.columns, self._schema, strict=True)
            ]
        except (ValueError, OverflowError, NotImplementedError):
            return None  # record by record, to find the one at fault

    def _cast(self, numbers: Any, type_: Any) -> Any:
        array = numbers.cast(type_)
        if self._pa.types.is_float32(type_):
            _check_singles(array, numbers)
        return array

    def _columns(self, records: Sequence[Any]) -> list[Sequence[Any]]:
        kinds = set(map(type, records))
        rows: Sequence[Any] = ()
        if kinds == {tuple}:
            rows = records
        elif kinds == {Row} and self._are_own(set(map(id, map(_FIELDS, records))), records):
            rows = list(map(_VALUES, records))
        if set(map(len, rows)) != {len(self._names)}:
            rows = [self._fields(record) for record in records]
        return list(zip(*rows, strict=True))

    def _are_own(self, names: set[int], records: Sequence[Row]) -> bool:
        """Whether rows have the schema's names or none. Rows share their names, so there are few to compare."""
        distinct = {id(record._fields): record._fields for record in records} if len(names) > 1 else {}
        return all(fields in (None, self._names) for fields in distinct.values() or (records[0]._fields,))

    def _fields(self, record: Any) -> Sequence[Any]:
        names = self._names
        values: Any = _fields_of(record)
        if values is None:
            if len(names) == 1:
                return (record,)
            raise self.mismatch(record, None, f"it has no fields, but there are {len(names)} columns")
        if isinstance(values, dict):
            missing = [name for name in names if name not in values]
            unknown = [name for name in values if name not in names]
            if missing or unknown:
                said = [f"it has no {name!r}" for name in missing] + [
                    f"there is no column {name!r}" for name in unknown
                ]
                raise self.mismatch(record, None, ", ".join(said))
            return [values[name] for name in names]
        if len(values) != len(names):
            raise self.mismatch(record, None, f"it has {len(values)} fields, but there are {len(names)} columns")
        fields: Sequence[Any] = values
        return fields

    def _array(self, index: int, column: Sequence[Any], records: Sequence[Any]) -> Any:
        field = self._schema.field(index)
        try:
            array = self._encode(index, column)
        except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
            # Arrow's own errors are among these; they do not name the value
            raise self._find(index, column, records, error) from error
        if not field.nullable and array.null_count:
            record = next(record for record, value in zip(records, column, strict=True) if value is None)
            raise self.mismatch(record, field.name, "it is None, but the column is NOT NULL")
        return array

    def _encode(self, index: int, column: Sequence[Any]) -> Any:
        encoder = self._encoders[index]
        array = self._pa.array(encoder.values(column), type=self._schema.field(index).type)
        if encoder.check is not None:
            encoder.check(array, column)
        return array

    def _find(self, index: int, column: Sequence[Any], records: Sequence[Any], error: Exception) -> FiresteelError:
        field = self._schema.field(index)
        for record, value in zip(records, column, strict=True):
            try:
                self._encode(index, [value])
            except (ValueError, TypeError, OverflowError, ArithmeticError) as problem:
                return self.mismatch(record, field.name, f"{preview(value)}: {problem}")
        return self.mismatch(records[0], field.name, str(error))


def preview(value: Any) -> str:
    """A value in an error: its beginning."""
    text = repr(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _fields_of(value: Any) -> Sequence[Any] | dict[str, Any] | None:
    """By name where there are names, else by position; None for what has no fields."""
    if isinstance(value, Row):
        return value._values if value._fields is None else dict(zip(value._fields, value._values, strict=True))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields: dict[str, Any] = value._asdict()
        return fields
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


@dataclasses.dataclass(frozen=True)
class _Column:
    """How the values of a type are encoded."""

    plain: frozenset[type]
    """The classes that Arrow takes as they are, if there is no other among a column's values."""
    encode: Encode
    check: Callable[[Any, Sequence[Any]], None] | None = None
    """Looks at what Arrow has made of the values; raises ValueError."""

    def values(self, column: Sequence[Any]) -> Sequence[Any]:
        """What Arrow takes."""
        if self.plain.issuperset(map(type, column)):
            return column
        encode = self.encode
        return [None if value is None else encode(value) for value in column]


def _column(type_: Any) -> _Column:
    types = require_pyarrow("Arrow data").types
    if types.is_timestamp(type_):
        return _Column(_NONE, _local_timestamp if type_.tz is None else _instant(_PER_SECOND[type_.unit]))
    if types.is_map(type_):
        return _Column(_NONE, _map(_column(type_.key_type).encode, _column(type_.item_type).encode))
    if types.is_list(type_) or types.is_large_list(type_):
        return _Column(_NONE, _list(_column(type_.value_type).encode))
    if types.is_struct(type_):
        fields = [type_.field(index) for index in range(type_.num_fields)]
        return _Column(
            _NONE, _struct([field.name for field in fields], [_column(field.type).encode for field in fields])
        )
    if types.is_float32(type_):
        return _Column(_NONE.union((float,)), _single, _check_singles)
    # of the rest Arrow would take some that do not match the column, and change them: 1.5 to 1, 5 to a date
    for matches, kinds, expected in (
        (types.is_integer, (int,), "an int"),
        (types.is_date, (dt.date,), "a date"),
        (lambda one: types.is_string(one) or types.is_large_string(one), (str,), "a str"),
        (lambda one: types.is_binary(one) or types.is_large_binary(one), (bytes, bytearray), "bytes"),
    ):
        if matches(type_):
            return _Column(_NONE.union(kinds), _checked(kinds, expected))
    return _Column(_NONE, lambda value: value)


def _single(value: Any) -> Any:
    if isinstance(value, (int, float)):
        to_single(value)
    return value


def _check_singles(array: Any, column: Any) -> None:
    """OverflowError if a number has become infinite or 0 in 32 bits."""
    numbers = array.to_numpy(zero_copy_only=False)
    for index in ((numbers == 0) | (abs(numbers) == math.inf)).nonzero()[0].tolist():
        value = column[index]
        if value.__class__ is not float:
            value = value.as_py() if hasattr(value, "as_py") else value
        if value:
            to_single(value)


def _checked(kinds: tuple[type, ...], expected: str) -> Encode:
    def encode(value: Any) -> Any:
        if type(value) in kinds:
            return value
        if int in kinds and hasattr(value, "__index__") and not isinstance(value, bool):
            return value.__index__()  # one of numpy's
        if isinstance(value, kinds) and not isinstance(value, (bool, dt.datetime)):
            return value
        raise TypeError(f"{expected} is needed")

    return encode


def _instant(per_second: int) -> Encode:
    nanos = 10**9 // per_second

    def encode(value: Any) -> int:
        if isinstance(value, Instant):
            number, rest = divmod(value.nanos, nanos)
            if rest:
                raise ValueError(f"it is more exact than the column, which keeps {per_second:,} parts of a second")
            return value.seconds * per_second + number
        if isinstance(value, dt.datetime):
            if value.tzinfo is None:
                raise ValueError(
                    "a datetime without a time zone is not a point in time; use an Instant or set a time zone"
                )
            return (value - _EPOCH) // _MICROSECOND * 1000 // nanos
        raise ValueError("an Instant, or a datetime with a zone, is needed")

    return encode


def _local_timestamp(value: Any) -> dt.datetime:
    if not isinstance(value, dt.datetime) or value.tzinfo is not None:
        raise ValueError("a datetime without a zone is needed")
    return value


def _list(element: Encode) -> Encode:
    def encode(value: Any) -> Any:
        if isinstance(value, (str, bytes, bytearray, Mapping)):
            raise TypeError("a list is needed")
        return [None if item is None else element(item) for item in value]

    return encode


def _map(key: Encode, value: Encode) -> Encode:
    def encode(mapping: Any) -> Any:
        if not isinstance(mapping, Mapping):
            raise TypeError("a dict is needed")
        return [(key(name), None if item is None else value(item)) for name, item in mapping.items()]

    return encode


def _struct(names: list[str], encoders: list[Encode]) -> Encode:
    def encode(value: Any) -> Any:
        fields = _fields_of(value)
        if isinstance(fields, dict):
            fields = [fields[name] for name in names] if set(fields) == set(names) else None
        if fields is None or len(fields) != len(names):
            raise TypeError(f"the fields {', '.join(names)} are needed")
        return {
            name: None if part is None else encoder(part)
            for name, encoder, part in zip(names, encoders, fields, strict=True)
        }

    return encode
