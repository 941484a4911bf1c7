"""Values as JSON text."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from firesteel.table.bound.session import Session
from firesteel.table.casts.text import text_function
from firesteel.table.values.json_path import to_json
from firesteel.table.values.temporal_text import timestamp_text
from firesteel.table.values.variant import variant_text
from firesteel.types import logical as t
from firesteel.types.java_text import to_java_double
from firesteel.types.logical import FieldsType, LogicalType

__all__ = ["json_serializer"]

Serialize = Callable[[Any], str]


def json_serializer(type_: LogicalType, session: Session) -> Serialize:
    """What makes JSON of the values of a type."""
    match type_:
        case t.CharType() | t.VarCharType() | t.BooleanType():
            return to_json
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.BigIntType():
            return str
        case t.DoubleType() | t.FloatType():
            return _number
        case t.DecimalType():
            return lambda value: f"{value:f}"
        case t.TimestampType():
            return lambda value: f'"{_timestamp(value)}"'
        case t.LocalZonedTimestampType():
            return lambda value: f'"{_timestamp(value)}Z"'
        case t.VariantType():
            return variant_text
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: f'"{base64.b64encode(value).decode()}"'
    if type_.children():
        return _constructed(type_, session)
    text = text_function(type_, session)
    return lambda value: to_json(text(value))


def _number(value: float) -> str:
    """A number as Java's BigDecimal shows it."""
    text = to_java_double(value)
    return str(Decimal(text) if value else Decimal("0.0")) if text[-1].isdigit() else f'"{text}"'


def _timestamp(nanos: int) -> str:
    text = timestamp_text(nanos, 9).replace(" ", "T")
    return text.rstrip("0").rstrip(".")


def _constructed(type_: LogicalType, session: Session) -> Serialize:
    parts = [_or_null(json_serializer(part, session)) for part in type_.children()]
    match type_:
        case t.ArrayType():
            (element,) = parts
            return lambda values: f"[{','.join([element(value) for value in values])}]"
        case t.MapType():
            key, item = text_function(type_.key_type, session), parts[1]
            return lambda entries: (
                f"{{{','.join([f'{to_json(key(k))}:{item(v)}' for k, v in sorted(entries.items())])}}}"
            )
        case t.MultisetType():
            key = text_function(type_.element_type, session)
            return lambda entries: f"{{{','.join([f'{to_json(key(k))}:{v}' for k, v in entries.items()])}}}"
    assert isinstance(type_, FieldsType)
    order = sorted(range(len(parts)), key=type_.field_names.__getitem__)
    fields = [(f"{to_json(type_.field_names[index])}:", parts[index], index) for index in order]
    return lambda row: f"{{{','.join([f'{name}{part(row[index])}' for name, part, index in fields])}}}"


def _or_null(serialize: Serialize) -> Serialize:
    return lambda value: "null" if value is None else serialize(value)
