"""Functions with regular expressions, which are Java's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, PerCall
from firesteel.table.functions.signatures import CHARACTER, INTEGER, signature
from firesteel.table.values.java_regex import RegexError, compile_java, to_re2
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]

_STRING = t.VarCharType()
_INT = t.IntType()


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return compile_java(text)
    except RegexError:
        return None


def _regexp(text: str, pattern: str) -> bool:
    if not pattern:
        return False
    found = _pattern(pattern)
    return found is not None and found.search(text) is not None


def _replace(text: str, pattern: str, new: str) -> str | None:
    found = _pattern(pattern)
    if found is None:
        return None
    return found.sub(lambda _: new, text)  # without references to groups


def _extract(text: str, pattern: str, group: int = 0) -> str | None:
    found = _pattern(pattern)
    match = None if found is None or group < 0 else found.search(text)
    if found is None or match is None or group > found.groups:
        return None
    extracted: str | None = match[group]
    return extracted


def _extract_all(text: str, pattern: str, group: int = 1) -> list[str | None] | None:
    found = _pattern(pattern)
    if found is None or not 0 <= group <= found.groups:
        return None
    return [match[group] for match in found.finditer(text)]


def _count(text: str, pattern: str) -> int | None:
    found = _pattern(pattern)
    return None if found is None else sum(1 for _ in found.finditer(text))


def _instr(text: str, pattern: str) -> int | None:
    found = _pattern(pattern)
    if found is None:
        return None
    match = found.search(text)
    return 0 if match is None else match.start() + 1


def _constant(call: Call, index: int) -> Any:
    argument = call.arguments[index]
    return argument.value if isinstance(argument, Literal) else None


def _re2(call: Call) -> str | None:
    pattern = _constant(call, 1)
    return to_re2(pattern) if isinstance(pattern, str) else None


def _regexp_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    pattern = _re2(call)
    return None if pattern is None else lambda text, _: pc.match_substring_regex(text, pattern)


def _replace_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    pattern, new = _re2(call), _constant(call, 2)
    if pattern is None or not isinstance(new, str) or "\\" in new or _matches_nothing(pattern):
        return None
    return lambda text, *_: pc.replace_substring_regex(text, pattern, new)


def _extract_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    """Arrow extracts named groups only: the wanted one gets a name, the others become groups without a number."""
    pattern = _re2(call)
    group = _constant(call, 2) if len(call.arguments) > 2 else 0
    if pattern is None or not isinstance(group, int):
        return None
    named = _named(pattern, group)
    if named is None:
        return None
    return lambda text, *_: pc.struct_field(pc.extract_regex(text, named), "g")


def _named(pattern: str, group: int) -> str | None:
    if group == 0:
        return f"(?P<g>{re.sub(_OPENING, '(?:', pattern)})"
    count = 0

    def rename(_: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return "(?P<g>" if count == group else "(?:"

    named = re.sub(_OPENING, rename, pattern)
    # a group that takes no part in a match is NULL in Java, and an empty string in RE2
    optional = re.search(r"[?*|{]", pattern.replace("(?:", "("))
    return named if 0 < group <= count and not _may_be_skipped(pattern, bool(optional)) else None


_OPENING = re.compile(r"(?<!\\)\((?!\?)")


def _may_be_skipped(pattern: str, has_options: bool) -> bool:
    """Whether a group might take no part in a match: it is repeated, or in one of several alternatives."""
    if not has_options:
        return False
    depth = 0
    for index, character in enumerate(pattern):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if pattern[index + 1 : index + 2] in ("?", "*", "{"):
                return True
        elif character == "|" and (depth == 0 or "(" in pattern[_open_at(pattern, index) + 1 : index]):
            return True
    return False


def _open_at(pattern: str, index: int) -> int:
    return pattern.rfind("(", 0, index)


def _matches_nothing(pattern: str) -> bool:
    return re.compile(pattern).match("") is not None


def _count_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    pattern = _re2(call)
    if pattern is None or _matches_nothing(pattern):
        return None
    return lambda text, _: pc.count_substring_regex(text, pattern)


def _define(
    name: str, row: Any, vector: Any, returns: Any, *more: Any, nullable: bool | None = True
) -> FunctionDefinition:
    parameters = (CHARACTER, CHARACTER, *more)
    return FunctionDefinition(
        name,
        signature(
            name, *parameters, returns=returns, optional=sum(1 for part in more if part is INTEGER), nullable=nullable
        ),
        row=row,
        vector=None if vector is None else PerCall(vector),
        family="string",
    )


FUNCTIONS = (
    _define("REGEXP", _regexp, _regexp_vector, t.BooleanType(), nullable=None),
    _define("REGEXP_REPLACE", _replace, _replace_vector, _STRING, CHARACTER, nullable=None),
    _define("REGEXP_EXTRACT", _extract, _extract_vector, _STRING, INTEGER),
    _define("REGEXP_EXTRACT_ALL", _extract_all, None, t.ArrayType(_STRING), INTEGER),
    _define("REGEXP_COUNT", _count, _count_vector, _INT),
    _define("REGEXP_INSTR", _instr, None, _INT),
    _define("REGEXP_SUBSTR", _extract, _extract_vector, _STRING),
)
