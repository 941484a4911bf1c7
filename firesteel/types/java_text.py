"""Values as Java's ``toString`` shows them: the form in which Flink prints and encodes records with a declared type."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.common.time import Instant
from firesteel.common.types import Row, RowKind
from firesteel.types.composite_type_information import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from firesteel.types.temporal_text import format_instant
from firesteel.types.type_information import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
)

__all__ = ["java_text", "to_java_double", "to_java_float"]

ToText = Callable[[Any], str]
_TEXTS = (BasicType.STRING, BasicType.CHAR)
_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_MAX_FLOAT_DIGITS = 9


def java_text(type_info: TypeInformation | None) -> ToText | None:
    """Returns what turns values of a type into text; None for a type whose values are shown as Python shows them.

    >>> java_text(TupleTypeInfo([BasicTypeInfo.INT_TYPE_INFO(), BasicTypeInfo.DOUBLE_TYPE_INFO()]))((1, 1e20))
    '(1,1.0E20)'
    """
    if isinstance(type_info, BasicTypeInfo):
        return None if type_info._basic_type in _TEXTS else _basic(type_info._basic_type)
    if isinstance(type_info, (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)):
        return _nullable(_sql_text)
    if isinstance(type_info, LocalTimeTypeInfo):
        return _nullable(_local_text)
    if isinstance(type_info, TupleTypeInfo):
        fields = _fields(type_info, ",")
        return _nullable(lambda value: f"({fields(value)})")
    if isinstance(type_info, RowTypeInfo):
        row_fields = _fields(type_info, ", ")
        return _nullable(lambda value: f"{_kind_of(value)}[{row_fields(value)}]")
    if isinstance(type_info, (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)):
        element = _part(type_info.get_element_type())
        return _nullable(lambda values: f"[{', '.join([element(value) for value in values])}]")
    if isinstance(type_info, MapTypeInfo):
        key, item = _part(type_info.get_key_type()), _part(type_info.get_value_type())
        return _nullable(lambda entries: f"{{{', '.join([f'{key(k)}={item(v)}' for k, v in entries.items()])}}}")
    return None


def _part(type_info: TypeInformation) -> ToText:
    return java_text(type_info) or _any


def _nullable(to_text: ToText) -> ToText:
    return lambda value: "null" if value is None else to_text(value)


def _any(value: Any) -> str:
    return "null" if value is None else str(value)


def _basic(basic_type: BasicType) -> ToText:
    if basic_type in _BITS:
        half = 1 << _BITS[basic_type] - 1
        return _nullable(lambda value: _wrapped(value, half))
    return _nullable(_BASIC.get(basic_type, str))


def _wrapped(value: Any, half: int) -> str:
    """An integer as one of so many bits holds it, twice ``half`` being the number of its values."""
    if not isinstance(value, int):
        return str(value)
    return str(int(value) if -half <= value < half else (value + half) % (2 * half) - half)


def _fields(type_info: RowTypeInfo | TupleTypeInfo, separator: str) -> ToText:
    parts = [_part(field) for field in type_info.get_field_types()]
    return lambda value: separator.join([part(field) for part, field in zip(parts, value, strict=False)])


def _kind_of(value: Any) -> RowKind:
    return value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def to_java_double(value: float) -> str:
    """Returns a number as ``Double.toString`` does: ``1.0E20`` below 0.001 and from ten million on."""
    text = repr(float(value))
    if math.isfinite(value) and len(text.lstrip("-").partition("e")[0]) == 1:
        text = f"{value:.1e}"  # at least two digits
    return _scientific(value, text)


def to_java_float(value: float) -> str:
    """Returns a number as ``Float.toString`` does, with the digits that 32 bits hold."""
    if not math.isfinite(value):
        return _scientific(value, "")
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    for digits in range(2, _MAX_FLOAT_DIGITS + 1):
        text = f"{single:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            break
    return _scientific(single, text)


def _scientific(value: float, text: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).rstrip("0")
    before = len(digits) + exponent  # how many of the digits are before the point
    minus = "-" if sign else ""
    if not shown:
        return f"{minus}0.0"
    if -3 < before <= 7:
        if before <= 0:
            return f"{minus}0.{'0' * -before}{shown}"
        whole = shown[:before].ljust(before, "0")
        return f"{minus}{whole}.{shown[before:] or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{before - 1}"


def _sql_text(value: Any) -> str:
    """A date, a time or a timestamp as the classes of java.sql show it."""
    if isinstance(value, dt.datetime):
        fraction = f"{value.microsecond:06}".rstrip("0") or "0"
        return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"
    if isinstance(value, dt.time):
        return f"{value:%H:%M:%S}"
    return str(value)


def _local_text(value: Any) -> str:
    """A date, a time or both as the classes of java.time show it."""
    if isinstance(value, (dt.datetime, dt.time)):
        time = f"{value:%H:%M}"
        if value.second or value.microsecond:
            time += f":{value:%S}"
        if value.microsecond:
            fraction = f"{value.microsecond:06}"
            time += f".{fraction.removesuffix('000')}"
        return f"{value:%Y-%m-%d}T{time}" if isinstance(value, dt.datetime) else time
    return str(value)


def _instant_text(value: Any) -> str:
    if not isinstance(value, Instant):
        return str(value)
    seconds, millis = divmod(value.to_epoch_milli(), 1000)  # Flink keeps those of Python to the millisecond
    whole = format_instant(Instant(seconds, 0))
    return whole if not millis else f"{whole.removesuffix('Z')}.{millis:03}Z"


def _decimal_text(value: Any) -> str:
    return str(abs(value)) if isinstance(value, Decimal) and not value else str(value)  # Java has no negative zero


def _number(to_text: Callable[[float], str]) -> ToText:
    return lambda value: to_text(value) if isinstance(value, (int, float)) else str(value)


_BASIC: dict[BasicType, ToText] = {
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: _number(to_java_float),
    BasicType.DOUBLE: _number(to_java_double),
    BasicType.INSTANT: _instant_text,
    BasicType.BIG_DEC: _decimal_text,
}
