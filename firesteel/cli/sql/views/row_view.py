"""What opens above a result: one row with all of its values, and the number of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from firesteel.cli.sql.views.text import Line, centered, help_lines

__all__ = ["PageInput", "RowView"]


class RowView:
    """The values of a row, whole."""

    def __init__(self, names: Sequence[str], types: Sequence[str], values: Sequence[str]) -> None:
        self._columns = list(zip(names, types, values, strict=True))
        self._first = 0
        self.is_closed = False

    def press(self, key: str) -> None:
        """Scrolls or closes."""
        match key.lower():
            case "q" | "c-c" | "c-d" | "escape" | "enter" | "o":
                self.is_closed = True
            case "down" | "pagedown":
                self._first += 1 if key == "down" else 10
            case "up" | "pageup":
                self._first = max(0, self._first - (1 if key == "up" else 10))

    def lines(self, width: int, height: int) -> list[Line]:
        """The screen."""
        body: list[Line] = []
        for name, type_, value in self._columns:
            body.append([("bold", f" {name} ({type_}):")])
            for part in value.split("\n"):
                body += [[("", f" {line}")] for line in textwrap.wrap(part, max(10, width - 2)) or [""]]
            body.append([("", "")])
        visible = max(1, height - 3)
        self._first = min(self._first, max(0, len(body) - visible))
        shown = body[self._first : self._first + visible]
        blank: list[Line] = [[("", "")] for _ in range(visible - len(shown))]
        head: list[Line] = [centered("Row Summary", width, "reverse"), [("", "")]]
        return [*head, *shown, *blank, *help_lines((("Q", "Back"),), width)[:1]]


class PageInput:
    """Asks for the number of a page."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._text = ""
        self._is_invalid = False
        self.page: int | None = None
        self.is_closed = False

    def press(self, key: str) -> None:
        """Takes a character, submits or cancels."""
        match key:
            case "escape" | "c-c" | "c-d":
                self.is_closed = True
            case "backspace":
                self._text = self._text[:-1]
            case "enter":
                if not self._text:
                    self.is_closed = True
                elif self._text.isdigit() and 1 <= int(self._text) <= self._pages:
                    self.page, self.is_closed = int(self._text), True
                else:
                    self._is_invalid = True
            case _ if len(key) == 1:
                self._text += key
                self._is_invalid = False

    def lines(self, width: int, height: int) -> list[Line]:
        """The screen."""
        body: list[Line] = [
            [("", f" Enter page number: [1 to {self._pages}]")],
            [("", f" > {self._text}"), ("reverse", " ")],
            [("", " The input is invalid please check it again." if self._is_invalid else "")],
        ]
        above = max(0, height // 2 - 3)
        lines = [centered("Input Dialog", width, "reverse"), *([("", "")] for _ in range(above)), *body]
        lines += [[("", "")] for _ in range(max(0, height - len(lines) - 1))]
        return [*lines, [("", "Press Enter to submit. Press ESC or submit an empty string to cancel.")]]
