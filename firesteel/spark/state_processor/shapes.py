"""Python types of column values, kept so that values are written back with their original types.

Spark has fewer types than Python: a UUID becomes a string, a tuple a struct, a set its pickled bytes. A shape describes
which Python values a column of some Spark type holds. The reader finds it from a sample and keeps it in the metadata of
the column, which survives everything but recomputing the column. Shapes are JSON:

| shape | Python values | Spark type |
|---|---|---|
| ``"plain"`` | bool, int, float, str, bytes, Decimal, date, datetime, timedelta | the one that is like it |
| ``"int"`` | ints of more than 64 bits | decimal(38,0) |
| ``"instant"`` | Instant, to the microsecond | timestamp |
| ``["aware", zone]`` | datetime with that zone | timestamp |
| ``"time"``, ``"uuid"`` | time, UUID | string |
| ``["enum", class]`` | members of an Enum | string |
| ``["list", part]``, ``["dict", key, value]`` | list, dict | array, map |
| ``["tuple", parts]``, ``["row", parts, named]`` | tuple, Row | struct |
| ``["object", class, parts]`` | named tuples, dataclasses | struct |
| ``"pickled"`` | anything | binary |
| ``"lossy"`` | values that were converted to fit a given or declared type | any |
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import importlib
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from pyspark.sql import types as t

from firesteel.common.time import Instant
from firesteel.common.types import Row, RowKind
from firesteel.spark.state_processor.spark_types import fields_of

__all__ = ["LOSSY", "PICKLED", "PLAIN", "Column", "fit", "infer", "load_class", "merge", "zone_of"]

PLAIN, PICKLED, LOSSY, INT, INSTANT = "plain", "pickled", "lossy", "int", "instant"
_MAX_DECIMAL = 10**38
_DECIMAL = t.DecimalType(38, 18)
_MAX_TIMEDELTA = datetime.timedelta(days=100_000_000)
_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)


class Column(NamedTuple):
    """A Spark type, and the shape of what it holds."""

    type: t.DataType
    shape: Any

    def without_nulls(self) -> Column:
        """The column with strings in place of parts that no value had: Spark can store those anywhere."""
        return Column(_without_nulls(self.type), self.shape)


_NOTHING = Column(t.NullType(), PLAIN)
_BYTES = Column(t.BinaryType(), PICKLED)


# -- what a value is --------------------------------------------------------------------------------------


def infer(value: Any) -> Column:
    """The column that holds a value exactly: pickled if Spark has no like of it.

    >>> infer((1, "a")).type.simpleString(), infer((1, "a")).shape
    ('struct<_1:bigint,_2:string>', ['tuple', ['plain', 'plain']])
    """
    if value is None:
        return _NOTHING
    find = _INFERRED.get(type(value))
    if find is not None:
        return find(value) or _BYTES
    if isinstance(value, enum.Enum):
        path = _path_of(type(value))
        return Column(t.StringType(), ["enum", path]) if path and value.name else _BYTES
    return _infer_object(value) or _BYTES


def _infer_int(value: int) -> Column | None:
    if -(1 << 63) <= value < 1 << 63:
        return Column(t.LongType(), PLAIN)
    return Column(t.DecimalType(38, 0), INT) if abs(value) < _MAX_DECIMAL else None


def _infer_text(value: str) -> Column | None:
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return Column(t.StringType(), PLAIN)


def _infer_decimal(value: decimal.Decimal) -> Column | None:
    return Column(_DECIMAL, PLAIN) if fits_decimal(value, _DECIMAL) else None


def fits_decimal(value: decimal.Decimal, type_: t.DecimalType) -> bool:
    """Whether a number has a place in a column, with all its digits."""
    if not value.is_finite():
        return False
    scaled = value.as_tuple()
    assert isinstance(scaled.exponent, int)
    digits = decimal.Decimal(value).normalize(decimal.Context(prec=max(1, len(scaled.digits)))).as_tuple()
    assert isinstance(digits.exponent, int)
    whole = len(digits.digits) + digits.exponent
    return bool(-digits.exponent <= type_.scale and whole <= type_.precision - type_.scale)


def _infer_instant(value: Instant) -> Column | None:
    exact = value.nanos % 1000 == 0 and -62_000_000_000 < value.seconds < 250_000_000_000
    return Column(t.TimestampType(), INSTANT) if exact else None


def _infer_datetime(value: datetime.datetime) -> Column | None:
    if value.tzinfo is None:
        return Column(t.TimestampNTZType(), PLAIN)
    zone = _name_of(value.tzinfo)
    # near the ends of time another zone has no such moment
    return Column(t.TimestampType(), ["aware", zone]) if zone is not None and 1 < value.year < 9999 else None


def _infer_time(value: datetime.time) -> Column | None:
    return Column(t.StringType(), "time") if value.tzinfo is None or _name_of(value.tzinfo) else None


def _infer_timedelta(value: datetime.timedelta) -> Column | None:
    return Column(t.DayTimeIntervalType(), PLAIN) if abs(value) < _MAX_TIMEDELTA else None


def _infer_tuple(value: tuple[Any, ...]) -> Column | None:
    return _struct(value, "tuple") if value else None


def _infer_row(value: Row) -> Column | None:
    if value.get_row_kind() is not RowKind.INSERT or not len(value):
        return None
    names = value.get_field_names()
    found = _struct(value, "row")
    return None if found is None else Column(found.type, [*found.shape, bool(names)])


def _infer_list(value: list[Any]) -> Column:
    part = merge(map(infer, value))
    return Column(t.ArrayType(part.type), ["list", part.shape])


def _infer_dict(value: dict[Any, Any]) -> Column | None:
    # neither null nor something that differs from itself can be a key of a Spark map
    if any(key is None or key != key for key in value):
        return None
    key, part = merge(map(infer, value)), merge(map(infer, value.values()))
    if _cannot_be_key(key.type):
        return None
    return Column(t.MapType(key.type, part.type), ["dict", key.shape, part.shape])


def _infer_object(value: Any) -> Column | None:
    """A named tuple or a dataclass that can be made again from its fields."""
    named = isinstance(value, tuple) and hasattr(type(value), "_fields")
    if not named and not (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return None
    path = _path_of(type(value))
    if path is None or not fields_of(value):
        return None
    found = _struct(value, "object")
    if found is None:
        return None
    try:
        again = make_object(type(value), [part for _, part in fields_of(value) or ()])
    except Exception:  # noqa: BLE001 - a class may require anything
        return None
    same = type(again) is type(value) and again == value and vars_of(again) == vars_of(value)
    return Column(found.type, ["object", path, found.shape[1]]) if same else None


def make_object(cls: type, parts: list[Any]) -> Any:
    """An instance of a named tuple or dataclass with these fields."""
    if hasattr(cls, "_fields"):
        return cls(*parts)
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**dict(zip(names, parts, strict=True)))


def vars_of(value: Any) -> Any:
    """The attributes of an object, where it has a dict of them."""
    return getattr(value, "__dict__", None)


def _struct(value: Any, tag: str) -> Column | None:
    fields = fields_of(value) or []
    names = [name for name, _ in fields]
    if len({name.lower() for name in names}) != len(names):
        return None
    parts = [infer(part) for _, part in fields]
    type_ = t.StructType([t.StructField(name, part.type) for name, part in zip(names, parts, strict=True)])
    return Column(type_, [tag, [part.shape for part in parts]])


_INFERRED: dict[type, Any] = {
    bool: lambda _: Column(t.BooleanType(), PLAIN),
    int: _infer_int,
    float: lambda _: Column(t.DoubleType(), PLAIN),
    str: _infer_text,
    bytes: lambda _: Column(t.BinaryType(), PLAIN),
    decimal.Decimal: _infer_decimal,
    Instant: _infer_instant,
    datetime.datetime: _infer_datetime,
    datetime.date: lambda _: Column(t.DateType(), PLAIN),
    datetime.time: _infer_time,
    datetime.timedelta: _infer_timedelta,
    uuid.UUID: lambda _: Column(t.StringType(), "uuid"),
    tuple: _infer_tuple,
    Row: _infer_row,
    list: _infer_list,
    dict: _infer_dict,
}
"""By the very class: an instance of a subclass would come back as something else."""


# -- classes and zones by name ----------------------------------------------------------------------------


def _path_of(cls: type) -> str | None:
    """The name of a class with which every process finds it."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    if cls.__module__ == "__main__":
        return None
    try:
        return path if load_class(path) is cls else None
    except (ImportError, AttributeError):
        return None


