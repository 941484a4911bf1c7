"""Values as text, the way Flink's JSON and CSV formats read and write them."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Instant
from firesteel.types import temporal_text as temporal
from firesteel.types.codec import Converter, SchemaMismatchError, describe, type_test
from firesteel.types.logical import CharType, DecimalType, LogicalType, LogicalTypeRoot, RawType
from firesteel.types.python import BITS, RANGES

__all__ = [
    "JSON_TEXT",
    "SQL_TEXT",
    "TextStyle",
    "check_text_type",
    "checked_value",
    "expected",
    "is_any",
    "mismatch",
    "parser_of",
    "text_code",
    "text_value",
]

_Root = LogicalTypeRoot

_EXPECTED = {
    _Root.VARCHAR: "a string",
    _Root.BOOLEAN: "a boolean",
    **{root: f"an integer of {bits} bits" for root, bits in BITS.items()},
    _Root.FLOAT: "a number",
    _Root.DOUBLE: "a number",
    _Root.DECIMAL: "a decimal",
    _Root.DATE: "a date like 2020-01-31",
    _Root.TIME_WITHOUT_TIME_ZONE: "a time in UTC like 12:30:00Z",
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: "a timestamp in UTC like 2020-01-31T12:30:00Z",
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: "a point in time like 2020-01-31T12:30:00Z",
    _Root.BINARY: "bytes in base64",
    _Root.VARBINARY: "bytes in base64",
    _Root.RAW: "a value",
    _Root.ROW: "a row",
    _Root.ARRAY: "an array",
    _Root.MAP: "a map",
}
_HELD = frozenset({*_EXPECTED, _Root.CHAR})


def is_any(type_: LogicalType) -> bool:
    """Whether values of all types are of the type; JSON then has them as they are."""
    return isinstance(type_, RawType) and type_.class_name == "object"


def check_text_type(type_: LogicalType, path: str, format_name: str) -> None:
    """An error that names the field if a format has no text for its type; parts of the type are not looked at."""
    if type_.root not in _HELD or (type_.root is _Root.RAW and not is_any(type_)):
        raise InvalidProgramError(
            f"{format_name} cannot hold field '{path}' of type {type_}.",
            hint="Use the types of numbers, strings, booleans, dates and times, rows, arrays and maps of them.",
        )


def expected(type_: LogicalType) -> str:
    """What a field of that type holds, in words."""
    match type_:
        case CharType(length=1):
            return "a string of one character"
        case CharType():
            return f"a string of {type_.length} characters"
        case DecimalType(precision=None, scale=0):
            return "an integer"
    return _EXPECTED[type_.root]


def mismatch(path: str, type_: LogicalType, value: Any) -> SchemaMismatchError:
    """The error that names the field, the expected and the actual value."""
    return SchemaMismatchError(path, expected(type_), describe(value))


# -- from text ---------------------------------------------------------------------------------------------


def parser_of(type_: LogicalType) -> Callable[[str], Any]:
    """The function that makes a value of a type without parts from text; it raises ValueError."""
    if type_.root in RANGES:
        return _in_range(_parse_integer, *RANGES[type_.root])
    match type_:
        case CharType():
            return _of_length(str, type_.length)
        case DecimalType():
            return _parse_integer if type_.is_integer else _parse_decimal
    return _PARSERS[type_.root]


def _in_range(convert: Callable[[Any], int], low: int, high: int) -> Callable[[Any], int]:
    def in_range(value: Any) -> int:
        number = convert(value)
        if not low <= number <= high:
            raise ValueError("out of range")
        return number

    return in_range


def _of_length(convert: Callable[[Any], str], length: int) -> Callable[[Any], str]:
    def of_length(value: Any) -> str:
        text = convert(value)
        if len(text) != length:
            raise ValueError("another length")
        return text

    return of_length


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


def _parse_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_PARSERS: dict[LogicalTypeRoot, Callable[[str], Any]] = {
    _Root.VARCHAR: str,
    _Root.RAW: str,
    _Root.BOOLEAN: _parse_boolean,
    _Root.FLOAT: _parse_float,
    _Root.DOUBLE: _parse_float,
    _Root.DATE: temporal.parse_date,
    _Root.TIME_WITHOUT_TIME_ZONE: temporal.parse_time,
    _Root.TIMESTAMP_WITHOUT_TIME_ZONE: temporal.parse_timestamp,
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: temporal.parse_instant,
    _Root.BINARY: _parse_bytes,
    _Root.VARBINARY: _parse_bytes,
}


# -- to text -----------------------------------------------------------------------------------------------


class TextStyle(NamedTuple):
    """How a format writes booleans and times."""

    boolean: Converter
    time: Callable[[dt.time], str]
    timestamp: Callable[[dt.datetime], str]


JSON_TEXT = TextStyle(bool, temporal.format_json_time, temporal.format_json_timestamp)
SQL_TEXT = TextStyle(("false", "true").__getitem__, temporal.format_sql_time, temporal.format_sql_timestamp)


def text_code(type_: LogicalType, v: str, otherwise: str, string: str | None = None) -> str:
    """An expression: what is written for a variable whose value is a plain number, boolean or string, or ``otherwise``.

    ``string`` is the expression for a string, unless that is its own text.
    """
    test = type_test(type_, v, finite=True)
    if test is None:
        return otherwise
    if type_.root is _Root.BOOLEAN:
        return f"booleans[{v}] if {test} else {otherwise}"
    if type_.root is _Root.VARCHAR:
        return f"{string or v} if {test} else {otherwise}"
    is_decimal = isinstance(type_, DecimalType) and not type_.is_integer
    return otherwise if is_decimal else f"{v} if {test} else {otherwise}"


def text_value(type_: LogicalType, path: str, style: TextStyle) -> Converter:
    """The function that checks a value to be written: an int, float, bool or Decimal, else the text that stands for it.

    It raises SchemaMismatchError.
    """
    check = checked_value(type_, style)

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise mismatch(path, type_, value) from None

    return checked


def checked_value(type_: LogicalType, style: TextStyle = JSON_TEXT) -> Converter:
    """As `text_value`, but it raises ValueError or TypeError if the value does not fit."""
    if type_.root in RANGES:
        return _in_range(_check_integer, *RANGES[type_.root])
    match type_:
        case CharType():
            return _of_length(_check_string, type_.length)
        case DecimalType():
            return _check_integer if type_.is_integer else _check_decimal
    if type_.root is _Root.BOOLEAN:
        return _boolean(style.boolean)
    if type_.root is _Root.TIME_WITHOUT_TIME_ZONE:
        return _instance(dt.time, style.time)
    if type_.root is _Root.TIMESTAMP_WITHOUT_TIME_ZONE:
        return _instance(dt.datetime, style.timestamp)
    return _CHECKERS[type_.root]


def _instance(cls: type, text_of: Converter) -> Converter:
    def check(value: Any) -> Any:
        if not isinstance(value, cls):
            raise TypeError(f"not a {cls.__name__}")
        return text_of(value)

    return check


def _boolean(text_of: Converter) -> Converter:
    def check(value: Any) -> Any:
        if type(value).__name__ not in ("bool", "bool_"):  # numpy's too
            raise TypeError("not a bool")
        return text_of(bool(value))

    return check


def _check_string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a str")
    return value


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


def _check_bytes(value: Any) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(_check_integer(item) & 0xFF for item in value)
    return base64.b64encode(value).decode("ascii")


def _check_date(value: Any) -> str:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise TypeError("not a date")
    return value.isoformat()


_CHECKERS: dict[LogicalTypeRoot, Converter] = {
    _Root.VARCHAR: _check_string,
    _Root.FLOAT: _check_float,
    _Root.DOUBLE: _check_float,
    _Root.DATE: _check_date,
    _Root.TIMESTAMP_WITH_LOCAL_TIME_ZONE: _instance(Instant, temporal.format_instant),
    _Root.BINARY: _check_bytes,
    _Root.VARBINARY: _check_bytes,
}
