"""Writes rows as JSON: one function per row type, generated once, that puts the text of an object together.

For ``Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])`` it is, in essence::

    for record in records:
        v0, v1 = record._values
        text = f'{{"name":{quote(v0)},"age":{v1}}}'

with a comparison per field in front, and a call for what is not simply of the field's type. No dict is made and no
JSON library asked; that is faster than either library and gives the same bytes with both.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

from firesteel.common.typeinfo import MapTypeInfo, RowTypeInfo, TypeInformation
from firesteel.formats import temporal_text as temporal
from firesteel.formats.field_types import RANGES, Kind, kind_of, mismatch, to_value
from firesteel.formats.json.library import JsonCodec
from firesteel.formats.json.reading import element_type
from firesteel.formats.row_conversion import (
    ROW_SCOPE,
    compile_function,
    shared_names,
    unpack_record,
    values_of,
)

__all__ = ["row_writer"]

Writer = Callable[[Any], str]

quote: Writer = json.encoder.encode_basestring


def row_writer(row_type: RowTypeInfo) -> Callable[[Any], list[str]]:
    """The function that gives the JSON text of each record of that type."""
    return _row_function(row_type, "")


def _row_function(row_type: RowTypeInfo, path: str) -> Callable[[Any], list[str]]:
    scope: dict[str, Any] = {
        **ROW_SCOPE,
        "names": shared_names(row_type),
        "quote": quote,
        "values_of": values_of(row_type, path),
    }
    names = row_type.get_field_names()
    template = []
    for i, (name, field_type) in enumerate(zip(names, row_type.get_field_types(), strict=True)):
        field_path = f"{path}.{name}" if path else name
        scope[f"write{i}"] = _writer(field_type, field_path)
        template.append(
            f"{_literal(quote(name) + ':')}{{{_field(f'v{i}', i, kind_of(field_type, field_path, 'JSON'))}}}"
        )
    lines = [
        "def write(records):",
        "    texts = []",
        "    add = texts.append",
        "    for record in records:",
        *unpack_record(names),
        f"        add(f'{{{{{','.join(template)}}}}}')",
        "    return texts",
    ]
    return compile_function("write", lines, scope)


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")


def _field(v: str, i: int, kind: Kind) -> str:
    otherwise = f"write{i}({v})"
    if kind is Kind.STRING:
        return f"quote({v}) if {v}.__class__ is str else {otherwise}"
    if kind in RANGES:
        low, high = RANGES[kind]
        return f"{v} if {v}.__class__ is int and {low} <= {v} <= {high} else {otherwise}"
    if kind is Kind.BIG_INT:
        return f"{v} if {v}.__class__ is int else {otherwise}"
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return f"{v} if {v}.__class__ is float and {v} - {v} == 0.0 else {otherwise}"  # neither NaN nor infinite
    return otherwise


def _writer(type_info: TypeInformation, path: str) -> Writer:
    kind = kind_of(type_info, path, "JSON")
    if kind is Kind.ANY:
        return _any_writer(path)
    if kind is Kind.ROW:
        assert isinstance(type_info, RowTypeInfo)
        write_rows = _row_function(type_info, path)
        return lambda value: "null" if value is None else write_rows((value,))[0]
    if kind is Kind.ARRAY:
        return _array_writer(_writer(element_type(type_info), f"{path}[]"), path)
    if kind is Kind.MAP:
        assert isinstance(type_info, MapTypeInfo)
        return _map_writer(type_info, path)
    text = text_of(kind, path)
    return lambda value: "null" if value is None else _json_text(text(value))


def _json_text(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return quote(value) if isinstance(value, str) else str(value)


def text_of(kind: Kind, path: str) -> Callable[[Any], Any]:
    """The function that checks a value: an int, float, bool or Decimal, else the text that stands for it."""
    check = _TEMPORAL.get(kind) or to_value(kind)

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise mismatch(path, kind, value) from None

    return checked


def _any_writer(path: str) -> Writer:
    dumps = JsonCodec(library="json").dumps

    def write(value: Any) -> str:
        try:
            return dumps(value).decode("utf-8")
        except (TypeError, ValueError):
            raise mismatch(path, Kind.ANY, value) from None

    return write


def _array_writer(element: Writer, path: str) -> Writer:
    def write(value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise mismatch(path, Kind.ARRAY, value)
        return f"[{','.join(map(element, value))}]"

    return write


def _map_writer(type_info: MapTypeInfo, path: str) -> Writer:
    key_path = f"{path}{{key}}"
    key = text_of(kind_of(type_info.get_key_type(), key_path, "JSON"), key_path)
    item = _writer(type_info.get_value_type(), f"{path}{{}}")

    def key_text(name: Any) -> str:
        text = key(name)
        return quote(text if isinstance(text, str) else _json_text(text))

    def write(value: Any) -> str:
        if value is None:
            return "null"
        if not isinstance(value, Mapping):
            raise mismatch(path, Kind.MAP, value)
        return f"{{{','.join([f'{key_text(name)}:{item(found)}' for name, found in value.items()])}}}"

    return write


def _time(value: Any) -> str:
    if not isinstance(value, dt.time):
        raise TypeError("not a time")
    return temporal.format_json_time(value)


def _timestamp(value: Any) -> str:
    if not isinstance(value, dt.datetime):
        raise TypeError("not a datetime")
    return temporal.format_json_timestamp(value)


_TEMPORAL: dict[Kind, Callable[[Any], Any]] = {Kind.TIME: _time, Kind.TIMESTAMP: _timestamp}