def load_class(path: str) -> Any:
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _name_of(zone: datetime.tzinfo) -> str | None:
    if isinstance(zone, datetime.timezone):
        if zone.tzname(None) != datetime.timezone(zone.utcoffset(None)).tzname(None):
            return None  # one with a name of its own
        return f"offset {zone.utcoffset(None) // datetime.timedelta(microseconds=1)}"
    key = getattr(zone, "key", None)
    return f"zone {key}" if type(zone).__name__ == "ZoneInfo" and isinstance(key, str) else None


def zone_of(name: str) -> datetime.tzinfo:
    """The zone of a name in a shape."""
    kind, _, value = name.partition(" ")
    if kind == "offset":
        offset = datetime.timedelta(microseconds=int(value))
        return datetime.timezone.utc if not offset else datetime.timezone(offset)
    import zoneinfo

    return zoneinfo.ZoneInfo(value)


# -- several values ---------------------------------------------------------------------------------------


def merge(columns: Iterable[Column]) -> Column:
    """One column for values of several; pickled where they have nothing in common."""
    merged = _NOTHING
    for other in columns:
        merged = _merge(merged, other)
    return merged


def _merge(one: Column, other: Column) -> Column:
    if one == other or isinstance(other.type, t.NullType):
        return one
    if isinstance(one.type, t.NullType):
        return other
    if {one.shape if isinstance(one.shape, str) else "", other.shape if isinstance(other.shape, str) else ""} == {
        PLAIN,
        INT,
    } and {type(one.type), type(other.type)} == {t.LongType, t.DecimalType}:
        return Column(t.DecimalType(38, 0), INT)
    if not isinstance(one.shape, list) or not isinstance(other.shape, list) or one.shape[0] != other.shape[0]:
        return _BYTES
    tag = one.shape[0]
    if tag == "list":
        part = _merge(Column(one.type.elementType, one.shape[1]), Column(other.type.elementType, other.shape[1]))
        return Column(t.ArrayType(part.type), ["list", part.shape])
    if tag == "dict":
        key = _merge(Column(one.type.keyType, one.shape[1]), Column(other.type.keyType, other.shape[1]))
        part = _merge(Column(one.type.valueType, one.shape[2]), Column(other.type.valueType, other.shape[2]))
        if _cannot_be_key(key.type):
            return _BYTES
        return Column(t.MapType(key.type, part.type), ["dict", key.shape, part.shape])
    if tag in ("tuple", "row", "object"):
        return _merge_structs(one, other)
    return _BYTES


