"""Java's DateTimeFormatter patterns: dates as text in a format, and from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from firesteel.table.values.calendar import civil, day_number

__all__ = ["FormatError", "Moment", "formatter", "granularity", "parser"]


class FormatError(ValueError):
    """A pattern that is none, or text that does not fit one."""


_DAY = 86_400_000_000_000
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass
class Moment:
    """A local timestamp, and the offset of its zone from UTC in seconds."""

    nanos: int
    offset: int | None = None
    zone: str | None = None
    date: tuple[int, int, int] = field(init=False)
    time: int = field(init=False)

    def __post_init__(self) -> None:
        days, self.time = divmod(self.nanos, _DAY)
        self.date = civil(days)
        self.days = days

    @property
    def weekday(self) -> int:
        return (self.days + 3) % 7


def _number(value: int, width: int) -> str:
    return f"{value:0{width}}"


def _year(value: int, width: int) -> str:
    if width == 2:
        return f"{value % 100:02}"
    return f"+{value}" if value > 9999 and width >= 4 else _number(value, width)


def _month(moment: Moment, width: int) -> str:
    month = moment.date[1]
    if width <= 2:
        return _number(month, width)
    name = _MONTHS[month - 1]
    return name[:3] if width == 3 else name if width == 4 else name[:1]


def _weekday(moment: Moment, width: int) -> str:
    name = _DAYS[moment.weekday]
    return name[:3] if width <= 3 else name if width == 4 else name[:1]


def _local_weekday(moment: Moment, width: int) -> str:
    if width <= 2:
        return _number((moment.weekday + 1) % 7 + 1, width)
    return _weekday(moment, width)


def _offset(moment: Moment, width: int, zero: str) -> str:
    if moment.offset is None:
        raise FormatError("no offset")
    if moment.offset == 0 and zero:
        return zero
    sign = "-" if moment.offset < 0 else "+"
    hours, minutes = divmod(abs(moment.offset) // 60, 60)
    if width == 1:
        return f"{sign}{hours:02}{f'{minutes:02}' if minutes else ''}"
    return f"{sign}{hours:02}{':' if width in (3, 5) else ''}{minutes:02}"


def _week(moment: Moment) -> tuple[int, int]:
    """Year and week as in the United States: weeks start on Sunday, and the first one has January 1."""
    sunday = moment.days - (moment.weekday + 1) % 7
    year = civil(sunday + 6)[0]
    first = day_number(year, 1, 1)
    return year, (sunday - (first - (first + 4) % 7)) // 7 + 1


def _hour(moment: Moment) -> int:
    return moment.time // 3_600_000_000_000


_FIELDS: dict[str, Callable[[Moment, int], str]] = {
    "G": lambda moment, width: "Anno Domini" if width == 4 else "A" if width == 5 else "AD",
    "y": lambda moment, width: _year(moment.date[0], width),
    "u": lambda moment, width: _year(moment.date[0], width),
    "Y": lambda moment, width: _year(_week(moment)[0], width),
    "D": lambda moment, width: _number(moment.days - day_number(moment.date[0], 1, 1) + 1, width),
    "M": _month,
    "L": _month,
    "d": lambda moment, width: _number(moment.date[2], width),
    "Q": lambda moment, width: (
        f"{(moment.date[1] + 2) // 3:0{width}}" if width <= 2 else f"Q{(moment.date[1] + 2) // 3}"
    ),
    "w": lambda moment, width: _number(_week(moment)[1], width),
    "E": _weekday,
    "e": _local_weekday,
    "a": lambda moment, width: "AM" if _hour(moment) < 12 else "PM",
    "H": lambda moment, width: _number(_hour(moment), width),
    "k": lambda moment, width: _number(_hour(moment) or 24, width),
    "K": lambda moment, width: _number(_hour(moment) % 12, width),
    "h": lambda moment, width: _number(_hour(moment) % 12 or 12, width),
    "m": lambda moment, width: _number(moment.time // 60_000_000_000 % 60, width),
    "s": lambda moment, width: _number(moment.time // 1_000_000_000 % 60, width),
    "S": lambda moment, width: f"{moment.time % 1_000_000_000:09}"[:width].ljust(width, "0"),
    "n": lambda moment, width: _number(moment.time % 1_000_000_000, width),
    "N": lambda moment, width: _number(moment.time, width),
    "A": lambda moment, width: _number(moment.time // 1_000_000, width),
    "X": lambda moment, width: _offset(moment, width, "Z"),
    "x": lambda moment, width: _offset(moment, width, ""),
    "Z": lambda moment, width: _offset(moment, 2 if width < 4 else 3, ""),
    "V": lambda moment, width: _zone(moment),
    "z": lambda moment, width: _zone(moment),
}


def _zone(moment: Moment) -> str:
    if moment.zone is None:
        raise FormatError("no zone")
    return moment.zone


@lru_cache(maxsize=512)
def _parts(pattern: str) -> tuple[tuple[str, int], ...]:
    """Letters with their number, and literal texts with 0."""
    parts: list[tuple[str, int]] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            end = pattern.find("'", at + 1)
            if end < 0:
                raise FormatError(f"Pattern ends with an incomplete string literal: {pattern}")
            parts.append((pattern[at + 1 : end] or "'", 0))
            at = end + 1
        elif character.isascii() and character.isalpha():
            width = len(pattern) - at - len(pattern[at:].lstrip(character))
            if character not in _FIELDS:
                raise FormatError(f"Unknown pattern letter: {character}")
            parts.append((character, width))
            at += width
        elif character in "{}#":
            raise FormatError(f"Pattern includes reserved character: '{character}'")
        elif character in "[]":
            at += 1
        else:
            parts.append((character, 0))
            at += 1
    return tuple(parts)


@lru_cache(maxsize=512)
def formatter(pattern: str) -> Callable[[Moment], str]:
    """What makes text of a moment; FormatError if the pattern is none."""
    parts = _parts(pattern)
    fields = [(_FIELDS[text] if width else None, text, width) for text, width in parts]
    return lambda moment: "".join([text if made is None else made(moment, width) for made, text, width in fields])


_UNITS = {"h": 3600, "a": 3600, "H": 3600, "k": 3600, "K": 3600, "m": 60, "s": 1}
_OF_DATES = frozenset("GyuYDMLdQwEe")


@lru_cache(maxsize=512)
def granularity(pattern: str) -> int:
    """The seconds within which all times of day have the same text; 0 if it depends on more. FormatError as above.

    >>> granularity("yyyy-MM-dd"), granularity("HH:mm"), granularity("HH:mm:ss.SSS")
    (86400, 60, 0)
    """
    letters = [text for text, width in _parts(pattern) if width]
    return min((86_400 if letter in _OF_DATES else _UNITS.get(letter, 0) for letter in letters), default=86_400)


_NUMBERS = {"y": "year", "u": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_MORE_NUMBERS = {"h": "hour12", "K": "hour12", "k": "hour24", "D": "day_of_year"}
_NAMES = tuple(name[:3] for name in _MONTHS)


@lru_cache(maxsize=512)
def parser(pattern: str, lenient: bool = False) -> Callable[[str], Moment]:
    """What reads a moment from text; a date without a time is at midnight. FormatError if the text does not fit.

    If lenient, as Java's SimpleDateFormat, numbers may have less digits, and more text may follow.
    """
    parts = _parts(pattern)
    expression: list[str] = []
    names: list[str] = []
    for index, (text, width) in enumerate(parts):
        if not width:
            expression.append(re.escape(text))
            continue
        adjacent = index + 1 < len(parts) and parts[index + 1][1] and parts[index + 1][0] in "yMdHmsSuhkK"
        name, body = _field(text, 1 if lenient and not adjacent and text in "MdHms" else width, bool(adjacent))
        expression.append(f"({body})")
        names.append(name)
    compiled = re.compile("".join(expression), re.ASCII)

    def parse(text: str) -> Moment:
        found = compiled.match(text) if lenient else compiled.fullmatch(text)
        if found is None:
            raise FormatError(f"Text '{text}' could not be parsed")
        return _moment(dict(zip(names, found.groups(), strict=True)))

    return parse


def _field(letter: str, width: int, adjacent: bool) -> tuple[str, str]:
    if letter in "ML" and width >= 3:
        return "month_name", "|".join(_NAMES if width == 3 else _MONTHS)
    if letter in _NUMBERS or letter in _MORE_NUMBERS:
        name = _NUMBERS.get(letter) or _MORE_NUMBERS[letter]
        if letter in "yu" and width == 2:
            return "short_year", r"\d{2}"
        if width == 1 and not adjacent:
            return name, r"\d+"
        if letter in "yu" and not adjacent:
            return name, rf"\d{{{width},}}"
        return name, rf"\d{{{width}}}"
    if letter == "S":
        return "fraction", rf"\d{{{width}}}"
    if letter == "a":
        return "half", "AM|PM"
    if letter == "E":
        return "weekday", "|".join(day[:3] if width <= 3 else day for day in _DAYS)
    if letter in "XxZ":
        return "offset", r"Z|[+-]\d{2}(?::?\d{2})?"
    raise FormatError(f"Cannot parse the field {letter}")


def _moment(found: dict[str, str]) -> Moment:
    def number(name: str, default: int) -> int:
        return int(found[name]) if name in found else default

    year = 2000 + int(found["short_year"]) if "short_year" in found else number("year", 1970)
    month = number("month", 1)
    if "month_name" in found:
        month = _NAMES.index(found["month_name"][:3]) + 1
    try:
        days = day_number(year, month, number("day", 1))
    except ValueError as error:
        raise FormatError(str(error)) from error
    if "day_of_year" in found:
        days = day_number(year, 1, 1) + int(found["day_of_year"]) - 1
    hour = number("hour", 0)
    if "hour12" in found:
        hour = int(found["hour12"]) % 12 + (12 if found.get("half") == "PM" else 0)
    if "hour24" in found:
        hour = int(found["hour24"]) % 24
    minute, second = number("minute", 0), number("second", 0)
    if hour > 23 or minute > 59 or second > 59:
        raise FormatError("out of range")
    fraction = int(found["fraction"][:9].ljust(9, "0")) if "fraction" in found else 0
    nanos = days * _DAY + (hour * 3600 + minute * 60 + second) * 10**9 + fraction
    return Moment(nanos, _seconds(found["offset"]) if "offset" in found else None)


def _seconds(text: str) -> int:
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    return (-1 if text[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
