"""FLOOR and CEIL of dates and times to a unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.table.bound.nodes import Call
from firesteel.table.bound.session import Session
from firesteel.table.values.calendar import add_months, civil, day_number
from firesteel.table.values.zones import find_zone, to_local
from firesteel.types import logical as t

__all__ = ["round_temporal"]

_DAY = 86_400_000_000_000
_NANOS = {
    "DAY": _DAY,
    "HOUR": 3_600_000_000_000,
    "MINUTE": 60_000_000_000,
    "SECOND": 1_000_000_000,
    "MILLISECOND": 1_000_000,
    "MICROSECOND": 1000,
    "NANOSECOND": 1,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200, "MILLENNIUM": 12000}


def _floor_days(days: int, unit: str) -> int:
    if unit == "WEEK":
        return days - (days + 4) % 7  # weeks start on Sunday
    year, month, _ = civil(days)
    months = _MONTHS[unit]
    if months >= 1200:  # the first century begins with the year 1
        years = months // 12
        return day_number((year - 1) // years * years + 1, 1, 1)
    start = ((year * 12 + month - 1) // months) * months
    return day_number(start // 12, start % 12 + 1, 1)


def _ceil_days(days: int, unit: str) -> int:
    floor = _floor_days(days, unit)
    if floor == days and unit != "DECADE":  # Flink takes the next one even then
        return days
    return floor + 7 if unit == "WEEK" else add_months(floor, _MONTHS[unit])


def _round_nanos(nanos: int, unit: str, up: bool) -> int:
    size = _NANOS.get(unit)
    if size is not None:
        return -(-nanos // size) * size if up else nanos // size * size
    days, rest = divmod(nanos, _DAY)
    if unit == "DECADE" or (not up and unit in _MONTHS):
        if days < 0:
            days = -(-(nanos // 10**6) // 86_400_000)  # Flink counts days before 1970 towards it
        return (_ceil_days if up else _floor_days)(days, unit) * _DAY
    if not up:
        return _floor_days(days, unit) * _DAY
    return _ceil_days(days + (1 if rest else 0), unit) * _DAY


def round_temporal(call: Call, up: bool, session: Session) -> Callable[[int], Any]:
    """The row body of FLOOR or, upwards, CEIL."""
    unit = call.symbols[0]
    match call.arguments[0].type:
        case t.DateType():
            if unit in _NANOS:
                return lambda days: days
            return lambda days: (_ceil_days if up else _floor_days)(days, unit)
        case t.TimeType():
            size = _NANOS[unit] // 1_000_000 if unit in _NANOS else 1
            return lambda millis: (-(-millis // size) if up else millis // size) * size
        case t.LocalZonedTimestampType():
            return _round_instants(unit, up, session)
    return lambda nanos: _round_nanos(nanos, unit, up)


def _round_instants(unit: str, up: bool, session: Session) -> Callable[[int], Any]:
    """Rounds local times. The result has the offset of the argument, as in Flink, also if clocks change between."""
    zone = find_zone(session.local_time_zone)

    def body(nanos: int) -> int:
        local = to_local(nanos, zone)
        return _round_nanos(local, unit, up) - local + nanos

    return body
