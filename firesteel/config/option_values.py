"""How the values of a configuration are read from text and written as text."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.common.time import Duration, Time
from firesteel.config.memory_size import MemorySize

__all__ = [
    "ToChoice",
    "ToEnum",
    "ToInteger",
    "ToList",
    "parse_list",
    "parse_map",
    "to_boolean",
    "to_bytes",
    "to_duration",
    "to_float",
    "to_memory_size",
    "to_text",
]

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_COMMA_ITEM = re.compile(rf"\s*({_QUOTED}|[^,]*?)\s*(?:,|$)")
_SEMICOLON_ITEM = re.compile(rf"\s*({_QUOTED}|[^;]*?)\s*(?:;|$)")
_ENTRY = re.compile(rf"\s*({_QUOTED}|[^:,]*?)\s*:\s*({_QUOTED}|[^,]*?)\s*(?:,\s*|$)")
_NEEDS_QUOTES = frozenset(",;:[]{}'\"")


def to_boolean(value: Any) -> bool:
    """True or false, in any case."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return text == "true"


@dataclass(frozen=True)
class ToInteger:
    """A whole number of so many bits."""

    bits: int

    def __call__(self, value: Any) -> int:
        """Reads the number and checks that it fits."""
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(f"{value!r} is not an integer")  # noqa: TRY004 - all conversions fail alike
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"{value!r} is not an integer") from None
        limit = 1 << (self.bits - 1)
        if not -limit <= number < limit:
            raise ValueError(f"{number} does not fit into {self.bits} bits")
        return number


def to_float(value: Any) -> float:
    """A number with fractions."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not a number")  # noqa: TRY004 - all conversions fail alike
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None


def to_duration(value: Any) -> Duration:
    """A duration, from text or from another representation; a bare number is milliseconds."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, timedelta):
        return Duration.of_timedelta(value)
    if isinstance(value, Time):
        return Duration.of_millis(value.to_milliseconds())
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration.of_millis(value)
    return Duration.parse(str(value))


def to_memory_size(value: Any) -> MemorySize:
    """A memory size; a bare number is bytes."""
    return value if isinstance(value, MemorySize) else MemorySize.parse(str(value))


def to_bytes(value: Any) -> bytearray:
    """Bytes as they are, or the bytes that a text stands for in base 64."""
    if isinstance(value, (bytes, bytearray)):
        return bytearray(value)
    try:
        return bytearray(base64.b64decode(str(value), validate=True))
    except ValueError:
        raise ValueError(f"{value!r} is neither bytes nor base64") from None


@dataclass(frozen=True)
class ToEnum(Generic[E]):
    """A member of an Enum, by name or value, in any case, with - and _ alike."""

    enum_class: type[E]

    def __call__(self, value: Any) -> E:
        """Finds the member."""
        if isinstance(value, self.enum_class):
            return value
        wanted = _fold(value)
        for member in self.enum_class:
            if wanted in (_fold(member.name), _fold(member.value)):
                return member
        names = ", ".join(member.name for member in self.enum_class)
        raise ValueError(f"{value!r} is not one of {names}")


@dataclass(frozen=True)
class ToChoice:
    """One of some words; an Enum member stands for its name."""

    choices: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        """Finds the word, in any case, with - and _ alike."""
        wanted = _fold(value.name if isinstance(value, Enum) else value)
        for choice in self.choices:
            if wanted == _fold(choice):
                return choice
        raise ValueError(f"{value!r} is not one of {', '.join(self.choices)}")


@dataclass(frozen=True)
class ToList(Generic[T]):
    """A list, each element converted on its own."""

    element: Callable[[Any], T]

    def __call__(self, value: Any) -> list[T]:
        """Splits the text and converts its parts."""
        parts = parse_list(value) if value is None or isinstance(value, str) else value
        return [self.element(part) for part in parts]


def parse_list(text: str | None) -> list[str]:
    """Reads ``a;b``, ``[a, b]`` or lines that start with a dash."""
    if text is None or not text.strip():
        return []
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        parts = [match[1] for match in _COMMA_ITEM.finditer(text[1:-1])]
    elif all(line.lstrip().startswith("- ") for line in text.splitlines()):
        parts = [line.lstrip()[2:] for line in text.splitlines()]
    else:
        parts = [match[1] for match in _SEMICOLON_ITEM.finditer(text)]
    return [_unquote(part) for part in parts if part.strip()]


def parse_map(value: Any) -> dict[str, str]:
    """Reads ``a:1,b:2`` or ``{a: 1, b: 2}``; a mapping keeps its keys, its values become text."""
    if isinstance(value, Mapping):
        return {str(key): to_text(item) for key, item in value.items()}
    text = str(value).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    entries: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _ENTRY.match(text, position)
        if match is None:
            raise ValueError(f"{text[position:]!r} is not of the form key:value")
        entries[_unquote(match[1])] = _unquote(match[2])
        position = match.end()
    return entries


def to_text(value: Any) -> str:
    """The value as a configuration file would have it; reading it back gives the same value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Duration):
        return value.format()
    if isinstance(value, (timedelta, Time)):
        return to_duration(value).format()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        entries = (f"{_quote(str(key))}: {_quote(to_text(item))}" for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_quote(to_text(item)) for item in value) + "]"
    return str(value)


def _fold(value: Any) -> str:
    return str(value).strip().lower().replace("-", "_")


def _quote(text: str) -> str:
    if text and text == text.strip() and not _NEEDS_QUOTES.intersection(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        quote = text[0]
        return text[1:-1].replace(quote * 2, quote)
    return text
