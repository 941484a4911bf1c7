"""Types as savepoints keep them: the text of the type information that a state descriptor declared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from firesteel.common.typeinfo import BasicType, BasicTypeInfo, LocalTimeTypeInfo, Types
from firesteel.types.logical import (
    ArrayType,
    FieldsType,
    LogicalType,
    MapType,
    RawType,
    RowField,
    RowType,
    StructuredType,
)

__all__ = ["parse_declared"]

_SIMPLE: dict[str, LogicalType] = {
    str(type_info): type_info.to_logical()
    for type_info in (
        *map(BasicTypeInfo, BasicType),
        *map(LocalTimeTypeInfo, LocalTimeTypeInfo.TimeType),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
    )
}
_GENERIC = re.compile(r"(?P<name>\w+)(?:<(?P<parameters>.*)>|\((?P<fields>.*)\))", re.DOTALL)
_ARRAYS = ("ListTypeInfo", "BasicArrayTypeInfo", "ObjectArrayTypeInfo", "PrimitiveArrayTypeInfo")


def parse_declared(text: str | None) -> LogicalType | None:
    """The type that a text declares; None if it is unspecific. An unspecific part of a type is RAW.

    Fields without names are called ``_1``, ``_2``, …

    >>> parse_declared("MapTypeInfo<String, ListTypeInfo<Long>>").as_summary_string()
    'MAP<STRING, ARRAY<BIGINT>>'
    >>> parse_declared("RowTypeInfo(name: String, age: Integer)").as_summary_string()
    'ROW<`name` STRING, `age` INT>'
    """
    if text is None:
        return None
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    match = _GENERIC.fullmatch(text)
    if match is None:
        return None
    name = match["name"]
    if name == "ExternalTypeInfo":
        return parse_declared(match["parameters"])
    if name in _ARRAYS:
        return ArrayType(_part(match["parameters"]))
    if name == "MapTypeInfo":
        key, value = _split(match["parameters"])
        return MapType(_part(key), _part(value))
    if name == "TupleTypeInfo":
        return StructuredType(_fields([(f"_{i}", part) for i, part in enumerate(_split(match["fields"] or ""), 1)]))
    if name == "RowTypeInfo":
        return RowType(_fields([_name_and_type(part, i) for i, part in enumerate(_split(match["fields"] or ""), 1)]))
    return None


def _part(text: str) -> LogicalType:
    found = parse_declared(text)
    if found is None or (isinstance(found, FieldsType) and not found.fields):  # Spark stores no struct without fields
        return RawType()
    return found


def _fields(fields: Sequence[tuple[str, str]]) -> tuple[RowField, ...]:
    return tuple(RowField(name, _part(text)) for name, text in fields)


def _name_and_type(field: str, index: int) -> tuple[str, str]:
    name, colon, text = field.partition(": ")
    return (name, text) if colon and re.fullmatch(r"\w+", name) else (f"_{index}", field)


def _split(text: str) -> list[str]:
    """Splits at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts
