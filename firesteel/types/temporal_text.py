"""Dates, times and timestamps as text, the way Flink's JSON and CSV formats read and write them."""

from __future__ import annotations

import datetime as dt
import re

from firesteel.common.time import Instant

__all__ = [
    "format_instant",
    "format_json_time",
    "format_json_timestamp",
    "format_sql_time",
    "format_sql_timestamp",
    "parse_date",
    "parse_instant",
    "parse_time",
    "parse_timestamp",
]

_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_TIME = r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?"
_UTC = r"(?:Z|[+-]00(?::?00)?)?"
_match_date = re.compile(_DATE, re.ASCII).fullmatch
_match_time = re.compile(_TIME + _UTC, re.ASCII).fullmatch
_match_timestamp = re.compile(f"{_DATE}[T ]{_TIME}{_UTC}", re.ASCII).fullmatch
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock of UTC, without a zone as all timestamps here
_SECOND = dt.timedelta(seconds=1)


def parse_date(text: str) -> dt.date:
    """The date of ``2020-01-31``."""
    match = _match_date(text)
    if match is None:
        raise ValueError("not a date like 2020-01-31")
    year, month, day = match.groups()
    return dt.date(int(year), int(month), int(day))


def parse_time(text: str) -> dt.time:
    """The time of ``12:30:00``, ``12:30:00.5`` or ``12:30:00Z``; to the microsecond."""
    match = _match_time(text)
    if match is None:
        raise ValueError("not a time in UTC like 12:30:00Z")
    hour, minute, second, fraction = match.groups()
    return dt.time(int(hour), int(minute), int(second), _microseconds(fraction))


def parse_timestamp(text: str) -> dt.datetime:
    """The wall clock of ``2020-01-31T12:30:00.5Z`` or ``2020-01-31 12:30:00``, without a zone; to the microsecond."""
    match = _match_timestamp(text)
    if match is None:
        raise ValueError("not a timestamp in UTC like 2020-01-31T12:30:00Z")
    year, month, day, hour, minute, second, fraction = match.groups()
    return dt.datetime(  # noqa: DTZ001 - a timestamp of Flink has no zone
        int(year), int(month), int(day), int(hour), int(minute), int(second), _microseconds(fraction)
    )


def parse_instant(text: str) -> Instant:
    """The point in time of ``2020-01-31T12:30:00.123456789Z``."""
    match = _match_timestamp(text)
    if match is None:
        raise ValueError("not a point in time in UTC like 2020-01-31T12:30:00Z")
    year, month, day, hour, minute, second, fraction = match.groups()
    at = dt.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))  # noqa: DTZ001 - see _EPOCH
    return Instant((at - _EPOCH) // _SECOND, int((fraction or "").ljust(9, "0")))


def format_json_time(value: dt.time) -> str:
    """RFC 3339: ``12:30:00Z``, with a fraction if there is one."""
    return f"{_trim(_to_utc_time(value).isoformat())}Z"


def format_json_timestamp(value: dt.datetime) -> str:
    """RFC 3339: ``2020-01-31T12:30:00.5Z``; one with a zone is converted to UTC."""
    return f"{_trim(_to_utc(value).isoformat())}Z"


def format_sql_time(value: dt.time) -> str:
    """``12:30:00``, with a fraction if there is one."""
    return _trim(_to_utc_time(value).isoformat())


def format_sql_timestamp(value: dt.datetime) -> str:
    """``2020-01-31 12:30:00.0``, as Java prints a timestamp; one with a zone is converted to UTC."""
    text = _trim(_to_utc(value).isoformat(" "))
    return text if "." in text else f"{text}.0"


def format_instant(value: Instant) -> str:
    """``2020-01-31T12:30:00.123456789Z``, with as many decimals as are needed."""
    text = (_EPOCH + value.seconds * _SECOND).isoformat()
    return f"{text}.{value.nanos:09d}".rstrip("0") + "Z" if value.nanos else f"{text}Z"


def _microseconds(fraction: str | None) -> int:
    return int(fraction[:6].ljust(6, "0")) if fraction else 0


def _trim(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _to_utc(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(dt.timezone.utc).replace(tzinfo=None)


def _to_utc_time(value: dt.time) -> dt.time:
    offset = value.utcoffset()
    if offset is None:
        return value
    return (dt.datetime.combine(dt.date(2000, 1, 2), value.replace(tzinfo=None)) - offset).time()
