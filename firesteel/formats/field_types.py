"""What the text formats know about a type: its kind, how a value is parsed from text and how it is written."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from typing import Any

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.formats import temporal_text as temporal

__all__ = [
    "RANGES",
    "Kind",
    "SchemaMismatchError",
    "describe",
    "expected",
    "kind_of",
    "mismatch",
    "parser_of",
    "to_value",
]


class Kind(Enum):
    """The kinds of types that the text formats tell apart."""

    STRING = auto()
    CHAR = auto()
    BOOLEAN = auto()
    BYTE = auto()
    SHORT = auto()
    INT = auto()
    LONG = auto()
    BIG_INT = auto()
    FLOAT = auto()
    DOUBLE = auto()
    BIG_DEC = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    INSTANT = auto()
    BYTES = auto()
    ANY = auto()
    ROW = auto()
    ARRAY = auto()
    MAP = auto()


_EXPECTED = {
    Kind.STRING: "a string",
    Kind.CHAR: "a string of one character",
    Kind.BOOLEAN: "a boolean",
    Kind.BYTE: "an integer of 8 bits",
    Kind.SHORT: "an integer of 16 bits",
    Kind.INT: "an integer of 32 bits",
    Kind.LONG: "an integer of 64 bits",
    Kind.BIG_INT: "an integer",
    Kind.FLOAT: "a number",
    Kind.DOUBLE: "a number",
    Kind.BIG_DEC: "a decimal",
    Kind.DATE: "a date like 2020-01-31",
    Kind.TIME: "a time in UTC like 12:30:00Z",
    Kind.TIMESTAMP: "a timestamp in UTC like 2020-01-31T12:30:00Z",
    Kind.INSTANT: "a point in time like 2020-01-31T12:30:00Z",
    Kind.BYTES: "bytes in base64",
    Kind.ANY: "a value",
    Kind.ROW: "a row",
    Kind.ARRAY: "an array",
    Kind.MAP: "a map",
}

RANGES = {
    Kind.BYTE: (-(1 << 7), (1 << 7) - 1),
    Kind.SHORT: (-(1 << 15), (1 << 15) - 1),
    Kind.INT: (-(1 << 31), (1 << 31) - 1),
    Kind.LONG: (-(1 << 63), (1 << 63) - 1),
}

_BASIC = {
    Types.STRING(): Kind.STRING,
    Types.CHAR(): Kind.CHAR,
    Types.BOOLEAN(): Kind.BOOLEAN,
    Types.BYTE(): Kind.BYTE,
    Types.SHORT(): Kind.SHORT,
    Types.INT(): Kind.INT,
    Types.LONG(): Kind.LONG,
    Types.BIG_INT(): Kind.BIG_INT,
    Types.FLOAT(): Kind.FLOAT,
    Types.DOUBLE(): Kind.DOUBLE,
    Types.BIG_DEC(): Kind.BIG_DEC,
    Types.INSTANT(): Kind.INSTANT,
}
_LOCAL = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: Kind.DATE,
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: Kind.TIME,
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: Kind.TIMESTAMP,
}
_BY_CLASS: list[tuple[Any, Kind]] = [
    (DateTypeInfo, Kind.DATE),
    (TimeTypeInfo, Kind.TIME),
    (TimestampTypeInfo, Kind.TIMESTAMP),
    (RowTypeInfo, Kind.ROW),
    (MapTypeInfo, Kind.MAP),
    ((ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo), Kind.ARRAY),
    (PickledBytesTypeInfo, Kind.ANY),
]


class SchemaMismatchError(RecordSerializationError):
    """A value that is not of the type its field has; ``field`` is the field's path, ``expected`` what it holds."""

    def __init__(self, field: str, expected: str, came: str):
        where = f"Field '{field}': expected" if field else "Expected"
        super().__init__(f"{where} {expected}, got {came}.")
        self.field = field
        self.expected = expected


def kind_of(type_info: TypeInformation, path: str, format_name: str) -> Kind:
    """The kind of a type; an error that names the field if the format has none for it."""
    if isinstance(type_info, ExternalTypeInfo):
        return kind_of(type_info._type_info, path, format_name)
    if (basic := _BASIC.get(type_info)) is not None:
        return basic
    if isinstance(type_info, LocalTimeTypeInfo):
        return _LOCAL[type_info._time_type]
    if isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.get_element_type() == Types.BYTE():
        return Kind.BYTES
    for classes, kind in _BY_CLASS:
        if isinstance(type_info, classes):
            return kind
    raise InvalidProgramError(
        f"{format_name} cannot hold field '{path}' of type {type_info}.",
        hint="Use the types of numbers, strings, booleans, dates and times, rows, arrays and maps of them.",
    )


