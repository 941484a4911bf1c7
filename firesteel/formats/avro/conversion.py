"""Conversion between fastavro's dicts and rows: a function per schema, generated once."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from firesteel.common.typeinfo import from_logical
from firesteel.formats.avro.schema import AvroSchema
from firesteel.types.avro import actual_type, from_avro
from firesteel.types.codec import (
    Converter,
    SchemaMismatchError,
    compile_reader,
    compile_writer,
    describe,
    join_path,
    type_test,
)
from firesteel.types.logical import BigIntType, BooleanType, DecimalType, DoubleType, IntType, RowType, VarCharType
from firesteel.types.python import MAX_SINGLE, MIN_SINGLE, to_single
from firesteel.types.text import checked_value

__all__ = ["record_reader", "record_writer"]

_TESTED = {"string": VarCharType(), "int": IntType(), "long": BigIntType(), "double": DoubleType()}


def record_reader(schema: AvroSchema) -> Callable[[list[Any]], list[Any]]:
    """The function that makes rows of records as fastavro reads them."""
    return _reader(schema, schema.resolve(schema.parsed))


def record_writer(schema: AvroSchema) -> Callable[[Any], list[Any]]:
    """The function that makes records for fastavro of rows, tuples or dicts; raises SchemaMismatchError."""
    return _writer(schema, schema.resolve(schema.parsed), "")


def _reader(schema: AvroSchema, record: dict[str, Any]) -> Callable[[list[Any]], list[Any]]:
    scope: dict[str, Any] = {}
    values = []
    for i, field in enumerate(record["fields"]):
        convert = _from_avro(schema, field["type"])
        value = f"item[{field['name']!r}]"
        if convert is not None:
            scope[f"convert{i}"] = convert
            value = f"convert{i}({value})"
        values.append(value)
    return compile_reader([field["name"] for field in record["fields"]], [], values, scope)


def _from_avro(schema: AvroSchema, node: Any) -> Converter | None:
    """How a value becomes what Flink has for it; None if it is that already."""
    actual = actual_type(schema, node)
    if actual is None:
        return None
    found, nullable = actual
    convert = _from_avro_type(schema, found)
    if convert is None or not nullable:
        return convert
    return lambda value: None if value is None else convert(value)


def _from_avro_type(schema: AvroSchema, found: dict[str, Any]) -> Converter | None:
    kind = found["type"]
    if kind in ("record", "error"):
        read = _reader(schema, found)
        return lambda value: read([value])[0]
    if kind == "array":
        element = _from_avro(schema, found["items"])
        return None if element is None else lambda value: [element(item) for item in value]
    if kind == "map":
        item = _from_avro(schema, found["values"])
        return None if item is None else lambda value: {key: item(part) for key, part in value.items()}
    logical = found.get("logicalType", "")
    if logical in ("timestamp-millis", "timestamp-micros"):
        return lambda value: value.replace(tzinfo=None)  # Flink's timestamps: the wall clock of UTC, without a zone
    if logical == "uuid":
        return str
    return None


def _writer(schema: AvroSchema, record: dict[str, Any], path: str) -> Callable[[Any], list[Any]]:
    # errors show the type in the words of type information
    row_type = from_logical(from_avro(schema, record, legacy=True)).to_logical()
    assert isinstance(row_type, RowType)
    scope: dict[str, Any] = {}
    items = []
    for i, field in enumerate(record["fields"]):
        scope[f"write{i}"] = _to_avro(schema, field["type"], join_path(path, field["name"]))
        items.append(f"{field['name']!r}: {_value(schema, i, field['type'])}")
    return compile_writer(row_type, path, f"{{{', '.join(items)}}}", scope)


def _value(schema: AvroSchema, i: int, node: Any) -> str:
    actual = actual_type(schema, node)
    kind = "" if actual is None or "logicalType" in actual[0] else actual[0]["type"]
    v, otherwise = f"v{i}", f"write{i}(v{i})"
    if kind in _TESTED:
        return f"{v} if {type_test(_TESTED[kind], v)} else {otherwise}"
    if kind == "float":
        return f"{v} if {v}.__class__ is float and {MIN_SINGLE!r} < {v} < {MAX_SINGLE!r} else {otherwise}"
    return otherwise


def _to_avro(schema: AvroSchema, node: Any, path: str) -> Converter:
    actual = actual_type(schema, node)
    if actual is None:
        return lambda value: value
    found, nullable = actual
    expected, convert = _to_avro_type(schema, found, path)

    def write(value: Any) -> Any:
        if value is None and nullable:
            return None
        try:
            return convert(value)
        except (TypeError, ValueError, AttributeError, OverflowError, ArithmeticError):
            raise SchemaMismatchError(path, expected, describe(value)) from None

    return write


def _to_avro_type(schema: AvroSchema, found: dict[str, Any], path: str) -> tuple[str, Converter]:
    kind, logical = found["type"], found.get("logicalType", "")
    if kind in ("record", "error"):
        write = _writer(schema, found, path)
        return f"a row for {found['name']}", lambda value: write((value,))[0]
    if kind == "array":
        element = _to_avro(schema, found["items"], f"{path}[]")
        return "a list", lambda value: [element(item) for item in _listed(value)]
    if kind == "map":
        item = _to_avro(schema, found["values"], f"{path}{{}}")
        return "a dict with strings as keys", lambda value: {_text(key): item(part) for key, part in _items(value)}
    if kind == "enum":
        symbols = found["symbols"]
        return f"one of {', '.join(symbols)}", lambda value: _one_of(symbols, value)
    if logical == "decimal":
        scale, precision = found.get("scale", 0), found["precision"]
        what = f"a decimal of up to {precision} digits, {scale} of them behind the point"
        return what, lambda value: _decimal(value, precision, scale)
    if kind == "fixed":
        return f"{found['size']} bytes", lambda value: _fixed(value, found["size"])
    return _LOGICAL.get((kind, logical)) or _PRIMITIVE[kind]


def _instance(value: Any, *classes: type) -> Any:
    if not isinstance(value, classes):
        raise TypeError("another class")
    return value


def _text(value: Any) -> str:
    return str(_instance(value, str, UUID))


def _bytes(value: Any) -> bytes:
    return bytes(_instance(value, bytes, bytearray, memoryview))


def _fixed(value: Any, size: int) -> bytes:
    if len(value) != size:
        raise ValueError("another size")
    return _bytes(value)


def _listed(value: Any) -> Any:
    if isinstance(value, (str, bytes, Mapping)):
        raise TypeError("not a list")
    return value


def _items(value: Any) -> Any:
    return _instance(value, Mapping).items()


def _one_of(symbols: list[str], value: Any) -> str:
    text = value if isinstance(value, str) else str(getattr(value, "name", value))
    if text not in symbols:
        raise ValueError("no such symbol")
    return text


def _float(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError("not a number")
    return float(value)


def _single(value: Any) -> float:
    number = _float(value)
    if not math.isnan(number):
        to_single(number)
    return number


_check_decimal = checked_value(DecimalType(None, None))


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    """The decimal with so many digits behind the point. Its own arithmetic would round to 28 digits."""
    number: Decimal = _check_decimal(value)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if not number:
        return Decimal((sign, (0,), -scale))
    shift = exponent + scale
    kept = digits if shift >= 0 else digits[:shift]
    if any(digits[len(kept) :]) or len(kept) + max(shift, 0) > precision:
        raise ValueError("does not fit")
    return Decimal((sign, (*kept, *[0] * max(shift, 0)), -scale))


def _date(value: Any) -> dt.date:
    if isinstance(value, dt.datetime):
        raise TypeError("a datetime")
    found: dt.date = _instance(value, dt.date)
    return found


def _timestamp(value: Any) -> dt.datetime:
    # fastavro takes one without a zone for local time; in Flink it is the wall clock of UTC.
    found: dt.datetime = _instance(value, dt.datetime)
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.timezone.utc)


def _local_timestamp(value: Any) -> dt.datetime:
    found: dt.datetime = _instance(value, dt.datetime)
    return found.replace(tzinfo=None)


def _time(value: Any) -> dt.time:
    found: dt.time = _instance(value, dt.time)
    return found


_PRIMITIVE: dict[str, tuple[str, Converter]] = {
    "null": ("null", lambda value: _instance(value, type(None))),
    "boolean": ("a bool", checked_value(BooleanType())),
    "int": ("an integer of 32 bits", checked_value(IntType())),
    "long": ("an integer of 64 bits", checked_value(BigIntType())),
    "float": ("a number of 32 bits", _single),
    "double": ("a number", _float),
    "bytes": ("bytes", _bytes),
    "string": ("a str", _text),
}
_LOGICAL: dict[tuple[str, str], tuple[str, Converter]] = {
    ("int", "date"): ("a datetime.date", _date),
    ("int", "time-millis"): ("a datetime.time", _time),
    ("long", "time-micros"): ("a datetime.time", _time),
    ("long", "timestamp-millis"): ("a datetime.datetime", _timestamp),
    ("long", "timestamp-micros"): ("a datetime.datetime", _timestamp),
    ("long", "local-timestamp-millis"): ("a datetime.datetime", _local_timestamp),
    ("long", "local-timestamp-micros"): ("a datetime.datetime", _local_timestamp),
}
