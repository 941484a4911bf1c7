"""Values of compiled plans as JSON: what nodes hold besides other nodes and tables."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.compiled.names import ENUMS, VALUES
from firesteel.table.compiled.types import decode_type, encode_type
from firesteel.types.logical import LogicalType

__all__ = ["decode_fields", "decode_value", "encode_fields", "encode_value"]

_NAMES_OF_VALUES = {class_: name for name, class_ in VALUES.items()}
_NAMES_OF_ENUMS = {class_: name for name, class_ in ENUMS.items()}
_IS = "is"
"""The key that says what an object of JSON stands for."""

_TEXTS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    Decimal: ("decimal", str, Decimal),
    dt.datetime: ("timestamp", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.time: ("time", dt.time.isoformat, dt.time.fromisoformat),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode),
    float: ("float", repr, float),
}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {name: decode for name, _, decode in _TEXTS.values()}


def encode_value(value: Any) -> Any:
    """A value as JSON; tuples are arrays. Raises ValidationError if a plan cannot contain it."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, tuple):
        return [encode_value(part) for part in value]
    if isinstance(value, LogicalType):
        return {"type": encode_type(value)}
    if isinstance(value, Enum) and type(value) in _NAMES_OF_ENUMS:
        return {_IS: _NAMES_OF_ENUMS[type(value)], "name": value.name}
    if type(value) in _NAMES_OF_VALUES:
        return {_IS: _NAMES_OF_VALUES[type(value)], **encode_fields(value)}
    if type(value) in _TEXTS:
        name, encode, _ = _TEXTS[type(value)]
        return {_IS: name, "value": encode(value)}
    if isinstance(value, ObjectIdentifier):
        return {_IS: "identifier", "path": list(value.to_list())}
    if isinstance(value, list):
        return {_IS: "list", "values": [encode_value(part) for part in value]}
    if isinstance(value, dict):
        return {_IS: "map", "entries": [[encode_value(key), encode_value(part)] for key, part in value.items()]}
    raise ValidationError(
        f"A compiled plan cannot contain {value!r}, a {type(value).__name__}.",
        hint="Functions and streams of the program are known to it only: execute the statement instead.",
    )


def decode_value(encoded: Any) -> Any:
    """The value that was encoded."""
    if isinstance(encoded, list):
        return tuple(decode_value(part) for part in encoded)
    if not isinstance(encoded, Mapping):
        return encoded
    if _IS not in encoded:
        return decode_type(encoded["type"])
    name = encoded[_IS]
    if name in VALUES:
        return VALUES[name](**decode_fields(VALUES[name], encoded))
    if name in ENUMS:
        return ENUMS[name][encoded["name"]]
    if name in _FROM_TEXT:
        return _FROM_TEXT[name](encoded["value"])
    match name:
        case "identifier":
            return ObjectIdentifier(*encoded["path"])
        case "list":
            return [decode_value(part) for part in encoded["values"]]
        case "map":
            return {decode_value(key): decode_value(part) for key, part in encoded["entries"]}
    raise ValueError(f"'{name}' is not known")


def encode_fields(value: Any, encode: Callable[[Any], Any] = encode_value) -> dict[str, Any]:
    """The fields of a dataclass, without those that have their default."""
    assert is_dataclass(value)
    return {
        part.name: encode(getattr(value, part.name))
        for part in fields(value)
        if part.init and not _is_default(part, getattr(value, part.name))
    }


def decode_fields(
    class_: type[Any], encoded: Mapping[str, Any], decode: Callable[[Any], Any] = decode_value
) -> dict[str, Any]:
    """The fields of a dataclass. A field that this version does not know is an error, since it means something."""
    known = {part.name for part in fields(class_)}
    unknown = [name for name in encoded if name not in known and name != _IS]
    if unknown:
        raise ValueError(f"{class_.__name__} has no '{unknown[0]}'")
    return {name: decode(part) for name, part in encoded.items() if name != _IS}


def _is_default(part: Field[Any], value: Any) -> bool:
    if part.default_factory is not MISSING:
        return bool(value == part.default_factory())
    # 0 and False, 1 and True are equal
    return part.default is not MISSING and type(value) is type(part.default) and bool(value == part.default)
