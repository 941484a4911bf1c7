"""The calendar on numbers: days since 1970 and their years, months and weeks, of any year."""

from __future__ import annotations

__all__ = ["add_months", "civil", "day_number", "days_of_month", "iso_week", "iso_year"]

_ERA = 146_097
"""Days of 400 years."""
_TO_1970 = 719_468
"""Days from March 1 of the year 0 to January 1, 1970."""
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days."""
    era, day = divmod(days + _TO_1970, _ERA)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # counts from March
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day + 1


def days_of_month(year: int, month: int) -> int:
    """The length of a month."""
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + leap


def day_number(year: int, month: int, day: int) -> int:
    """The days from 1970 to a date; ValueError if there is no such date.

    >>> day_number(2020, 2, 29), civil(18321)
    (18321, (2020, 2, 29))
    """
    if not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        raise ValueError(f"no such date: {year}-{month}-{day}")
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * _ERA + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - _TO_1970


def add_months(days: int, months: int) -> int:
    """A date some months later; at most the last day of that month."""
    year, month, day = civil(days)
    years, month = divmod(month - 1 + months, 12)
    year, month = year + years, month + 1
    return day_number(year, month, min(day, days_of_month(year, month)))


def _iso(days: int) -> tuple[int, int]:
    thursday = days - (days + 3) % 7 + 3
    year = civil(thursday)[0]
    return year, (thursday - day_number(year, 1, 1)) // 7 + 1


def iso_week(days: int) -> int:
    """The week of the year by ISO 8601."""
    return _iso(days)[1]


def iso_year(days: int) -> int:
    """The year to which the week of a date belongs by ISO 8601."""
    return _iso(days)[0]
