"""Literals with their types."""

from __future__ import annotations

import re
from decimal import Decimal

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Literal
from firesteel.table.values import temporal_text as temporal
from firesteel.table.values.zones import find_zone, to_instant
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, LogicalTypeRoot
from firesteel.types.python import RANGES

__all__ = [
    "interval_literal",
    "interval_of_number",
    "number_literal",
    "stored_interval",
    "string_literal",
    "temporal_literal",
]

_MAX_DIGITS = 38
_UNITS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")


def number_literal(text: str) -> Literal:
    """An INT or BIGINT, a DECIMAL if the number has a point or is larger, or a DOUBLE if it has an exponent."""
    if "e" in text.lower():
        return Literal(t.DoubleType(nullable=False), float(text))
    text = text.removesuffix(".")
    value = Decimal(text)
    if "." not in text:
        for root, type_ in ((LogicalTypeRoot.INTEGER, t.IntType), (LogicalTypeRoot.BIGINT, t.BigIntType)):
            if RANGES[root][0] <= value <= RANGES[root][1]:
                return Literal(type_(nullable=False), int(value))
    whole, _, fraction = text.lstrip("-").partition(".")
    precision, scale = len(whole) + len(fraction), len(fraction)
    if precision > _MAX_DIGITS or "." not in text:
        raise ValidationError(f"Numeric literal '{text}' out of range.")
    return Literal(t.DecimalType(precision, scale, nullable=False), value)


def string_literal(text: str) -> Literal:
    """A CHAR of the text's length."""
    return Literal(t.CharType(len(text), nullable=False), text)


def temporal_literal(kind: str, text: str, zone: str = "UTC") -> Literal:
    """A DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ; the digits of the seconds' fraction are its precision."""
    fraction = re.search(r"\.(\d+)\s*$", text)
    precision = len(fraction[1]) if fraction else 0
    try:
        if kind == "DATE":
            return Literal(t.DateType(nullable=False), temporal.parse_date(text))
        if kind == "TIME":
            return Literal(t.TimeType(precision, nullable=False), temporal.parse_time(text))
        nanos = temporal.parse_timestamp_literal(text)
    except ValueError:
        raise ValidationError(
            f"Illegal {kind} literal '{text}'.", hint="The form is 2006-06-05 12:30:45.123."
        ) from None
    if kind == "TIMESTAMP":
        return Literal(t.TimestampType(precision, nullable=False), nanos)
    return Literal(t.LocalZonedTimestampType(precision, nullable=False), to_instant(nanos, find_zone(zone)))


def interval_literal(text: str, start: str, end: str | None) -> Literal:
    """An interval: '1-2' YEAR TO MONTH, '1 02:03:04.5' DAY TO SECOND, '90' MINUTE.

    Its type is one of months or of seconds with three digits, whatever its fields are, as in Flink.
    """
    try:
        if start in ("YEAR", "QUARTER", "MONTH"):
            return _year_month(text, start, end)
        return _day_time(text, start, end)
    except (ValueError, KeyError):
        qualifier = f"{start} TO {end}" if end else start
        raise ValidationError(f"Illegal interval literal format '{text}' for INTERVAL {qualifier}.") from None


def interval_of_number(number: int, type_: LogicalType) -> Literal:
    """CAST(5 AS INTERVAL DAY): of a literal, a number of the interval's field."""
    return interval_literal(str(number), type_.resolution.name, None)  # type: ignore[attr-defined]


def stored_interval(type_: LogicalType) -> LogicalType:
    """The type that an interval with any fields has in expressions; other types are left as they are."""
    match type_:
        case t.YearMonthIntervalType():
            return t.YearMonthIntervalType(t.YearMonthResolution.MONTH, nullable=type_.nullable)
        case t.DayTimeIntervalType():
            return t.DayTimeIntervalType(t.DayTimeResolution.SECOND, fractional_precision=3, nullable=type_.nullable)
    return type_


def _signed(text: str) -> tuple[int, str]:
    text = text.strip()
    return (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))


def _year_month(text: str, start: str, end: str | None) -> Literal:
    sign, body = _signed(text)
    if end:
        years, months = body.split("-")
        value = int(years) * 12 + int(months)
    else:
        value = int(body) * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[start]
    return Literal(t.YearMonthIntervalType(t.YearMonthResolution.MONTH, nullable=False), sign * value)


def _day_time(text: str, start: str, end: str | None) -> Literal:
    sign, body = _signed(text)
    if start == "WEEK":
        value = Decimal(body) * 7 * _UNITS["DAY"]
    elif end:
        fields = _DAY_TIME[_DAY_TIME.index(start) : _DAY_TIME.index(end) + 1]
        parts = re.split(r"[ :]+", body)
        if len(parts) != len(fields):
            raise ValueError(text)
        value = sum((Decimal(part) * _UNITS[unit] for part, unit in zip(parts, fields, strict=True)), Decimal(0))
    else:
        value = Decimal(body) * _UNITS[start]
    type_ = t.DayTimeIntervalType(t.DayTimeResolution.SECOND, fractional_precision=3, nullable=False)
    return Literal(type_, sign * int(value))
