"""The text of rows as Flink's ``Row.toString`` has it: ``+I[1, null, 2020-01-01T00:00]``."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.table.values.bitmap import bitmap_text
from firesteel.table.values.temporal_text import date_text
from firesteel.types import logical as t
from firesteel.types.internal import from_column
from firesteel.types.java_text import to_java_double, to_java_float

__all__ = ["row_texts", "value_text"]

_KINDS = ("+I", "-U", "+U", "-D")
_NANOS_PER_DAY = 86_400_000_000_000
Text = Callable[[Any], str]


def row_texts(batch: Any, row_type: t.RowType) -> list[str]:
    """The text of each row of a ColumnBatch."""
    columns = []
    for index, part in enumerate(row_type.fields):
        text = value_text(part.type)
        values = from_column(batch.data.column(index), part.type)
        columns.append(["null" if value is None else text(value) for value in values])
    rows = map(", ".join, zip(*columns, strict=True)) if columns else [""] * len(batch)
    if batch.kinds is None:
        return [f"+I[{row}]" for row in rows]
    return [f"{_KINDS[kind]}[{row}]" for kind, row in zip(batch.kinds.tolist(), rows, strict=True)]


def value_text(type_: t.LogicalType) -> Text:
    """The function for values of a type that are not null."""
    match type_:
        case t.BooleanType():
            return lambda value: "true" if value else "false"
        case t.FloatType():
            return to_java_float
        case t.DoubleType():
            return to_java_double
        case t.DecimalType():
            return _decimal
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"
        case t.BitmapType():
            return bitmap_text
        case t.DateType():
            return date_text
        case t.TimeType():
            return lambda value: _time(value * 1_000_000)
        case t.TimestampType():
            return _timestamp
        case t.LocalZonedTimestampType():
            return _instant
        case t.YearMonthIntervalType():
            return _period
        case t.DayTimeIntervalType():
            return _duration
    return _nested(type_)


def _nested(type_: t.LogicalType) -> Text:
    match type_:
        case t.ArrayType():
            element = _nullable(value_text(type_.element_type))
            return lambda values: f"[{', '.join(map(element, values))}]"
        case t.MapType() | t.MultisetType():
            is_map = isinstance(type_, t.MapType)
            key = _nullable(value_text(type_.key_type if is_map else type_.element_type))  # type: ignore[union-attr]
            item = _nullable(value_text(type_.value_type if is_map else t.IntType()))  # type: ignore[union-attr]
            return lambda entries: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in entries.items())}}}"
        case t.FieldsType():
            parts = [_nullable(value_text(part)) for part in type_.children()]
            return lambda row: f"+I[{', '.join(part(value) for part, value in zip(parts, row, strict=True))}]"
    return str


def _nullable(text: Text) -> Text:
    return lambda value: "null" if value is None else text(value)


def _decimal(value: Decimal) -> str:
    # as BigDecimal.toString: exponents only for many zeros behind the point
    return str(value) if value.adjusted() < -6 else f"{value:f}"


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09}"
    return "." + (digits[:3] if nanos % 1_000_000 == 0 else digits[:6] if nanos % 1000 == 0 else digits)


def _time(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    return f"{text}:{seconds % 60:02}{_fraction(fraction)}" if seconds % 60 or fraction else text


def _timestamp(nanos: int) -> str:
    days, rest = divmod(nanos, _NANOS_PER_DAY)
    return f"{date_text(days)}T{_time(rest)}"


def _instant(nanos: int) -> str:
    days, rest = divmod(nanos, _NANOS_PER_DAY)
    seconds, fraction = divmod(rest, 10**9)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{date_text(days)}T{clock}{_fraction(fraction)}Z"


def _period(months: int) -> str:
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    text = (f"{sign * years}Y" if years else "") + (f"{sign * rest}M" if rest else "")
    return f"P{text}" if text else "P0D"


def _duration(millis: int) -> str:
    if not millis:
        return "PT0S"
    sign = "-" if millis < 0 else ""
    seconds, fraction = divmod(abs(millis), 1000)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    text = (f"{sign}{hours}H" if hours else "") + (f"{sign}{minutes}M" if minutes else "")
    if rest or fraction:
        text += f"{sign}{rest}{f'.{fraction:03}'.rstrip('0') if fraction else ''}S"
    return f"PT{text}"
