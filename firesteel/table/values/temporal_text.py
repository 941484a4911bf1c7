"""Dates, times and intervals as text, and from it, as CAST converts them."""

from __future__ import annotations

import re

from firesteel.table.values.calendar import civil, day_number

__all__ = [
    "NANOS_PER_DAY",
    "date_text",
    "day_time_text",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "time_text",
    "timestamp_text",
    "year_month_text",
]

NANOS_PER_DAY = 86_400_000_000_000
_DATE = re.compile(r"\s*(\d{1,5})(?:-(\d{1,2})(?:-(\d{1,2}))?)?\s*", re.ASCII)
_FULL_TIME = re.compile(r"\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d*)?", re.ASCII)
_TIME = re.compile(r"\s*(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?)?\s*", re.ASCII)


def date_text(days: int) -> str:
    """2006-06-05."""
    year, month, day = civil(days)
    return f"{year:04}-{month:02}-{day:02}"


def time_text(millis: int, precision: int) -> str:
    """12:44:31, with as many digits of a second as the precision."""
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:03}000000"[: 9 + precision] if precision else text


def timestamp_text(nanos: int, precision: int) -> str:
    """2006-06-05 12:44:31.123, with as many digits of a second as the precision."""
    days, rest = divmod(nanos, NANOS_PER_DAY)
    seconds, fraction = divmod(rest, 10**9)
    text = f"{date_text(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{f'{fraction:09}'[:precision]}" if precision else text


def year_month_text(months: int) -> str:
    """+1-02."""
    return f"{'-' if months < 0 else '+'}{abs(months) // 12}-{abs(months) % 12:02}"


def day_time_text(millis: int) -> str:
    """+10 00:00:00.004."""
    days, rest = divmod(abs(millis), 86_400_000)
    seconds, fraction = divmod(rest, 1000)
    sign = "-" if millis < 0 else "+"
    return f"{sign}{days} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:03}"


def parse_date(text: str) -> int:
    """The days of a date; ValueError if there is none."""
    found = _DATE.fullmatch(text.strip().partition(" ")[0])  # a time after the date is left out
    if found is None:
        raise ValueError(text)
    year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
    return day_number(year, month, day)


def parse_time(text: str) -> int:
    """The milliseconds of a time of day; ValueError if there is none."""
    return _time_nanos(text) // 10**6


def _time_nanos(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    fraction = int(f"{(found[4] or '0')[:9]:0<9}")
    return (hour * 3600 + minute * 60 + second) * 10**9 + fraction


def parse_timestamp(text: str, precision: int) -> int:
    """The nanoseconds of a timestamp without the digits beyond the precision; ValueError if there is none."""
    trimmed = text.strip()
    date, separator, time = trimmed.partition(" ")
    if separator and not _FULL_TIME.fullmatch(time):
        raise ValueError(text)
    nanos = parse_date(date) * NANOS_PER_DAY + (_time_nanos(time) if separator else 0)
    unit = int(10 ** (9 - precision))
    return nanos // unit * unit
