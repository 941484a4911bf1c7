"""What Flink makes of JSON values: one function for each type, from a parsed value to that of a row.

Values are parsed with ``JsonCodec(verbatim=True)``: numbers with fractions keep their text.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from firesteel.formats.json.library import JsonNumber, verbatim_text
from firesteel.table.bound.errors import ValidationError
from firesteel.table.formats.texts import TextFormats, to_decimal
from firesteel.types import logical as t
from firesteel.types.java_text import to_java_double

__all__ = ["Convert", "JsonReading", "converter_of"]

Convert = Callable[[Any], Any]
"""Raises ValueError for a value that has no place in a column."""


class UnfitError(ValueError):
    """A value that has no place in a column."""


_INTEGERS = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}


class JsonReading:
    """The options by which values are read."""

    def __init__(self, texts: TextFormats, *, ignores_errors: bool = False, fails_on_missing: bool = False) -> None:
        self.texts = texts
        self.ignores_errors = ignores_errors
        self.fails_on_missing = fails_on_missing


def converter_of(type_: t.LogicalType, reading: JsonReading) -> Convert:
    """The function for values of a type; null is null, and with ``ignores_errors`` so is what does not fit."""
    convert = _converter(type_, reading)
    if not reading.ignores_errors:
        return lambda value: None if value is None else convert(value)

    def lenient(value: Any) -> Any:
        try:
            return None if value is None else convert(value)
        except (ValueError, ArithmeticError):
            return None

    return lenient


def _converter(type_: t.LogicalType, reading: JsonReading) -> Convert:
    texts = reading.texts
    match type_:
        case t.BooleanType():
            return _boolean
        case t.TinyIntType() | t.SmallIntType():
            return lambda value: _checked(int(_number_text(value)), type_)
        case t.IntType() | t.BigIntType():
            return lambda value: _integer(value, type_)
        case t.FloatType() | t.DoubleType():
            return _floating
        case t.DecimalType():
            return lambda value: to_decimal(_decimal(value), type_)
        case t.CharType() | t.VarCharType():
            return _text
        case t.BinaryType() | t.VarBinaryType():
            return _bytes
        case t.DateType():
            return lambda value: texts.date(_string(value))
        case t.TimeType():
            return lambda value: texts.time(_string(value))
        case t.TimestampType():
            return lambda value: texts.timestamp(_string(value), type_.precision)
        case t.LocalZonedTimestampType():
            return lambda value: texts.instant(_string(value), type_.precision)
    return _nested(type_, reading)


def _nested(type_: t.LogicalType, reading: JsonReading) -> Convert:
    match type_:
        case t.ArrayType():
            element = converter_of(type_.element_type, reading)
            return lambda value: [element(item) for item in _as(list, value)]
        case t.MapType() | t.MultisetType():
            key_type, item_type = (
                (type_.key_type, type_.value_type)
                if isinstance(type_, t.MapType)
                else (type_.element_type, t.IntType())
            )
            if not isinstance(key_type, (t.CharType, t.VarCharType)):
                raise ValidationError(
                    "JSON format doesn't support non-string as key type of map. The type is: "
                    f"{type_.as_summary_string()}"
                )
            item = converter_of(item_type, reading)
            return lambda value: {key: item(found) for key, found in _as(dict, value).items()}
        case t.RowType():
            return row_converter(type_, reading)
    raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")


def row_converter(type_: t.RowType, reading: JsonReading) -> Convert:
    """The function that makes a tuple of an object."""
    fields = [(part.name, converter_of(part.type, reading)) for part in type_.fields]

    def convert(value: Any) -> tuple[Any, ...]:
        found = _as(dict, value)
        values = []
        for name, field in fields:
            if reading.fails_on_missing and name not in found:
                raise ValueError(f"Could not find field with name '{name}'.")
            try:
                values.append(field(found.get(name)))
            except ValueError as error:
                raise ValueError(f"Fail to deserialize at field: {name}. {error}") from None
        return tuple(values)

    return convert


def _as(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise UnfitError(f"{verbatim_text(value)} is no {'object' if kind is dict else 'array'}")
    return value


def _string(value: Any) -> str:
    return value if isinstance(value, str) else _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise UnfitError(f"{verbatim_text(value)} is no scalar")
    return verbatim_text(value)


def _number_text(value: Any) -> str:
    text = _string(value).strip()
    if "_" in text:
        raise ValueError(f"{text!r} is no number")
    return text


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else _string(value).strip().lower() == "true"


def _integer(value: Any, type_: t.LogicalType) -> int:
    if isinstance(value, JsonNumber):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{value.text} is no {type_.as_summary_string()}")
        return _checked(int(Decimal(value)), type_)
    return _checked(int(_number_text(value)), type_)


def _checked(number: int, type_: t.LogicalType) -> int:
    half = 1 << (_INTEGERS[type(type_)] - 1)
    if not -half <= number < half:
        raise ValueError(f"{number} is out of the range of {type_.as_summary_string()}")
    return number


def _floating(value: Any) -> float:
    if isinstance(value, bool):
        raise UnfitError(f"{value} is no number")
    text = _number_text(value)
    if text.lower().lstrip("+-") in ("inf", "infinity", "nan") and text.lstrip("+-") not in ("NaN", "Infinity"):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def _decimal(value: Any) -> Decimal:
    try:
        number = Decimal(_number_text(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is no number") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is no number")
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    # as in Flink, numbers within objects and arrays are doubles, others have the text of the message
    return verbatim_text(_doubles(value) if isinstance(value, (dict, list)) else value)


def _doubles(value: Any) -> Any:
    if isinstance(value, JsonNumber):
        return JsonNumber(to_java_double(float(value)))
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    return [_doubles(item) for item in value] if isinstance(value, list) else value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise UnfitError(f"{value!r} is no text")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
