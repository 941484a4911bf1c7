"""Texts of CSV columns to values and back, as Flink reads and writes them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.formats.texts import TextFormats, to_decimal
from firesteel.table.formats.written_texts import date_text, stripped, time_text, timestamp_text
from firesteel.table.values.calendar import day_number
from firesteel.table.values.numbers import parse_double
from firesteel.types import logical as t
from firesteel.types.java_text import to_java_double, to_java_float

__all__ = ["Read", "Write", "reader_of", "writer_of"]

Read = Callable[[str], Any]
"""Raises ValueError for a text that is no value."""
Write = Callable[[Any], str]
_BITS = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d*)?", re.ASCII)
_TEXTS = TextFormats()


def reader_of(type_: t.LogicalType, separator: str) -> Read:
    """The function for texts of a column; elements of arrays and rows are separated."""
    match type_:
        case t.BooleanType():
            return lambda text: text.strip().lower() == "true"
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return lambda text: _integer(text, type_)
        case t.FloatType() | t.DoubleType():
            return parse_double
        case t.DecimalType():
            return lambda text: _decimal(text, type_)
        case t.CharType() | t.VarCharType():
            return str
        case t.BinaryType() | t.VarBinaryType():
            return _bytes
        case t.DateType():
            return _date
        case t.TimeType():
            return _time
        case t.TimestampType():
            return lambda text: _TEXTS.timestamp(text.strip(), type_.precision)
        case t.LocalZonedTimestampType():
            return lambda text: _TEXTS.instant(text.strip(), type_.precision)
        case t.ArrayType():
            element = reader_of(type_.element_type, separator)
            return lambda text: [element(part) for part in text.split(separator)] if text else []
        case t.RowType():
            parts = [reader_of(part, separator) for part in type_.children()]
            return lambda text: _row(text, parts, separator)
    raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")


def _row(text: str, parts: list[Read], separator: str) -> tuple[Any, ...] | None:
    if not text:
        return None
    texts = text.split(separator)
    if len(texts) < len(parts):
        raise ValueError(f"{text!r} has {len(texts)} of {len(parts)} fields")
    return tuple(part(one) for part, one in zip(parts, texts, strict=False))


def _integer(text: str, type_: t.LogicalType) -> int:
    trimmed = text.strip()
    half = 1 << (_BITS[type(type_)] - 1)
    if not _INTEGER.fullmatch(trimmed) or not -half <= int(trimmed) < half:
        raise ValueError(f"{text!r} is no {type_.as_summary_string()}")
    return int(trimmed)


def _decimal(text: str, type_: t.DecimalType) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if not number.is_finite():
        raise ValueError(f"{text!r} is no number")
    return to_decimal(number, type_)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _date(text: str) -> int:
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no date")
    return day_number(int(found[1]), int(found[2]), int(found[3]))


def _time(text: str) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time")
    hour, minute, second = (int(part) for part in found.groups())
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is no time")
    return (hour * 3600 + minute * 60 + second) * 1000


def writer_of(type_: t.LogicalType, quoted: Write, separator: str, null: str, *, plain_decimals: bool) -> Write:
    """The function for values of a column; texts are quoted where it is necessary."""

    def inner(part: t.LogicalType) -> Write:
        return writer_of(part, str, separator, null, plain_decimals=plain_decimals)

    match type_:
        case t.BooleanType():
            return lambda value: "true" if value else "false"
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return str
        case t.FloatType():
            return to_java_float
        case t.DoubleType():
            return to_java_double
        case t.DecimalType():
            return (lambda value: f"{value:f}") if plain_decimals else stripped
        case t.CharType() | t.VarCharType():
            return quoted
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: quoted(base64.b64encode(value).decode("ascii"))
        case t.DateType():
            return lambda value: quoted(date_text(value))
        case t.TimeType():
            return lambda value: quoted(time_text(value))
        case t.TimestampType():
            return lambda value: quoted(timestamp_text(value))
        case t.LocalZonedTimestampType():
            return lambda value: quoted(f"{timestamp_text(value)}Z")
        case t.ArrayType():
            element = inner(type_.element_type)
            return lambda values: quoted(separator.join(null if one is None else element(one) for one in values))
        case t.RowType():
            parts = [inner(part) for part in type_.children()]
            return lambda row: quoted(
                separator.join(null if one is None else part(one) for part, one in zip(parts, row, strict=True))
            )
    raise ValidationError(f"Unsupported type: {type_.as_summary_string()}")
