"""Regular expressions: both engines have Java's. Patterns that are not literals, or wrong, are left to Firesteel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from firesteel.table.bound.nodes import Call
from firesteel.table.functions.spark.texts import SparkText, literal_value
from firesteel.table.values.java_regex import compile_java

__all__ = ["TEXTS", "always_matches"]


def _pattern(call: Call) -> str | None:
    """The pattern if it is a literal and right."""
    pattern = literal_value(call.arguments[1])
    if not pattern:
        return None
    try:
        compile_java(pattern)
    except (re.error, ValueError):
        return None
    return str(pattern)


def _guarded(build: Callable[[Sequence[str]], str]) -> SparkText:
    return lambda call, arguments: None if _pattern(call) is None else build(arguments)


def _replace(call: Call, arguments: Sequence[str]) -> str | None:
    replacement = literal_value(call.arguments[2])
    if _pattern(call) is None or replacement is None or set(replacement) & {"$", "\\"}:
        return None
    return f"regexp_replace({', '.join(arguments)})"


def _extract(call: Call, arguments: Sequence[str]) -> str | None:
    pattern = _pattern(call)
    group = literal_value(call.arguments[2]) if len(arguments) > 2 else 0
    if pattern is None or group is None or not always_matches(pattern, group):
        return None
    value, text = arguments[:2]
    return f"CASE WHEN {value} RLIKE {text} THEN regexp_extract({value}, {text}, {group}) END"


def _extract_all(call: Call, arguments: Sequence[str]) -> str | None:
    pattern = _pattern(call)
    group = literal_value(call.arguments[2]) if len(arguments) > 2 else 1
    if pattern is None or group is None or not always_matches(pattern, group):
        return None
    return f"regexp_extract_all({arguments[0]}, {arguments[1]}, {group})"


def always_matches(pattern: str, group: int) -> bool:
    """Whether a group takes part in every match; Spark has '' for one that does not, Flink NULL.

    >>> always_matches("(&|^)id=([^&]*)", 2), always_matches("(a)|(b)", 2), always_matches("(a)?b", 1)
    (True, False, False)
    """
    if group == 0:
        return True
    if "\\Q" in pattern:
        return False
    parents, open_groups = {}, [0]
    optional, branching = set(), set()
    count, index, in_class = 0, 0, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif in_class or char == "[":
            in_class += (char == "[") - (char == "]")
        elif char == "(":
            captures = re.match(r"\((?!\?)|\(\?<[A-Za-z]", pattern[index:]) is not None
            count += captures
            name = count if captures else -index - 1
            parents[name] = open_groups[-1]
            open_groups.append(name)
        elif char == ")":
            name = open_groups.pop()
            if pattern[index + 1 : index + 2] in ("?", "*", "{"):
                optional.add(name)
        elif char == "|":
            branching.add(open_groups[-1])
        index += 1
    while group in parents:
        if group in optional or parents[group] in branching:
            return False
        group = parents[group]
    return group == 0


TEXTS: dict[str, SparkText] = {
    "REGEXP": _guarded(lambda arguments: f"({arguments[0]} RLIKE {arguments[1]})"),
    "REGEXP_REPLACE": _replace,
    "REGEXP_EXTRACT": _extract,
    "REGEXP_EXTRACT_ALL": _extract_all,
    "REGEXP_COUNT": _guarded(lambda arguments: f"regexp_count({arguments[0]}, {arguments[1]})"),
    "REGEXP_INSTR": _guarded(lambda arguments: f"regexp_instr({arguments[0]}, {arguments[1]})"),
    "REGEXP_SUBSTR": _extract,
}
