"""Types in compiled plans: as SQL, or by their parts if SQL cannot say it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.parser.dialect import parse_type
from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.types import to_logical_type
from firesteel.types import logical
from firesteel.types.logical import LocalZonedTimestampType, LogicalType, RowField, TimestampKind, TimestampType

__all__ = ["decode_type", "encode_type"]

_KINDS = {kind.value: kind for kind in TimestampKind}


def encode_type(type_: LogicalType) -> Any:
    """A type as JSON: text if a parser makes the same type of it, such as ``DECIMAL(10, 2) NOT NULL``."""
    text = str(type_)
    if _parsed(text) == type_:
        return text
    parts = {name: _encode_part(getattr(type_, name)) for name in type_.parameters}
    return {"class": type(type_).__name__, "nullable": type_.nullable, **parts}


def decode_type(encoded: Any) -> LogicalType:
    """The type that was encoded."""
    if isinstance(encoded, str):
        parsed = _parsed(encoded)
        if parsed is None:
            raise ValueError(f"'{encoded}' is not a type")
        return parsed
    class_ = getattr(logical, encoded["class"])
    parts = {name: _decode_part(encoded[name]) for name in class_.parameters}
    made: LogicalType = class_(**parts, nullable=encoded["nullable"])
    return made


@functools.lru_cache(1000)
def _parsed(text: str) -> LogicalType | None:
    plain, _, attribute = text.partition(" *")
    try:
        type_ = to_logical_type(parse_type(plain), plain)
    except (SqlParserException, ValidationError):
        return None
    if not attribute:
        return type_
    if isinstance(type_, (TimestampType, LocalZonedTimestampType)) and attribute.removesuffix("*") in _KINDS:
        return type(type_)(type_.precision, _KINDS[attribute.removesuffix("*")], nullable=type_.nullable)
    return None


def _encode_part(part: Any) -> Any:
    if isinstance(part, LogicalType):
        return {"type": encode_type(part)}
    if isinstance(part, Enum):
        return {"enum": type(part).__name__, "name": part.name}
    if isinstance(part, RowField):
        field = {"name": part.name, "type": encode_type(part.type)}
        return field if part.description is None else {**field, "description": part.description}
    if isinstance(part, (tuple, list)):
        return [_encode_part(each) for each in part]
    if part is None or isinstance(part, (str, int, bool)):
        return part
    raise TypeError(f"the type {part!r}")


def _decode_part(part: Any) -> Any:
    if isinstance(part, list):
        return tuple(_decode_part(each) for each in part)
    if isinstance(part, Mapping):
        if "enum" in part:
            return getattr(logical, part["enum"])[part["name"]]
        if "name" in part:
            return RowField(part["name"], decode_type(part["type"]), part.get("description"))
        return decode_type(part["type"])
    return part
