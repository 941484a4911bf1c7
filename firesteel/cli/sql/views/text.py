"""Lines of styled text."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.environment.results.tableau import display_width

__all__ = ["Line", "centered", "fit", "help_lines", "plain", "spread"]

Line = list[tuple[str, str]]
"""Parts of a line: a style and a text each."""

_CUT = "~"


def fit(text: str, width: int) -> str:
    """The text to the right of a column; what is too wide ends with a tilde."""
    text = " ".join(text.split("\n")) if "\n" in text else text
    shown = display_width(text)
    if shown <= width:
        return " " * (width - shown) + text
    kept = ""
    for character in text:
        if display_width(kept + character) > width - 1:
            break
        kept += character
    return kept + _CUT + " " * (width - 1 - display_width(kept))


def centered(text: str, width: int, style: str = "") -> Line:
    """A line with a text in its middle."""
    return [(style, text.center(width)[:width])]


def spread(left: str, middle: str, right: str, width: int, style: str = "") -> Line:
    """A line with texts at its ends and in its middle."""
    line = list(f" {left}".ljust(width))
    start = max(len(left) + 2, (width - len(middle)) // 2)
    line[start : start + len(middle)] = middle
    line[max(0, width - len(right) - 1) : width - 1] = right
    return [(style, "".join(line)[:width])]


def help_lines(entries: Sequence[tuple[str, str]], width: int) -> list[Line]:
    """Keys and what they do, in two lines."""
    columns = -(-len(entries) // 2)
    wide = width // columns
    lines: list[Line] = []
    for row in range(2):
        line: Line = []
        for column in range(columns):
            index = column * 2 + row
            if index >= len(entries):
                break
            key, action = entries[index]
            line += [("reverse", key), ("", f" {action}".ljust(max(1, wide - len(key)))[: wide - len(key)])]
        lines.append(line)
    return lines


def plain(lines: Sequence[Line]) -> list[str]:
    """The lines without styles."""
    return ["".join(text for _, text in line).rstrip() for line in lines]
