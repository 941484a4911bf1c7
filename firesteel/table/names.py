"""Names and strings as SQL writes them."""

from __future__ import annotations

__all__ = ["quoted", "string_literal"]


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """A string in single quotes.

    >>> print(string_literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"
