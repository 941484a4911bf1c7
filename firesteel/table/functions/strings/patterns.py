"""LIKE and SIMILAR TO."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, PerCall
from firesteel.table.functions.signatures import CHARACTER, signature
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

_ENUMERATIONS = {
    "[:ALPHA:]": "a-zA-Z",
    "[:alpha:]": "a-zA-Z",
    "[:UPPER:]": "A-Z",
    "[:upper:]": "A-Z",
    "[:LOWER:]": "a-z",
    "[:lower:]": "a-z",
    "[:DIGIT:]": "0-9",
    "[:digit:]": "0-9",
    "[:SPACE:]": " ",
    "[:space:]": " ",
    "[:WHITESPACE:]": r"\s",
    "[:whitespace:]": r"\s",
    "[:ALNUM:]": "a-zA-Z0-9",
    "[:alnum:]": "a-zA-Z0-9",
}


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape:
            if at == len(pattern) or pattern[at] not in ("_", "%", escape):
                raise EvaluationError(f"Invalid escape sequence '{pattern}', {at - 1}")
            parts.append(re.escape(pattern[at]))
            at += 1
        else:
            parts.append({"_": ".", "%": ".*"}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=1024)
def _similar_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    for name, characters in _ENUMERATIONS.items():
        pattern = pattern.replace(f"[{name}]", f"[{characters}]").replace(name, characters)
    parts: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape and at < len(pattern):
            parts.append(re.escape(pattern[at]))
            at += 1
        elif inside:
            inside = character != "]"
            parts.append(character)
        elif character in "_%":
            parts.append("." if character == "_" else "(?:.|\n)*")
        else:
            inside = character == "["
            parts.append(character)  # what is special in Java is so here
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise EvaluationError(f"Invalid regular expression '{pattern}': {error}") from error


def _like(text: str, pattern: str, escape: str | None = None) -> bool:
    return _like_pattern(pattern, escape).fullmatch(text) is not None


def _similar(text: str, pattern: str, escape: str | None = None) -> bool:
    return _similar_pattern(pattern, escape).fullmatch(text) is not None


def _like_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    if len(call.arguments) > 2 or not isinstance(call.arguments[1], Literal):
        return None
    pattern = call.arguments[1].value
    if pattern is None or "\\" in pattern or "_" in pattern:
        return None
    body = pattern.strip("%")
    if "%" in body:
        return None
    starts, ends = pattern.startswith("%"), pattern.endswith("%")
    if not body:
        return (lambda text, _: pc.greater_equal(pc.binary_length(text), 0)) if starts else None
    if starts and ends:
        return lambda text, _: pc.match_substring(text, body)
    if starts:
        return lambda text, _: pc.ends_with(text, body)
    if ends:
        return lambda text, _: pc.starts_with(text, body)
    return lambda text, _: pc.equal(text, body)


FUNCTIONS = (
    FunctionDefinition(
        "LIKE",
        signature("LIKE", CHARACTER, CHARACTER, CHARACTER, returns=t.BooleanType(), optional=1),
        row=_like,
        vector=PerCall(_like_vector),
        can_fail=True,
        family="comparison",
    ),
    FunctionDefinition(
        "SIMILAR",
        signature("SIMILAR TO", CHARACTER, CHARACTER, CHARACTER, returns=t.BooleanType(), optional=1),
        row=_similar,
        can_fail=True,
        family="comparison",
    ),
)
