"""Dates, times and intervals as text, and from it, as CAST converts them."""

from __future__ import annotations

import re

from firesteel.table.values.calendar import civil, day_number, days_of_month

__all__ = [
    "NANOS_PER_DAY",
    "date_text",
    "day_time_text",
    "parse_date",
    "parse_time",
    "parse_timestamp",
    "parse_timestamp_literal",
    "time_text",
    "timestamp_text",
    "year_month_text",
]

NANOS_PER_DAY = 86_400_000_000_000
_DATE = re.compile(r"\s*(\d{1,4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?\s*", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}|\+\d{5,6})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?", re.ASCII
)
_LITERAL_TIME = re.compile(r"\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d*)?", re.ASCII)
_TIME = re.compile(r"\s*(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*", re.ASCII)


def date_text(days: int) -> str:
    """2006-06-05; of a year after 9999 the last four digits, as in Flink."""
    year, month, day = civil(days)
    return f"{year % 10_000:04}-{month:02}-{day:02}"


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
    """The nanoseconds of a timestamp without the digits beyond the precision; ValueError if there is none.

    A day that a month does not have, up to the 31st, is its last one; 24:00:00 is the beginning of the next day.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int(f"{found[7] or '0':0<9}")
    if not 1 <= month <= 12 or day > 31 or year < 1:
        raise ValueError(text)
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and minute + second + fraction):
        raise ValueError(text)
    days = day_number(year, month, min(day, days_of_month(year, month)))
    nanos = days * NANOS_PER_DAY + (hour * 3600 + minute * 60 + second) * 10**9 + fraction
    unit = int(10 ** (9 - precision))
    return nanos // unit * unit


def parse_timestamp_literal(text: str) -> int:
    """The nanoseconds of a literal, which has to name a day that there is, and a time of it."""
    date, separator, time = text.strip().partition(" ")
    if separator and not _LITERAL_TIME.fullmatch(time):
        raise ValueError(text)
    return parse_date(date) * NANOS_PER_DAY + (_time_nanos(time) if separator else 0)
