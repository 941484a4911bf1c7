"""How objects of a program are shown in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Link", "html_table"]


class Link(str):
    """A text that is shown as a link to itself."""

    __slots__ = ()


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A small table. All texts are escaped.

    >>> html_table("Job", [("name", "<a>")])
    '<table><caption>Job</caption><tr><th style="text-align:left">name</th><td>&lt;a&gt;</td></tr></table>'
    """
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td>{_cell(value)}</td></tr>' for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"


def _cell(value: object) -> str:
    text = escape(str(value))
    if isinstance(value, Link) and value.startswith(("http://", "https://")):
        return f'<a href="{text}">{text}</a>'
    return text.replace("\n", "<br>")
