"""Functions of dates, times and timestamps: their fields, differences and moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall
from firesteel.table.functions.signatures import DATETIME, any_nullable, check_count, mismatch, signature
from firesteel.table.inference.families import is_datetime, is_integer, is_interval, is_timestamp
from firesteel.table.values.calendar import add_months, civil, day_number, iso_week, iso_year
from firesteel.table.values.zones import find_zone, to_local
from firesteel.types import logical as t
from firesteel.types.internal import from_column
from firesteel.types.logical import LogicalType

__all__ = ["FUNCTIONS"]

_DAY = 86_400_000_000_000
_BIGINT = t.BigIntType()


def _define(
    name: str, sign: Any, row: Any, vector: Any = None, spark: Any = None, **options: Any
) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, vector=vector, spark=spark, family="temporal", **options)


# -- EXTRACT -----------------------------------------------------------------------------------------------

_DATE_FIELDS: dict[str, Callable[[int], int]] = {
    "YEAR": lambda days: civil(days)[0],
    "QUARTER": lambda days: (civil(days)[1] + 2) // 3,
    "MONTH": lambda days: civil(days)[1],
    "DAY": lambda days: civil(days)[2],
    "WEEK": iso_week,
    "DOY": lambda days: days - day_number(civil(days)[0], 1, 1) + 1,
    "DOW": lambda days: (days + 4) % 7 + 1,
    "ISODOW": lambda days: (days + 3) % 7 + 1,
    "ISOYEAR": iso_year,
    "DECADE": lambda days: civil(days)[0] // 10,
    "CENTURY": lambda days: (civil(days)[0] + 99) // 100,
    "MILLENNIUM": lambda days: (civil(days)[0] + 999) // 1000,
}
_TIME_FIELDS: dict[str, Callable[[int], int]] = {
    "HOUR": lambda nanos: nanos // 3_600_000_000_000,
    "MINUTE": lambda nanos: nanos // 60_000_000_000 % 60,
    "SECOND": lambda nanos: nanos // 1_000_000_000 % 60,
    "MILLISECOND": lambda nanos: nanos // 1_000_000 % 1000,
    "MICROSECOND": lambda nanos: nanos // 1000 % 1_000_000,
    "NANOSECOND": lambda nanos: nanos % 1_000_000_000,
}
_MILLIS_OF = {
    "HOUR": (86_400_000, 3_600_000),
    "MINUTE": (3_600_000, 60_000),
    "SECOND": (60_000, 1000),
    "MILLISECOND": (1000, 1),
}
"""The milliseconds of the next larger unit, and of the unit."""
_ALIASES = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY"}


def _infer_extract(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("EXTRACT", arguments, 1, 1)
    type_ = arguments[0].type
    if not (is_datetime(type_) or is_interval(type_)):
        raise mismatch("EXTRACT", arguments, "'EXTRACT(<DATETIME INTERVAL> FROM <DATETIME>)'")
    _check_unit(symbols[0], type_)
    return Inferred((type_,), _BIGINT.copy(type_.nullable))


def _check_unit(unit: str, type_: LogicalType) -> None:
    fine = unit in ("MICROSECOND", "NANOSECOND")
    is_time = isinstance(type_, t.TimeType)
    if (is_time and (fine or unit not in _TIME_FIELDS)) or (fine and isinstance(type_, t.DateType)):
        raise ValidationError(f"Unit {unit} can not be applied to {type_.as_summary_string()}.")


def _extract(call: Call, session: Session) -> Callable[[int], int]:
    unit = _ALIASES.get(call.symbols[0], call.symbols[0])
    type_ = call.arguments[0].type
    match type_:
        case t.DateType():
            return _of_date(unit)
        case t.TimeType():
            field = _TIME_FIELDS[unit]
            return lambda millis: field(millis * 1_000_000)
        case t.YearMonthIntervalType():
            fields: dict[str, Callable[[int], int]] = {
                "YEAR": lambda months: int(months / 12),
                "MONTH": lambda months: months % 12,
                "QUARTER": lambda months: months % 12 // 3 + 1,
            }
            return fields[unit]
        case t.DayTimeIntervalType():
            return _of_interval(unit)
        case t.LocalZonedTimestampType():
            zone = find_zone(session.local_time_zone)
            inner = _of_timestamp(unit)
            return lambda nanos: inner(to_local(nanos, zone))
    return _of_timestamp(unit)


def _of_date(unit: str) -> Callable[[int], int]:
    if unit == "EPOCH":
        return lambda days: days * 86_400
    return _DATE_FIELDS.get(unit) or (lambda _: 0)


def _of_timestamp(unit: str) -> Callable[[int], int]:
    """Flink counts the days and the time of what is before 1970 towards 1970."""
    if unit in ("MICROSECOND", "NANOSECOND"):
        size = 1000 if unit == "MICROSECOND" else 1
        return lambda nanos: (_remainder(nanos // 10**6, 1000) * 10**6 + nanos % 10**6) // size
    if unit in _MILLIS_OF:
        around, size = _MILLIS_OF[unit]
        return lambda nanos: _truncated(_remainder(nanos // 10**6, around), size)
    if unit == "EPOCH":
        return lambda nanos: _truncated(nanos // 10**6, 1000)
    date = _DATE_FIELDS[unit]
    return lambda nanos: date(_truncated(nanos // 10**6, 86_400_000))


def _remainder(millis: int, size: int) -> int:
    return millis % size if millis >= 0 else -(-millis % size)


def _of_interval(unit: str) -> Callable[[int], int]:
    if unit == "DAY":
        return lambda millis: int(millis / 86_400_000)
    if unit == "EPOCH":
        return lambda millis: millis // 1000
    time = _TIME_FIELDS[unit]
    return lambda millis: time(millis % 86_400_000 * 1_000_000)


_KERNELS: dict[str, Callable[[Any], Any]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "WEEK": pc.iso_week,
    "DOW": lambda array: pc.day_of_week(array, count_from_zero=False, week_start=7),
}


def _extract_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    kernel = _KERNELS.get(_ALIASES.get(call.symbols[0], call.symbols[0]))
    if kernel is None or not isinstance(call.arguments[0].type, t.TimestampType):
        return None
    evaluate = _of_timestamp(_ALIASES.get(call.symbols[0], call.symbols[0]))

    def extract(value: Any) -> Any:
        if isinstance(value, pa.Scalar) or _is_after_1970(value):
            return kernel(value).cast(pa.int64())
        type_ = call.arguments[0].type
        return pa.array([None if nanos is None else evaluate(nanos) for nanos in from_column(value, type_)], pa.int64())

    return extract


def _is_after_1970(array: Any) -> bool:
    lowest = pc.min(array.cast(pa.int64())).as_py()
    return lowest is None or lowest >= 0


def _field_function(name: str, unit: str) -> FunctionDefinition:
    sign = signature(name, DATETIME, returns=_BIGINT)

    def infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        found = sign(arguments, symbols)
        _check_unit(unit, arguments[0].type)
        return found

    def with_unit(call: Call) -> Call:
        return Call(call.type, "EXTRACT", call.arguments, (unit,))

    return _define(
        name,
        infer,
        PerCall(lambda call, session: _extract(with_unit(call), session)),
        PerCall(lambda call, session: _extract_vector(with_unit(call), session)),
    )


# -- TIMESTAMPADD, TIMESTAMPDIFF ---------------------------------------------------------------------------

_UNITS = {
    "WEEK": 7 * _DAY,
    "DAY": _DAY,
    "HOUR": 3_600_000_000_000,
    "MINUTE": 60_000_000_000,
    "SECOND": 1_000_000_000,
    "MILLISECOND": 1_000_000,
    "MICROSECOND": 1000,
    "NANOSECOND": 1,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_NANOS_OF: dict[type[LogicalType], int] = {t.DateType: _DAY, t.TimeType: 1_000_000}


def _infer_add(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("TIMESTAMPADD", arguments, 2, 2)
    count, type_ = (argument.type for argument in arguments)
    if not is_integer(count) or not is_datetime(type_):
        raise mismatch("TIMESTAMPADD", arguments, "'TIMESTAMPADD(<UNIT>, <INTEGER>, <DATETIME>)'")
    result = type_
    if isinstance(type_, t.DateType) and _UNITS.get(symbols[0], _DAY) < _DAY:
        result = t.TimestampType(6)
    return Inferred((count, type_), result.copy(any_nullable(arguments)))


def _add(call: Call, session: Session) -> Callable[[int, int], int]:
    unit = call.symbols[0]
    type_ = call.arguments[1].type
    size = _NANOS_OF.get(type(type_), 1)
    to_result = _NANOS_OF.get(type(call.type), 1)
    months = _MONTHS.get(unit)
    is_time = isinstance(type_, t.TimeType)

    def move(count: int, value: int) -> int:
        nanos = value * size
        if months is not None:
            days, rest = divmod(nanos, _DAY)
            nanos = add_months(days, count * months) * _DAY + rest
        else:
            nanos += count * _UNITS[unit]
        return nanos % _DAY // to_result if is_time else nanos // to_result

    def checked(count: int, value: int) -> int:
        try:
            return move(count, value)
        except (ValueError, OverflowError) as error:
            raise EvaluationError(f"TIMESTAMPADD leaves the range of years: {error}") from error

    return checked


def _infer_diff(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("TIMESTAMPDIFF", arguments, 2, 2)
    types = tuple(argument.type for argument in arguments)
    if not all(is_timestamp(type_) or isinstance(type_, t.DateType) for type_ in types):
        raise mismatch("TIMESTAMPDIFF", arguments, "'TIMESTAMPDIFF(<UNIT>, <TIMESTAMP>, <TIMESTAMP>)'")
    if len({isinstance(type_, t.LocalZonedTimestampType) for type_ in types}) > 1:
        raise ValidationError("TIMESTAMP_LTZ only supports diff between the same type.")
    return Inferred(types, t.IntType(nullable=any_nullable(arguments)))


def _local(type_: LogicalType, session: Session) -> Callable[[int], int]:
    if isinstance(type_, t.DateType):
        return lambda days: days * _DAY
    if isinstance(type_, t.LocalZonedTimestampType):
        zone = find_zone(session.local_time_zone)
        return lambda nanos: to_local(nanos, zone)
    return lambda nanos: nanos


def _difference(call: Call, session: Session) -> Callable[[int, int], int]:
    unit = call.symbols[0]
    first, second = (_local(argument.type, session) for argument in call.arguments)
    months = _MONTHS.get(unit)

    def difference(start: int, end: int) -> int:
        from_, to = first(start), second(end)
        if months is None:
            return _wrapped(_truncated(to - from_, _UNITS[unit]))
        return _truncated(_whole_months(from_, to), months)

    return difference


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _whole_months(start: int, end: int) -> int:
    """The months from the day of one to that of the other, less one if the last day is reached at an earlier time."""
    (first, time), (last, last_time) = divmod(start, _DAY), divmod(end, _DAY)
    months = _months_of_days(first, last) if last >= first else -_months_of_days(last, first)
    return months - 1 if add_months(first, months) == last and last_time < time else months


def _months_of_days(first: int, last: int) -> int:
    (year, month, _), (last_year, last_month, _) = civil(first), civil(last)
    months = (last_year - year) * 12 + last_month - month
    return months if add_months(first, months) <= last else months - 1


FUNCTIONS = (
    _define("EXTRACT", _infer_extract, PerCall(_extract), PerCall(_extract_vector), returns_null=False),
    *(
        _field_function(name, unit)
        for name, unit in (
            ("YEAR", "YEAR"),
            ("QUARTER", "QUARTER"),
            ("MONTH", "MONTH"),
            ("WEEK", "WEEK"),
            ("DAYOFYEAR", "DOY"),
            ("DAYOFMONTH", "DAY"),
            ("DAYOFWEEK", "DOW"),
            ("HOUR", "HOUR"),
            ("MINUTE", "MINUTE"),
            ("SECOND", "SECOND"),
        )
    ),
    _define("TIMESTAMPADD", _infer_add, PerCall(_add), can_fail=True),
    _define("TIMESTAMPDIFF", _infer_diff, PerCall(_difference)),
)
