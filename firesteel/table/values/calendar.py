"""The calendar on numbers: days since 1970 and their years, months and weeks."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange

__all__ = ["EPOCH_ORDINAL", "add_months", "civil", "day_number", "iso_week", "iso_year"]

EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days."""
    date = dt.date.fromordinal(days + EPOCH_ORDINAL)
    return date.year, date.month, date.day


def day_number(year: int, month: int, day: int) -> int:
    """The days from 1970 to a date; ValueError if there is no such date."""
    return dt.date(year, month, day).toordinal() - EPOCH_ORDINAL


def add_months(days: int, months: int) -> int:
    """A date some months later; at most the last day of that month."""
    year, month, day = civil(days)
    years, month = divmod(month - 1 + months, 12)
    year, month = year + years, month + 1
    return day_number(year, month, min(day, monthrange(year, month)[1]))


def iso_week(days: int) -> int:
    """The week of the year by ISO 8601."""
    return dt.date.fromordinal(days + EPOCH_ORDINAL).isocalendar()[1]


def iso_year(days: int) -> int:
    """The year to which the week of a date belongs by ISO 8601."""
    return dt.date.fromordinal(days + EPOCH_ORDINAL).isocalendar()[0]
