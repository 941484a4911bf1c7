"""CAST of a value of a row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.session import Session
from firesteel.table.casts.text import text_function
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
    fit = _to_units(target)
    return text if fit is None else lambda value: fit(text(value))


def _to_units(target: LogicalType) -> Convert | None:
    """As below for text that Flink holds as a string of Java: the length is one of units of 16 bits."""
    fit = _to_length(target, " ")
    if fit is None:
        return None
    length: int = target.length  # type: ignore[attr-defined]
    padded = isinstance(target, t.CharType)

    def cut(text: str) -> Any:
        if text.isascii():
            return fit(text)
        units = text.encode("utf-16-le", "surrogatepass")[: 2 * length].decode("utf-16-le", "replace")
        return units + " " * (length - len(text.encode("utf-16-le")) // 2) if padded else units

    return cut


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
            return lambda value: numbers.parse_decimal(value, target)
        case t.DateType():
            return temporal.parse_date
        case t.TimeType():
            cut = _cut(10 ** max(3 - target.precision, 0))
            return lambda value: cut(temporal.parse_time(value))
        case t.TimestampType():
            return lambda value: temporal.parse_timestamp(value, target.precision)
        case t.LocalZonedTimestampType():
            zone = find_zone(session.local_time_zone)
            return lambda value: to_instant(temporal.parse_timestamp(value, target.precision), zone)
    raise AssertionError(target)


def _parse_boolean(text: str) -> bool:
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


# -- numbers -----------------------------------------------------------------------------------------------


def _to_number(source: LogicalType, target: LogicalType) -> Convert | None:
    if families.is_boolean(source):
        from_int = _to_number(t.IntType(), target) or int
        return lambda value: from_int(int(value))
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


def _to_interval(source: LogicalType, target: LogicalType) -> Convert | None:
    """A number is one of months or of milliseconds, whatever the fields of the interval are."""
    if families.is_interval(source):
        return None
    return _to_integer(source, 32 if isinstance(target, t.YearMonthIntervalType) else 64)


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
    of_instant = isinstance(source, t.LocalZonedTimestampType)
    match target:
        case t.DateType():
            return (lambda value: local(value) // _DAY) if of_instant else lambda value: _whole_days(local(value))
        case t.TimeType():
            to_time = _to_precision(target)
            if of_instant:
                return lambda value: to_time(local(value) % _DAY // 10**6)
            return lambda value: to_time(_time_of_day(local(value)))
        case t.LocalZonedTimestampType():
            fit = _to_precision(target)
            return lambda value: fit(to_instant(local(value), zone))
    fit = _to_precision(target)
    return lambda value: fit(local(value))


def _whole_days(nanos: int) -> int:
    """The days before 1970 are counted towards 1970, as Flink does."""
    millis = nanos // 10**6
    return millis // 86_400_000 if millis >= 0 else -(-millis // 86_400_000)


def _time_of_day(nanos: int) -> int:
    millis = nanos // 10**6
    return millis % 86_400_000 if millis >= 0 else -(-millis % 86_400_000)


def _to_precision(target: LogicalType) -> Convert:
    """Cuts digits; what has no more than milliseconds is cut towards 1970."""
    digits: int = target.precision  # type: ignore[attr-defined]
    if isinstance(target, t.TimeType):
        return _cut(10 ** max(3 - digits, 0), check=True)
    if digits >= 9:
        return int
    if digits > 3:
        unit, short = 10 ** (9 - digits), int(10**digits)
        # Flink compares the number of digits without leading zeros
        return lambda value: value if value % 10**9 < short else value // unit * unit
    cut = _cut(10 ** (3 - digits))
    return lambda value: cut(value // 10**6) * 10**6


def _cut(unit: int, check: bool = False) -> Convert:
    def cut(value: int) -> int:
        whole = value // unit * unit if value >= 0 else -(-value // unit * unit)
        if check and whole < 0:
            raise EvaluationError("A timestamp before 1970 has no time of day.", hint="Flink cannot represent it.")
        return whole

    return cut


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