def expected(kind: Kind) -> str:
    """What a field of that kind holds, in words."""
    return _EXPECTED[kind]


def mismatch(path: str, kind: Kind, value: Any) -> SchemaMismatchError:
    """The error that says which field, what was expected and what came."""
    return SchemaMismatchError(path, expected(kind), describe(value))


def describe(value: Any) -> str:
    """A value with its type, short."""
    text = repr(value)
    if len(text) > 80:
        text = f"{text[:80]}…"
    return "null" if value is None else f"{type(value).__name__} {text}"


def parser_of(kind: Kind) -> Callable[[str], Any]:
    """The function that makes a value of that kind from text; it raises ValueError."""
    if kind in RANGES:
        return _integer_parser(*RANGES[kind])
    return _PARSERS[kind]


def to_value(kind: Kind) -> Callable[[Any], Any]:
    """The function that checks a Python value to be written: an int, float, bool or Decimal, else its text.

    It raises ValueError or TypeError if the value does not fit.
    """
    if kind in RANGES:
        return _integer_checker(*RANGES[kind])
    return _CHECKERS[kind]


def _integer_parser(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = _parse_integer(text)
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    return parse


def _plain(text: str) -> str:
    # Python reads 1_000 as a number, Java and every other writer of these formats do not.
    if "_" in text:
        raise ValueError("an underscore")
    return text


def _parse_integer(text: str) -> int:
    return int(_plain(text))


def _parse_float(text: str) -> float:
    return float(_plain(text))


def _parse_decimal(text: str) -> Decimal:
    try:
        value = Decimal(_plain(text).strip())
    except InvalidOperation:
        raise ValueError("not a decimal") from None
    if not value.is_finite():
        raise ValueError("not finite")
    return value


def _parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word == "true":
        return True
    if word == "false":
        return False
    raise ValueError("not a boolean")


def _parse_char(text: str) -> str:
    if len(text) != 1:
        raise ValueError("not one character")
    return text


def _parse_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_PARSERS: dict[Kind, Callable[[str], Any]] = {
    Kind.STRING: str,
    Kind.ANY: str,
    Kind.CHAR: _parse_char,
    Kind.BOOLEAN: _parse_boolean,
    Kind.BIG_INT: _parse_integer,
    Kind.FLOAT: _parse_float,
    Kind.DOUBLE: _parse_float,
    Kind.BIG_DEC: _parse_decimal,
    Kind.DATE: temporal.parse_date,
    Kind.TIME: temporal.parse_time,
    Kind.TIMESTAMP: temporal.parse_timestamp,
    Kind.INSTANT: temporal.parse_instant,
    Kind.BYTES: _parse_bytes,
}


def _integer_checker(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        number = _check_integer(value)
        if not low <= number <= high:
            raise ValueError("out of range")
        return number

    return check


def _check_integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("a bool")
    return int(value.__index__())  # numpy's integers are no int


def _check_float(value: Any) -> float | str:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError("not a number")
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _check_decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise TypeError("not a decimal")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("not finite")
    return number


def _check_boolean(value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # numpy's too
        raise TypeError("not a bool")
    return bool(value)


def _check_string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a str")
    return value


def _check_char(value: Any) -> str:
    return _parse_char(_check_string(value))


def _check_bytes(value: Any) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(_check_integer(item) & 0xFF for item in value)
    return base64.b64encode(value).decode("ascii")


def _check_date(value: Any) -> str:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise TypeError("not a date")
    return value.isoformat()


def _check_instant(value: Any) -> str:
    if not isinstance(value, Instant):
        raise TypeError("not an Instant")
    return temporal.format_instant(value)


_CHECKERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.STRING: _check_string,
    Kind.CHAR: _check_char,
    Kind.BOOLEAN: _check_boolean,
    Kind.BIG_INT: _check_integer,
    Kind.FLOAT: _check_float,
    Kind.DOUBLE: _check_float,
    Kind.BIG_DEC: _check_decimal,
    Kind.DATE: _check_date,
    Kind.INSTANT: _check_instant,
    Kind.BYTES: _check_bytes,
}
