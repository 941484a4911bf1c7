"""CAST of a value of a row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from firesteel.table.casts.text import text_function
from firesteel.table.expressions.errors import EvaluationError
from firesteel.table.expressions.session import Session
from firesteel.table.inference import families
from firesteel.table.values import numbers
from firesteel.table.values import temporal_text as temporal
from firesteel.table.values.zones import find_zone, to_instant, to_local
from firesteel.types import logical as t
from firesteel.types.logical import MAX_LENGTH, FieldsType, LogicalType
from firesteel.types.python import BITS

__all__ = ["can_fail", "cast_row"]

Convert = Callable[[Any], Any]
_DAY = temporal.NANOS_PER_DAY
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")


def can_fail(source: LogicalType, target: LogicalType) -> bool:
    """Whether there are values of a type that cannot be cast to the other."""
    if families.is_character(source):
        return not families.is_string(target)
    return any(can_fail(one, other) for one, other in zip(source.children(), target.children(), strict=False))


def cast_row(source: LogicalType, target: LogicalType, safe: bool, session: Session) -> Convert | None:
    """What casts a value that is not NULL; None if it stays as it is."""
    convert = _conversion(source, target, session)
    if convert is None or not can_fail(source, target):
        return convert

    def checked(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, InvalidOperation, OverflowError) as error:
            if safe:
                return None
            raise EvaluationError(
                f"Cannot cast {value!r} to {target.as_summary_string()}.", hint="TRY_CAST returns NULL instead."
            ) from error

    return checked


def _conversion(source: LogicalType, target: LogicalType, session: Session) -> Convert | None:
    if families.is_null(source) or source.copy() == target.copy():
        return None
    if families.is_character(target):
        return _to_string(source, target, session)
    if families.is_character(source):
        return _from_string(target, session)
    if families.is_binary(target):
        return _to_length(target, b"\0")
    if families.is_numeric(target):
        return _to_number(source, target)
    if families.is_boolean(target):
        return bool
    if families.is_datetime(target):
        return _to_datetime(source, target, session)
    if families.is_interval(target):
        return _to_interval(source, target)
    return _constructed(source, target, session)


# -- strings -----------------------------------------------------------------------------------------------


def _to_string(source: LogicalType, target: LogicalType, session: Session) -> Convert | None:
    fit = _to_length(target, " ")
    if families.is_character(source):
        return fit
    text = text_function(source, session)
    return text if fit is None else lambda value: fit(text(value))


def _to_length(target: LogicalType, filler: Any) -> Convert | None:
    """Cuts what is too long; fills up what is to have a fixed length."""
    length: int = target.length  # type: ignore[attr-defined]
    if isinstance(target, (t.CharType, t.BinaryType)):
        return lambda value: value[:length].ljust(length, filler)
    return None if length == MAX_LENGTH else lambda value: value[:length]


def _from_string(target: LogicalType, session: Session) -> Convert | None:
    if target.root in BITS:
        bits = BITS[target.root]
        return lambda value: numbers.parse_integer(value, bits)
    match target:
        case t.BinaryType() | t.VarBinaryType():
            fit = _to_length(target, b"\0")
            return str.encode if fit is None else lambda value: fit(value.encode())
        case t.BooleanType():
            return _parse_boolean
        case t.DoubleType():
            return numbers.parse_double
        case t.FloatType():
            return lambda value: numbers.single(numbers.parse_double(value))
        case t.DecimalType():
            return lambda value: _parse_decimal(value, target)
        case t.DateType():
            return temporal.parse_date
        case t.TimeType():
            return temporal.parse_time
        case t.TimestampType():
            return lambda value: temporal.parse_timestamp(value, target.precision)
        case t.LocalZonedTimestampType():
            zone = find_zone(session.local_time_zone)
            return lambda value: to_instant(temporal.parse_timestamp(value, target.precision), zone)
    raise AssertionError(target)


def _parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


def _parse_decimal(text: str, type_: t.DecimalType) -> Decimal:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise ValueError(text)
    fitted = numbers.fit_decimal(value, type_)
    if fitted is None:
        raise ValueError(text)
    return fitted


# -- numbers -----------------------------------------------------------------------------------------------


def _to_number(source: LogicalType, target: LogicalType) -> Convert | None:
    if families.is_boolean(source):
        from_int = _to_number(t.IntType(), target) or int
        return lambda value: from_int(int(value))
    if families.is_interval(source):
        scale = _interval_unit(source)
        from_long = _to_number(t.BigIntType(), target) or int
        return lambda value: from_long(int(value / scale))
    if target.root in BITS:
        return _to_integer(source, BITS[target.root])
    match target:
        case t.DoubleType():
            return float
        case t.FloatType():
            return lambda value: numbers.single(float(value))
        case t.DecimalType():
            exact = not families.is_approximate(source)
            return lambda value: _to_decimal(value if exact else repr(value), target)
    raise AssertionError(target)


def _to_integer(source: LogicalType, bits: int) -> Convert | None:
    if families.is_approximate(source):
        return lambda value: numbers.truncate_to(value, bits)
    if source.root in BITS and BITS[source.root] <= bits:
        return None
    return lambda value: numbers.wrap(int(value), bits)


def _to_decimal(value: Any, type_: t.DecimalType) -> Decimal | None:
    number = Decimal(value)
    return numbers.fit_decimal(number, type_) if number.is_finite() else None


# -- dates and times ---------------------------------------------------------------------------------------


def _interval_unit(type_: LogicalType) -> int:
    resolution = type_.resolution.name  # type: ignore[attr-defined]
    units = {"YEAR": 12, "MONTH": 1, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
    return units[resolution]


def _to_interval(source: LogicalType, target: LogicalType) -> Convert | None:
    if families.is_interval(source):
        return None
    unit = _interval_unit(target)
    return lambda value: int(value) * unit


def _to_datetime(source: LogicalType, target: LogicalType, session: Session) -> Convert | None:
    """All conversions are by the way of the nanoseconds of a local timestamp."""
    zone = find_zone(session.local_time_zone)
    if type(source) is type(target):
        return _to_precision(target)
    match source:
        case t.DateType():
            local: Convert = lambda value: value * _DAY
        case t.TimeType():
            local = lambda value: value * 10**6
        case t.LocalZonedTimestampType():
            local = lambda value: to_local(value, zone)
        case _:
            local = int
    match target:
        case t.DateType():
            return lambda value: local(value) // _DAY
        case t.TimeType():
            to_time = _to_precision(target)
            return lambda value: to_time(local(value) % _DAY // 10**6)
        case t.LocalZonedTimestampType():
            fit = _to_precision(target)
            return lambda value: fit(to_instant(local(value), zone))
    fit = _to_precision(target)
    return lambda value: fit(local(value))


def _to_precision(target: LogicalType) -> Convert:
    digits: int = target.precision  # type: ignore[attr-defined]
    unit = 10 ** (3 - digits if isinstance(target, t.TimeType) else 9 - digits) if digits < 9 else 1
    if unit <= 1:
        return int
    return lambda value: value // unit * unit


# -- types made of types -----------------------------------------------------------------------------------


def _constructed(source: LogicalType, target: LogicalType, session: Session) -> Convert | None:
    parts = [_element(one, other, session) for one, other in zip(source.children(), target.children(), strict=True)]
    if not any(part is not None for part in parts):
        return None
    made = [part or (lambda value: value) for part in parts]
    match target:
        case t.ArrayType():
            (element,) = made
            return lambda values: [element(value) for value in values]
        case t.MapType():
            key, item = made
            return lambda entries: {key(k): item(v) for k, v in entries.items()}
        case t.MultisetType():
            (element,) = made
            return lambda entries: {element(k): count for k, count in entries.items()}
        case FieldsType():
            return lambda row: tuple([part(value) for part, value in zip(made, row, strict=True)])
    raise AssertionError(target)


def _element(source: LogicalType, target: LogicalType, session: Session) -> Convert | None:
    convert = _conversion(source, target, session)
    return None if convert is None else lambda value: None if value is None else convert(value)
