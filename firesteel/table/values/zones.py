"""Time zones: between points in time and local timestamps, both in nanoseconds."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["find_zone", "to_instant", "to_last_instant", "to_local"]

_SECOND = 1_000_000_000
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone
_CYCLE = 146_097 * 86_400
_LAST = 253_370_764_800
_FIRST = -62_104_060_800
"""The beginning of the year 9999, and that of the year 2, in seconds."""
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_OLD_NAMES = {"PST": "America/Los_Angeles", "CST": "America/Chicago", "JST": "Asia/Tokyo", "CTT": "Asia/Shanghai"}
"""Abbreviations that Java knows."""


@lru_cache(maxsize=256)
def find_zone(name: str) -> dt.tzinfo:
    """The zone of a name such as Europe/Berlin, UTC or GMT+08:00; ValueError if there is none."""
    if name in ("UTC", "GMT", "Z", "UT"):
        return dt.timezone.utc
    found = _OFFSET.fullmatch(name)
    if found:
        sign = -1 if found[1] == "-" else 1
        offset = dt.timedelta(hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0))
        return dt.timezone(sign * offset)
    try:
        return ZoneInfo(_OLD_NAMES.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"Unknown time zone: {name}") from error


def _representable(seconds: int) -> int:
    """A time with the same offset within the years that Python has: the calendar repeats after 400 years."""
    if _FIRST <= seconds <= _LAST:
        return seconds
    if seconds > _LAST:
        return (seconds - _LAST) % _CYCLE + _LAST - _CYCLE
    return (seconds - _FIRST) % _CYCLE + _FIRST


def to_local(nanos: int, zone: dt.tzinfo) -> int:
    """The local time of a point in time."""
    if zone is dt.timezone.utc:
        return nanos
    seconds = nanos // _SECOND
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=_representable(seconds))
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return nanos + int(offset.total_seconds()) * _SECOND


def to_instant(nanos: int, zone: dt.tzinfo) -> int:
    """The point in time of a local time; in a gap the time is moved on by its length, in an overlap it is the first."""
    if zone is dt.timezone.utc:
        return nanos
    local = (_EPOCH + dt.timedelta(seconds=_representable(nanos // _SECOND))).replace(tzinfo=zone)
    offset = local.utcoffset()
    assert offset is not None
    return nanos - int(offset.total_seconds()) * _SECOND


def to_last_instant(nanos: int, zone: dt.tzinfo) -> int:
    """The same, but in an overlap the last point in time, as Java's older calendars have it."""
    if zone is dt.timezone.utc:
        return nanos
    local = (_EPOCH + dt.timedelta(seconds=_representable(nanos // _SECOND))).replace(tzinfo=zone)
    offsets = [local.replace(fold=fold).utcoffset() for fold in (0, 1)]
    return nanos - min(int(offset.total_seconds()) for offset in offsets if offset is not None) * _SECOND
