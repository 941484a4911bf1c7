"""JSON schema to row type, for the part of the standard that Flink supports."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types

__all__ = ["row_type_of_json_schema"]

_REFUSED = ("allOf", "anyOf", "not", "extends", "disallow")
_FORMATS = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}
_MAX_REFERENCES = 100


def row_type_of_json_schema(text: str) -> RowTypeInfo:
    """The type of rows that a JSON schema describes; its root must be an object.

    Numbers and integers become decimals, strings with ``contentEncoding: base64`` bytes, those with a format of
    ``date``, ``time`` or ``date-time`` dates and times, arrays of one type arrays and tuples rows. ``oneOf`` and lists
    of types may only add null. References within the document are followed.
    """
    if not isinstance(text, str):
        raise InvalidProgramError(f"A JSON schema is given as text, got {text!r}.")
    try:
        root = json.loads(text)
    except ValueError as error:
        raise InvalidProgramError(f"The JSON schema is not JSON: {error}") from error
    row_type = _Converter(root).convert("<root>", root)
    if not isinstance(row_type, RowTypeInfo):
        raise InvalidProgramError(
            f"The JSON schema describes {row_type}, not an object.", hint='Its root needs "type": "object".'
        )
    return row_type


class _Converter:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._references = 0

    def convert(self, location: str, node: Any) -> TypeInformation:
        if not isinstance(node, dict):
            raise _invalid(f"expected an object, got {node!r}", location)
        for word in _REFUSED:
            if word in node:
                raise _invalid(f"'{word}' is not supported", location)
        found = self._types(location, node)
        types = [type_info for type_info in found if type_info is not None]
        distinct = list({repr(type_info): type_info for type_info in types}.values())
        if not found:
            raise _invalid("no type could be found", location)
        if not distinct:
            return Types.PICKLED_BYTE_ARRAY()  # null only
        if len(distinct) > 1:
            raise _invalid("a union of more than one type and null is not supported", location)
        return distinct[0]

    def _types(self, location: str, node: dict[str, Any]) -> list[TypeInformation | None]:
        """All types that the node allows; None stands for null."""
        reference = node.get("$ref")
        target = self._resolve(reference, node, location) if isinstance(reference, str) else {}
        types: list[TypeInformation | None] = []
        if "type" in node:
            names = node["type"] if isinstance(node["type"], list) else [node["type"]]
            types += [self._named_type(name, location, node) for name in names]
        elif "type" in target:
            types += self._types(str(reference), target)
        one_of = node.get("oneOf", target.get("oneOf"))
        if isinstance(one_of, list):
            for i, option in enumerate(one_of):
                types += self._types(f"{location}/oneOf[{i}]", option)
        return types

    def _named_type(self, name: Any, location: str, node: dict[str, Any]) -> TypeInformation | None:
        if name == "null":
            return None
        if name == "boolean":
            return Types.BOOLEAN()
        if name in ("number", "integer"):
            return Types.BIG_DEC()
        if name == "string":
            return _string_type(location, node)
        if name == "object":
            return self._object_type(location, node)
        if name == "array":
            return self._array_type(location, node)
        raise _invalid(f"unsupported type '{name}'", location)

    def _object_type(self, location: str, node: dict[str, Any]) -> TypeInformation:
        if node.get("additionalProperties") is True:
            raise _invalid("an object must not allow additional properties", location)
        properties = node.get("properties", {})
        if not isinstance(properties, dict):
            raise _invalid("invalid 'properties'", location)
        types = [self.convert(f"{location}/{name}", part) for name, part in properties.items()]
        return Types.ROW_NAMED(list(properties), types)

    def _array_type(self, location: str, node: dict[str, Any]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, dict):
            return Types.OBJECT_ARRAY(self.convert(f"{location}/items", items))
        if isinstance(items, list):
            if node.get("additionalItems") is True:
                raise _invalid("an array tuple must not allow additional items", location)
            return Types.ROW([self.convert(f"{location}/items[{i}]", item) for i, item in enumerate(items)])
        raise _invalid("an array must declare its 'items'", location)

    def _resolve(self, reference: str, node: dict[str, Any], location: str) -> dict[str, Any]:
        if not reference.startswith("#"):
            raise _invalid(f"only references within the document are supported, not '{reference}'", location)
        self._references += 1
        target = self._root
        for part in filter(None, unquote(reference[1:]).split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise _invalid(f"could not find reference '{reference}'", location)
        if target is node or self._references > _MAX_REFERENCES:
            raise _invalid(f"cyclic references are not supported: '{reference}'", location)
        return target


def _string_type(location: str, node: dict[str, Any]) -> TypeInformation:
    if "format" in node:
        make = _FORMATS.get(node["format"], Types.STRING)
        return make()
    encoding = node.get("contentEncoding")
    if encoding is None:
        return Types.STRING()
    if encoding != "base64":
        raise _invalid(f"unsupported encoding '{encoding}'", location)
    return Types.PRIMITIVE_ARRAY(Types.BYTE())


def _invalid(what: str, location: str) -> InvalidProgramError:
    return InvalidProgramError(f"The JSON schema cannot become a row type, in {location}: {what}.")
