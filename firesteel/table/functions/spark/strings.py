"""Functions of strings."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.nodes import Call
from firesteel.table.functions.spark.texts import SparkText, literal_value, quoted_text
from firesteel.table.inference.families import is_character, is_integer

__all__ = ["TEXTS"]

_NO_ESCAPE = "\x01"
"""The escape character of a LIKE without one: Spark's default is a backslash."""


def _call(name: str) -> SparkText:
    return lambda call, arguments: f"{name}({', '.join(arguments)})"


def _stripped(name: str) -> SparkText:
    def text(call: Call, arguments: Sequence[str]) -> str:
        value, *characters = arguments
        return f"{name}({characters[0]}, {value})" if characters else f"{name}({value})"

    return text


def _btrim(call: Call, arguments: Sequence[str]) -> str:
    return f"btrim({', '.join(arguments)})"


def _substring(call: Call, arguments: Sequence[str]) -> str:
    value, start, *length = arguments
    cases = [] if not length or (literal_value(call.arguments[2]) or -1) >= 0 else [f"WHEN {length[0]} < 0 THEN NULL"]
    if (literal_value(call.arguments[1]) or -1) < 0:
        cases.append(f"WHEN {start} < 0 AND -{start} > char_length({value}) THEN ''")
    part = f"substring({', '.join(arguments)})"
    return f"CASE {' '.join(cases)} ELSE {part} END" if cases else part


def _like(call: Call, arguments: Sequence[str]) -> str | None:
    value, pattern = arguments[:2]
    escape = _NO_ESCAPE
    if len(arguments) > 2:
        escape = literal_value(call.arguments[2])
        if not escape or len(escape) != 1 or literal_value(call.arguments[1]) is None:
            return None
    return f"({value} LIKE {pattern} ESCAPE {quoted_text(escape)})"


def _delimiter(call: Call) -> str | None:
    """The regular expression of a delimiter that is a literal."""
    given = call.arguments[1]
    value = literal_value(given)
    if value is not None and is_integer(given.type):
        value = chr(value)
    return None if not value or "\\E" in value else quoted_text(f"\\Q{value}\\E")


def _split_index(call: Call, arguments: Sequence[str]) -> str | None:
    pattern = _delimiter(call)
    if pattern is None:
        return None
    value, index = arguments[0], arguments[2]
    part = f"try_element_at(split({value}, {pattern}, -1), {index} + 1)"
    return f"CASE WHEN {index} >= 0 AND {value} <> '' THEN {part} END"


def _split(call: Call, arguments: Sequence[str]) -> str | None:
    pattern = _delimiter(call)
    value = arguments[0]
    if pattern is None:
        return None
    return f"CASE WHEN {value} = '' THEN CAST(array() AS ARRAY<STRING>) ELSE split({value}, {pattern}, -1) END"


def _replace(call: Call, arguments: Sequence[str]) -> str | None:
    return f"replace({', '.join(arguments)})" if literal_value(call.arguments[1]) else None


def _instr(call: Call, arguments: Sequence[str]) -> str | None:
    return f"instr({', '.join(arguments)})" if len(arguments) == 2 else None


def _locate(call: Call, arguments: Sequence[str]) -> str | None:
    return f"locate({', '.join(arguments)})" if len(arguments) == 2 else None


def _test(pattern: str, numbers: str) -> SparkText:
    """A test of strings; its result for numbers is known."""

    def text(call: Call, arguments: Sequence[str]) -> str:
        if not is_character(call.arguments[0].type):
            return numbers
        return f"coalesce({arguments[0]} RLIKE '{pattern}', false)"

    return text


def _elt(call: Call, arguments: Sequence[str]) -> str | None:
    return f"elt({', '.join(arguments)})" if len(arguments) > 2 else None


TEXTS: dict[str, SparkText] = {
    "LTRIM": _stripped("ltrim"),
    "RTRIM": _stripped("rtrim"),
    "BTRIM": _btrim,
    "TO_BASE64": "base64(CAST({0} AS BINARY))",
    "URL_DECODE": "try_url_decode({0})",
    "URL_ENCODE": "url_encode({0})",
    "POSITION": _locate,
    "LOCATE": _locate,
    "INSTR": _instr,
    "SUBSTRING": _substring,
    "SUBSTR": _substring,
    "REPLACE": _replace,
    "TRANSLATE": _call("translate"),
    "CONCAT": _call("concat"),
    "CONCAT_WS": _call("concat_ws"),
    "CHR": "chr({0})",
    "SPLIT_INDEX": _split_index,
    "SPLIT": _split,
    "ELT": _elt,
    "LIKE": _like,
    "IS_ALPHA": _test("^\\\\p{IsAlphabetic}+$", "false"),
    "IS_DIGIT": _test("^\\\\p{Nd}+$", "true"),
}
