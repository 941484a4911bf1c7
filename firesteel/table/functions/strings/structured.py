"""Functions of text with a structure: URLs, formats, key-value pairs, escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus, unquote_to_bytes

from firesteel.table.bound.nodes import Expression
from firesteel.table.functions.definition import FunctionDefinition, Inferred
from firesteel.table.functions.signatures import (
    ANY,
    CHARACTER,
    INTEGER,
    check_count,
    common_arguments,
    mismatch,
    signature,
)
from firesteel.table.inference.families import is_binary, is_character, is_integer
from firesteel.table.values.java_format import FormatterError, java_format
from firesteel.table.values.java_regex import RegexError, compile_java
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

_STRING = t.VarCharType()
_PARTS = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def _define(name: str, sign: Any, row: Any, **options: Any) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, family="string", **options)


def _url_decode(text: str) -> str | None:
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        return None
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _url_encode(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    found = _PARTS.fullmatch(url)
    if found is None or found[1] not in ("http", "https", "ftp", "file"):
        return None
    protocol, authority, path, query, ref = found.groups()
    user, at, place = (authority or "").rpartition("@")
    if key is not None:
        if part != "QUERY" or query is None:
            return None
        match = re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", query)
        return None if match is None else match[1]
    parts = {
        "HOST": re.sub(r":\d*$", "", place),
        "PATH": path,
        "QUERY": query,
        "REF": ref,
        "PROTOCOL": protocol,
        "AUTHORITY": authority or "",
        "FILE": path + (f"?{query}" if query is not None else ""),
        "USERINFO": user if at else None,
    }
    return parts.get(part)


def _inet_aton(address: str) -> int | None:
    """The number of an IPv4 address; parts between the first and the last that are left out are 0."""
    parts = address.split(".")
    if len(parts) > 4 or not all(re.fullmatch(r"[0-9]+", part) and int(part) < 256 for part in parts):
        return None
    *first, last = map(int, parts)
    return sum(part << (24 - 8 * index) for index, part in enumerate(first)) + last


def _inet_ntoa(number: int) -> str | None:
    return ".".join(map(str, number.to_bytes(4, "big"))) if 0 <= number < 2**32 else None


def _str_to_map(text: str, pair: str = ",", key_value: str = "=") -> dict[str, str | None] | None:
    try:
        pairs, parts = compile_java(pair), compile_java(key_value)
    except RegexError:
        return None
    found: dict[str, str | None] = {}
    for entry in _java_split(pairs, text) if text else ():
        name, *value = _java_split(parts, entry, 2)
        found[name] = value[0] if value else None
    return found


def _java_split(pattern: re.Pattern[str], text: str, limit: int = 0) -> list[str]:
    """As Java's split: without empty parts at the end, unless there is a limit."""
    parts = pattern.split(text, maxsplit=max(limit - 1, 0)) if pattern.groups == 0 else [text]
    if not limit:
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
    return parts


def _infer_elt(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    check_count("ELT", arguments, 2, None)
    index, *rest = arguments
    types = [argument.type for argument in rest]
    if not is_integer(index.type) or not (all(map(is_character, types)) or all(map(is_binary, types))):
        raise mismatch("ELT", arguments, "'ELT(<INTEGER>, <CHARACTER>, …)' or 'ELT(<INTEGER>, <BINARY>, …)'")
    common = common_arguments("ELT", rest)
    return Inferred((index.type, *(common for _ in rest)), common.copy())


def _elt(index: int | None, *values: Any) -> Any:
    return values[index - 1] if index is not None and 1 <= index <= len(values) else None


def _printf(pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    try:
        return java_format(pattern, values)
    except FormatterError:
        return None


def _json_quote(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

    def escape(character: str) -> str:
        if character in escapes:
            return escapes[character]
        code = ord(character)
        if 32 <= code < 127:
            return character
        units = character.encode("utf-16-be").hex()
        return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))

    return f'"{"".join(map(escape, text))}"'


def _json_unquote(text: str) -> str:
    if len(text) < 2 or not (text[0] == text[-1] == '"'):
        return text
    try:
        value = json.loads(text, strict=True)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _infer_printf(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    sign = signature("PRINTF", CHARACTER, returns=_STRING, varargs=ANY, nullable=True, takes_null=True)
    return sign(arguments, symbols)


FUNCTIONS = (
    _define(
        "INET_ATON",
        signature("INET_ATON", CHARACTER, returns=t.BigIntType(), nullable=True, takes_null=True),
        _inet_aton,
    ),
    _define("INET_NTOA", signature("INET_NTOA", INTEGER, returns=_STRING, nullable=True, takes_null=True), _inet_ntoa),
    _define(
        "URL_DECODE", signature("URL_DECODE", CHARACTER, returns=_STRING, nullable=True, takes_null=True), _url_decode
    ),
    _define(
        "URL_ENCODE", signature("URL_ENCODE", CHARACTER, returns=_STRING, nullable=True, takes_null=True), _url_encode
    ),
    _define(
        "PARSE_URL",
        signature("PARSE_URL", CHARACTER, CHARACTER, CHARACTER, returns=_STRING, optional=1, nullable=True),
        _parse_url,
    ),
    _define(
        "STR_TO_MAP",
        signature(
            "STR_TO_MAP",
            CHARACTER,
            CHARACTER,
            CHARACTER,
            returns=t.MapType(_STRING, _STRING),
            optional=2,
            nullable=True,
        ),
        _str_to_map,
    ),
    _define("ELT", _infer_elt, _elt, strict=False),
    _define("PRINTF", _infer_printf, _printf, strict=False),
    _define(
        "JSON_QUOTE",
        signature("JSON_QUOTE", CHARACTER, returns=_STRING, takes_null=True),
        _json_quote,
        returns_null=False,
    ),
    _define(
        "JSON_UNQUOTE",
        signature("JSON_UNQUOTE", CHARACTER, returns=_STRING, takes_null=True),
        _json_unquote,
        returns_null=False,
    ),
)
