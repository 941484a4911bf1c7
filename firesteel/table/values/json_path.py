"""JSON text, and paths into it as SQL/JSON and Jayway's JsonPath have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

__all__ = ["JsonError", "JsonPath", "PathError", "parse_json", "parse_path", "to_json"]


class JsonError(ValueError):
    """Text that is not JSON."""


class PathError(ValueError):
    """A path that is none, or that leads nowhere in the strict mode."""


def _no_constant(text: str) -> Any:
    raise JsonError(text)


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def parse_json(text: str) -> Any:
    """The value of JSON text; JsonError if it is none."""
    return _parse_cached(text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def to_json(value: Any, sorts_keys: bool = False) -> str:
    """JSON text without spaces, numbers as they were written."""
    if isinstance(value, dict):
        entries = sorted(value.items()) if sorts_keys else value.items()
        return f"{{{','.join([f'{_string(key)}:{to_json(item, sorts_keys)}' for key, item in entries])}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join([to_json(item, sorts_keys) for item in value])}]"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """A scalar as JSON_VALUE returns it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class JsonPath:
    """A path: ``lax $.a[0].b``; strict is the default."""

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"\s*(lax|strict)?\s*(.*?)\s*", text, re.DOTALL | re.IGNORECASE)
        assert found is not None
        self.is_strict = (found[1] or "").lower() != "lax"
        self.steps = list(_steps(found[2]))

    def find(self, document: Any) -> Any:
        """The value at the path, or the list of the values if it has steps to many; PathError if it leads nowhere."""
        found = [document]
        many = False
        for step in self.steps:
            found = [inner for value in found for inner in _step(value, *step)]
            many = many or step[0] not in ("key", "index", "length")
            if not many and not found:
                raise PathError("No results for path")
        return found if many else found[0]


_KEY = re.compile(r"\.?\[\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*\]")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_MANY = re.compile(r"\[\s*(-?\d+(?:\s*,\s*-?\d+)+)\s*\]")
_NAME = re.compile(r"\.([^.\[\]()\s*]+)(?!\()")
_LENGTH = re.compile(r"\.(length|size)\(\)")


def _steps(text: str) -> Iterator[tuple[str, Any]]:
    if not text.startswith("$"):
        raise PathError(f"Illegal jsonpath spec: {text}")
    at = 1
    while at < len(text):
        if text.startswith("..", at):
            at += 1
            found = _NAME.match(text, at)
            if found is None:
                raise PathError(f"Illegal jsonpath spec: {text}")
            yield "deep", found[1]
        elif found := re.compile(r"\.\*|\.?\[\s*\*\s*\]").match(text, at):
            yield "all", None
        elif found := _KEY.match(text, at):
            yield "key", found[1] if found[1] is not None else found[2]
        elif found := _INDEX.match(text, at):
            yield "index", int(found[1])
        elif found := _SLICE.match(text, at):
            yield "slice", (int(found[1]) if found[1] else None, int(found[2]) if found[2] else None)
        elif found := _MANY.match(text, at):
            yield "many", [int(part) for part in found[1].split(",")]
        elif found := _LENGTH.match(text, at):
            yield "length", None
        elif found := _NAME.match(text, at):
            yield "key", found[1]
        else:
            raise PathError(f"Illegal jsonpath spec: {text}")
        at = found.end()


def _step(value: Any, kind: str, what: Any) -> list[Any]:
    if kind == "key":
        return [value[what]] if isinstance(value, dict) and what in value else []
    if kind == "index":
        return [value[what]] if isinstance(value, list) and -len(value) <= what < len(value) else []
    if kind == "all":
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if kind == "slice":
        return value[slice(*what)] if isinstance(value, list) else []
    if kind == "many":
        return [inner for index in what for inner in _step(value, "index", index)]
    if kind == "length":
        return [len(value)] if isinstance(value, (list, dict, str)) else []
    return list(_deep(value, what))


def _deep(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for inner in value.values():
            yield from _deep(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _deep(inner, name)


@lru_cache(maxsize=1024)
def parse_path(text: str) -> JsonPath:
    """The path of a text; PathError if it is none."""
    return JsonPath(text)
