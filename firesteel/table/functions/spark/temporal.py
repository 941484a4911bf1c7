"""Functions of dates and timestamps. The time zone of the Spark session is UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.functions.spark.texts import SparkText, literal_value, spark_type
from firesteel.table.inference.families import is_integer, is_timestamp
from firesteel.types import logical as t

__all__ = ["TEXTS", "moved"]

_DAY = 86_400_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999."""
_ALIASES = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY"}
_FIELDS = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "DAY": "day({0})",
    "WEEK": "weekofyear({0})",
    "DOY": "dayofyear({0})",
    "DOW": "dayofweek({0})",
    "ISODOW": "weekday({0}) + 1",
    "ISOYEAR": "extract(YEAROFWEEK FROM {0})",
    "DECADE": "year({0}) div 10",
    "CENTURY": "(year({0}) + 99) div 100",
    "MILLENNIUM": "(year({0}) + 999) div 1000",
}
_MILLIS = "unix_millis(CAST({0} AS TIMESTAMP))"
_MICROS = f"({_MILLIS} % 1000 * 1000 + pmod(unix_micros(CAST({{0}} AS TIMESTAMP)), 1000))"
_DATE = f"date_from_unix_date(CAST({_MILLIS} div {_DAY} AS INT))"
"""Flink counts the days and the time before 1970 towards 1970, as these divisions do."""
_TIMES = {
    "HOUR": f"{_MILLIS} % {_DAY} div 3600000",
    "MINUTE": f"{_MILLIS} % 3600000 div 60000",
    "SECOND": f"{_MILLIS} % 60000 div 1000",
    "MILLISECOND": f"{_MILLIS} % 1000",
    "MICROSECOND": _MICROS,
    "NANOSECOND": f"{_MICROS} * 1000",
    "EPOCH": f"{_MILLIS} div 1000",
}
_ROUNDED = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_FORMAT = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|[-/:. ,_])+")


def _extract(call: Call, arguments: Sequence[str]) -> str | None:
    return _field(_ALIASES.get(call.symbols[0], call.symbols[0]), call.arguments[0], arguments[0])


def _field(unit: str, argument: Expression, text: str) -> str | None:
    is_date = isinstance(argument.type, t.DateType)
    if not is_date and not is_timestamp(argument.type):
        return None
    if unit in _FIELDS:
        return f"CAST({_FIELDS[unit].format(text if is_date else _DATE.format(text))} AS BIGINT)"
    return None if is_date or unit not in _TIMES else f"CAST({_TIMES[unit].format(text)} AS BIGINT)"


def _field_of(unit: str) -> SparkText:
    return lambda call, arguments: _field(unit, call.arguments[0], arguments[0])


def rounded(up: bool) -> Callable[[Call, Sequence[str]], str | None]:
    """FLOOR and CEIL to a unit."""

    def text(call: Call, arguments: Sequence[str]) -> str | None:
        unit, (value,) = call.symbols[0], arguments
        name = spark_type(call.type)
        if unit not in _ROUNDED or name is None or not is_timestamp(call.type):
            return None
        whole = _DATE.format(value) if unit in _MONTHS and not up else value
        down = f"CAST(date_trunc('{unit}', {whole}) AS {name})"
        if not up:
            return down
        return f"CASE WHEN {down} = {value} THEN {value} ELSE timestampadd({unit}, 1, {down}) END"

    return text


def moved(value: Expression, interval: Expression, texts: Sequence[str], sign: int) -> str | None:
    """A date or timestamp and an interval."""
    text, by = texts
    if isinstance(value.type, t.DateType):
        amount = literal_value(interval)
        if amount is None:
            return None
        if isinstance(interval.type, t.YearMonthIntervalType):
            return f"add_months({text}, {sign * amount})"
        return f"date_add({text}, {sign * int(amount / _DAY)})"
    if not is_timestamp(value.type):
        return None
    return f"({text} {'+' if sign > 0 else '-'} {by})"


def _add(call: Call, arguments: Sequence[str]) -> str | None:
    unit, (count, value) = call.symbols[0], arguments
    if not isinstance(call.arguments[1].type, t.DateType):
        known = unit in ("SECOND", "MINUTE", "HOUR") or unit in _DAYS or unit in _MONTHS
        return f"timestampadd({unit}, {count}, {value})" if known and is_timestamp(call.type) else None
    if unit in _DAYS:
        return f"date_add({value}, CAST({count} * {_DAYS[unit]} AS INT))"
    return f"add_months({value}, CAST({count} * {_MONTHS[unit]} AS INT))" if unit in _MONTHS else None


def _difference(call: Call, arguments: Sequence[str]) -> str | None:
    unit = call.symbols[0]
    known = unit in ("SECOND", "MINUTE", "HOUR", "DAY")
    return f"CAST(timestampdiff({unit}, {arguments[0]}, {arguments[1]}) AS INT)" if known else None


def _format(call: Call, arguments: Sequence[str]) -> str | None:
    pattern = literal_value(call.arguments[1])
    if not pattern or not _FORMAT.fullmatch(pattern) or not is_timestamp(call.arguments[0].type):
        return None
    return f"date_format({arguments[0]}, {arguments[1]})"


def _to_ltz(call: Call, arguments: Sequence[str]) -> str | None:
    if not is_integer(call.arguments[0].type):
        return None
    digits = literal_value(call.arguments[1]) if len(arguments) == 2 else None if len(arguments) > 1 else 3
    unit = {0: "seconds", 3: "millis"}.get(digits)  # type: ignore[arg-type]
    if unit is None:
        return None
    first, last = (bound * (1000 if unit == "millis" else 1) for bound in (_FIRST_SECOND, _LAST_SECOND + 1))
    return f"CASE WHEN {arguments[0]} >= {first} AND {arguments[0]} < {last} THEN timestamp_{unit}({arguments[0]}) END"


TEXTS: dict[str, SparkText] = {
    "EXTRACT": _extract,
    "YEAR": _field_of("YEAR"),
    "QUARTER": _field_of("QUARTER"),
    "MONTH": _field_of("MONTH"),
    "WEEK": _field_of("WEEK"),
    "DAYOFYEAR": _field_of("DOY"),
    "DAYOFMONTH": _field_of("DAY"),
    "DAYOFWEEK": _field_of("DOW"),
    "HOUR": _field_of("HOUR"),
    "MINUTE": _field_of("MINUTE"),
    "SECOND": _field_of("SECOND"),
    "TIMESTAMPADD": _add,
    "TIMESTAMPDIFF": _difference,
    "DATE_FORMAT": _format,
    "TO_TIMESTAMP_LTZ": _to_ltz,
    "CURRENT_DATE": "current_date()",
    "CURRENT_TIMESTAMP": "date_trunc('MILLISECOND', current_timestamp())",
    "NOW": "date_trunc('MILLISECOND', current_timestamp())",
    "PROCTIME": "date_trunc('MILLISECOND', current_timestamp())",  # one time for all rows
    "LOCALTIMESTAMP": "CAST(date_trunc('MILLISECOND', localtimestamp()) AS TIMESTAMP_NTZ)",
}
