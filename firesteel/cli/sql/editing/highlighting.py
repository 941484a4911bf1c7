"""Colors of SQL text."""

from __future__ import annotations

import re

from firesteel.table.parser.reserved import KEYWORDS, RESERVED

__all__ = ["STYLES", "spans"]

_PARTS = re.compile(
    r"""
    (?P<hint>/\*\+.*?(?:\*/|\Z))
  | (?P<comment>(?:--|//)[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<string>'(?:[^']|'')*(?:'|\Z))
  | (?P<quoted>`(?:[^`]|``)*(?:`|\Z))
  | (?P<number>(?<![\w$])\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = {"keyword": "", "string": "", "quoted": "", "comment": "", "hint": "", "number": ""}

STYLES: dict[str, dict[str, str]] = {
    "NONE": _PLAIN,
    "DEFAULT": {
        "keyword": "bold ansibrightblue",
        "string": "ansigreen",
        "quoted": "ansicyan",
        "comment": "italic ansibrightblack",
        "hint": "ansiyellow",
        "number": "ansimagenta",
    },
    "DARK": {
        "keyword": "bold #5c9ded",
        "string": "#9bc76d",
        "quoted": "#d3d3d3",
        "comment": "italic #8a8a8a",
        "hint": "#e5c07b",
        "number": "#c39ac9",
    },
    "LIGHT": {
        "keyword": "bold #a03020",
        "string": "#207020",
        "quoted": "#206080",
        "comment": "italic #808080",
        "hint": "#906000",
        "number": "#703090",
    },
    "CHESTER": {
        "keyword": "bold #2f6fed",
        "string": "#d05050",
        "quoted": "#30a0a0",
        "comment": "italic #40a040",
        "hint": "#c09020",
        "number": "#9060c0",
    },
    "VS2010": {
        "keyword": "bold #3070ff",
        "string": "#b04040",
        "quoted": "#c040c0",
        "comment": "italic #308030",
        "hint": "#b08030",
        "number": "#707070",
    },
    "SOLARIZED": {
        "keyword": "bold #b58900",
        "string": "#2aa198",
        "quoted": "#268bd2",
        "comment": "italic #586e75",
        "hint": "#cb4b16",
        "number": "#d33682",
    },
    "OBSIDIAN": {
        "keyword": "bold #93c763",
        "string": "#ec7600",
        "quoted": "#678cb1",
        "comment": "italic #7d8c93",
        "hint": "#a082bd",
        "number": "#ffcd22",
    },
    "GESHI": {
        "keyword": "bold #993333",
        "string": "#3355ff",
        "quoted": "#338844",
        "comment": "italic #808080",
        "hint": "#99aa33",
        "number": "#cc66cc",
    },
}
"""The styles of each color schema, by the names of Flink's."""


def spans(text: str) -> list[tuple[str, str]]:
    """The parts of a text with what each is: keyword, string, quoted, comment, hint, number, or nothing.

    >>> spans("SELECT 1 -- one")
    [('keyword', 'SELECT'), ('', ' '), ('number', '1'), ('', ' '), ('comment', '-- one')]
    """
    found: list[tuple[str, str]] = []
    end = 0
    for match in _PARTS.finditer(text):
        if match.start() > end:
            found.append(("", text[end : match.start()]))
        kind = match.lastgroup or ""
        if kind == "word":
            word = match.group()
            # words that are mostly names, such as data and name, stand out only in capitals
            upper = word.upper()
            kind = "keyword" if upper in RESERVED or (upper in KEYWORDS and word.isupper()) else ""
        found.append((kind, match.group()))
        end = match.end()
    if end < len(text):
        found.append(("", text[end:]))
    return found
