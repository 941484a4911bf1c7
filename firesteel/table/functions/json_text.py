"""Values as JSON text."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from firesteel.table.casts.text import text_function
from firesteel.table.expressions.session import Session
from firesteel.table.values.json_path import to_json
from firesteel.table.values.temporal_text import timestamp_text
from firesteel.table.values.zones import find_zone, to_local
from firesteel.types import logical as t
from firesteel.types.java_text import to_java_double, to_java_float
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
        case t.DoubleType():
            return _number(to_java_double)
        case t.FloatType():
            return _number(to_java_float)
        case t.DecimalType():
            return lambda value: f"{value:f}"
        case t.TimestampType():
            return lambda value: f'"{timestamp_text(value, type_.precision).replace(" ", "T")}"'
        case t.LocalZonedTimestampType():
            zone = find_zone(session.local_time_zone)
            return lambda value: f'"{timestamp_text(to_local(value, zone), type_.precision).replace(" ", "T")}Z"'
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: f'"{base64.b64encode(value).decode()}"'
    if type_.children():
        return _constructed(type_, session)
    text = text_function(type_, session)
    return lambda value: to_json(text(value))


def _number(to_text: Callable[[float], str]) -> Serialize:
    def serialize(value: float) -> str:
        text = to_text(value)
        return text if text[-1].isdigit() else f'"{text}"'

    return serialize


def _constructed(type_: LogicalType, session: Session) -> Serialize:
    parts = [_or_null(json_serializer(part, session)) for part in type_.children()]
    match type_:
        case t.ArrayType():
            (element,) = parts
            return lambda values: f"[{','.join([element(value) for value in values])}]"
        case t.MapType():
            key, item = text_function(type_.key_type, session), parts[1]
            return lambda entries: f"{{{','.join([f'{to_json(key(k))}:{item(v)}' for k, v in entries.items()])}}}"
        case t.MultisetType():
            key = text_function(type_.element_type, session)
            return lambda entries: f"{{{','.join([f'{to_json(key(k))}:{v}' for k, v in entries.items()])}}}"
    assert isinstance(type_, FieldsType)
    names = [to_json(name) for name in type_.field_names]
    return lambda row: (
        f"{{{','.join([f'{name}:{part(value)}' for name, part, value in zip(names, parts, row, strict=True)])}}}"
    )


def _or_null(serialize: Serialize) -> Serialize:
    return lambda value: "null" if value is None else serialize(value)