def _merge_structs(one: Column, other: Column) -> Column:
    assert isinstance(one.type, t.StructType)
    assert isinstance(other.type, t.StructType)
    at = 2 if one.shape[0] == "object" else 1
    rest = [part for index, part in enumerate(one.shape) if index != at]
    if one.type.names != other.type.names or rest != [part for i, part in enumerate(other.shape) if i != at]:
        return _BYTES
    parts = [
        _merge(Column(a.dataType, x), Column(b.dataType, y))
        for a, x, b, y in zip(one.type.fields, one.shape[at], other.type.fields, other.shape[at], strict=True)
    ]
    shape = list(one.shape)
    shape[at] = [part.shape for part in parts]
    fields = zip(one.type.names, parts, strict=True)
    return Column(t.StructType([t.StructField(name, part.type) for name, part in fields]), shape)


def _cannot_be_key(type_: t.DataType) -> bool:
    """Whether PySpark cannot make a key of a dict of such a value: it gives lists and bytearrays."""
    if isinstance(type_, t.StructType):
        return any(_cannot_be_key(field.dataType) for field in type_.fields)
    return isinstance(type_, (t.MapType, t.ArrayType, t.BinaryType))


def _without_nulls(type_: t.DataType) -> t.DataType:
    if isinstance(type_, t.NullType):
        return t.StringType()
    if isinstance(type_, t.ArrayType):
        return t.ArrayType(_without_nulls(type_.elementType))
    if isinstance(type_, t.MapType):
        return t.MapType(_without_nulls(type_.keyType), _without_nulls(type_.valueType))
    if isinstance(type_, t.StructType):
        return t.StructType([t.StructField(field.name, _without_nulls(field.dataType)) for field in type_.fields])
    return type_


