"""Text as Java has it, in units of 16 bits."""

from __future__ import annotations

__all__ = ["java_length", "java_units"]

_LAST_UNIT = "\uffff"


def java_length(text: str) -> int:
    """The number of units.

    >>> java_length("a\N{GRINNING FACE}")
    3
    """
    return len(text) if text.isascii() else len(text) + sum(character > _LAST_UNIT for character in text)


def java_units(text: str) -> list[str]:
    """The units as texts of their own; half a character is a question mark, as in UTF-8 that Java writes.

    >>> java_units("a\N{GRINNING FACE}")
    ['a', '?', '?']
    """
    return [unit for character in text for unit in (("?", "?") if character > _LAST_UNIT else (character,))]
