"""Values as the strings to which CAST makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.table.bound.session import Session
from firesteel.table.values import temporal_text as temporal
from firesteel.table.values.bitmap import bitmap_text
from firesteel.table.values.variant import variant_text
from firesteel.table.values.zones import find_zone, to_local
from firesteel.types import logical as t
from firesteel.types.java_text import to_java_double, to_java_float
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["text_function"]

ToText = Callable[[Any], str]


def _boolean_text(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _bytes_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _hex_text(value: bytes) -> str:
    return f"x'{value.hex()}'"


def text_function(type_: LogicalType, session: Session, is_printing: bool = False) -> ToText:
    """What makes the text of values of a type; where results are printed, bytes are ``x'0aff'``."""
    match type_:
        case t.CharType() | t.VarCharType():
            return str
        case t.VariantType():
            return variant_text
        case t.BitmapType():
            return bitmap_text
        case t.BooleanType():
            return _boolean_text
        case t.DoubleType():
            return to_java_double
        case t.FloatType():
            return to_java_float
        case t.DecimalType():
            return f"{{:.{type_.scale}f}}".format
        case t.DateType():
            return temporal.date_text
        case t.TimeType():
            return lambda value: temporal.time_text(value, type_.precision)
        case t.TimestampType():
            return lambda value: temporal.timestamp_text(value, type_.precision)
        case t.LocalZonedTimestampType():
            zone = find_zone(session.local_time_zone)
            return lambda value: temporal.timestamp_text(to_local(value, zone), type_.precision)
        case t.YearMonthIntervalType():
            return temporal.year_month_text
        case t.DayTimeIntervalType():
            return temporal.day_time_text
        case t.BinaryType() | t.VarBinaryType():
            return _hex_text if is_printing else _bytes_text
    return _constructed(type_, session, is_printing)


def _constructed(type_: LogicalType, session: Session, is_printing: bool) -> ToText:
    parts = [_or_null(text_function(part, session, is_printing)) for part in type_.children()]
    match type_:
        case t.ArrayType():
            (element,) = parts
            return lambda values: f"[{', '.join([element(value) for value in values])}]"
        case t.MapType():
            key, item = parts
            return lambda entries: f"{{{', '.join([f'{key(k)}={item(v)}' for k, v in entries.items()])}}}"
        case t.MultisetType():
            (element,) = parts
            return lambda entries: f"{{{', '.join([f'{element(k)}={v}' for k, v in entries.items()])}}}"
        case t.StructuredType() if type_.class_name != "tuple":
            names = type_.field_names
            return lambda row: (
                f"({', '.join([f'{n}={part(value)}' for n, part, value in zip(names, parts, row, strict=True)])})"
            )
        case FieldsType():
            return lambda row: f"({', '.join([part(value) for part, value in zip(parts, row, strict=True)])})"
    return str


def _or_null(to_text: ToText) -> ToText:
    return lambda value: "NULL" if value is None else to_text(value)