# -- a type that is given ---------------------------------------------------------------------------------


def fit(given: t.DataType | None, sample: Column) -> Column:
    """The column of a type that was declared or given, for values like those of a sample.

    Where the type cannot hold such values exactly they are converted, and the column is lossy.
    """
    if given is None:
        return sample.without_nulls()
    shape = _fitted(given, sample)
    return Column(given, LOSSY if shape is None else shape)


def _fitted(given: t.DataType, sample: Column) -> Any:
    """The shape of values of a sample in a column of another type; None if they would be changed."""
    shape = sample.shape
    if isinstance(sample.type, t.NullType):
        return _default(given)
    if isinstance(given, t.BinaryType):
        return PLAIN if shape == PLAIN and isinstance(sample.type, t.BinaryType) else PICKLED
    if isinstance(given, t.DecimalType) and given.scale == 0 and isinstance(sample.type, (t.LongType, t.DecimalType)):
        return INT if shape == INT or isinstance(sample.type, t.LongType) else None
    if isinstance(given, _INTEGERS) and isinstance(sample.type, t.LongType):
        return PLAIN
    if isinstance(given, t.DecimalType) and isinstance(sample.type, t.DecimalType):
        return PLAIN if shape == PLAIN else None
    tag = shape[0] if isinstance(shape, list) else None
    if isinstance(given, t.ArrayType) and tag == "list":
        part = _fitted(given.elementType, Column(sample.type.elementType, shape[1]))
        return None if part is None else ["list", part]
    if isinstance(given, t.MapType) and tag == "dict":
        key = _fitted(given.keyType, Column(sample.type.keyType, shape[1]))
        value = _fitted(given.valueType, Column(sample.type.valueType, shape[2]))
        return None if key is None or value is None else ["dict", key, value]
    if isinstance(given, t.StructType) and isinstance(sample.type, t.StructType) and tag is not None:
        return _fitted_struct(given, sample.type, shape)
    return shape if type(given) is type(sample.type) else None


def _fitted_struct(given: t.StructType, found: t.StructType, shape: Any) -> Any:
    if len(given.fields) != len(found.fields) or (given.names != found.names and shape[0] == "row" and shape[2]):
        return None
    at = 2 if shape[0] == "object" else 1
    parts = [
        _fitted(field.dataType, Column(other.dataType, part))
        for field, other, part in zip(given.fields, found.fields, shape[at], strict=True)
    ]
    if any(part is None for part in parts):
        return None
    fitted = list(shape)
    fitted[at] = parts
    return fitted


def _default(given: t.DataType) -> Any:
    """The shape where no value is known."""
    if isinstance(given, t.BinaryType):
        return PICKLED
    if isinstance(given, t.ArrayType):
        return ["list", _default(given.elementType)]
    if isinstance(given, t.MapType):
        return ["dict", _default(given.keyType), _default(given.valueType)]
    if isinstance(given, t.StructType):
        positional = given.names == [f"_{index}" for index in range(1, len(given.names) + 1)]
        parts = [_default(field.dataType) for field in given.fields]
        return ["tuple", parts] if positional else ["row", parts, True]
    if isinstance(given, t.TimestampType):
        return INSTANT
    return INT if isinstance(given, t.DecimalType) and given.scale == 0 else PLAIN
