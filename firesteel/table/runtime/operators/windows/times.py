"""Times of windows: local ones, in which windows are aligned, and points in time, at which they end. Milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.table.values.zones import find_zone, to_instant, to_local
from firesteel.types.internal import arrow_type
from firesteel.types.logical import LocalZonedTimestampType, LogicalType

__all__ = ["WindowTimes", "timestamps"]

_QUARTER = 900_000
_HOUR = 3_600_000
_MILLI = 1_000_000


class WindowTimes:
    """Converts times for windows of a time attribute: TIMESTAMP_LTZ is local time in the zone of the session.

    >>> times = WindowTimes(LocalZonedTimestampType(3), "Europe/Berlin")
    >>> times.local(np.array([1711843199000, 1711846800000])).tolist()
    [1711846799000, 1711854000000]
    """

    def __init__(self, time_type: LogicalType, zone: str):
        self._type = time_type
        zoned = isinstance(time_type, LocalZonedTimestampType)
        found = find_zone(zone) if zoned else find_zone("UTC")
        self._zone = None if found is find_zone("UTC") else found

    def of_rows(self, batch: ColumnBatch, column: int) -> Any:
        """The local times of a time attribute, which cannot be null."""
        return self.local(rowtime_millis(ColumnBatch(batch.data, rowtime=column)))

    def local(self, times: Any) -> Any:
        """The local times of points in time."""
        zone = self._zone
        if zone is None or not len(times):
            return times
        # zones change at quarters of an hour; before 1970 at any second
        unit = _QUARTER if int(times.min()) >= 0 else 1000
        quarters = times // unit
        if quarters[0] == quarters[-1] and (quarters == quarters[0]).all():
            distinct, codes = quarters[:1], np.zeros(len(times), np.intp)
        else:
            distinct, codes = np.unique(quarters, return_inverse=True)
        moments = [moment * unit for moment in distinct.tolist()]
        shifts = np.array([to_local(moment * _MILLI, zone) // _MILLI - moment for moment in moments], np.int64)
        return times + shifts[codes]

    def local_one(self, time: int) -> int:
        """The local time of a point in time."""
        return time if self._zone is None else to_local(time * _MILLI, self._zone) // _MILLI

    def trigger(self, end: int) -> int:
        """When a window with a local end is over: at its last millisecond.

        Where clocks are set back, a local time that comes twice is the second one; where they are set on, one that
        does not come is the moment of the change.
        """
        last = end - 1
        if self._zone is None:
            return last
        first, second = (to_instant(time * _MILLI, self._zone) // _MILLI for time in (last, last + _HOUR))
        if second - first > _HOUR:
            return second - _HOUR
        return first - first % _HOUR if first == second else first

    def window_times(self, ends: Any) -> Any:
        """The column ``window_time`` of local ends."""
        last = ends - 1
        if self._zone is not None:
            distinct, codes = np.unique(last, return_inverse=True)
            instants = [to_instant(time * _MILLI, self._zone) // _MILLI for time in distinct.tolist()]
            last = np.array(instants, np.int64)[codes]
        return _column(last, arrow_type(self._type))


def timestamps(times: Any) -> Any:
    """A column TIMESTAMP(3) of local times."""
    return _column(times, pa.timestamp("ms"))


def _column(times: Any, type_: Any) -> Any:
    factor = {"s": 0.001, "ms": 1, "us": 1000, "ns": 1_000_000}[type_.unit]
    numbers = times // 1000 if factor < 1 else times * int(factor)
    return pa.array(np.ascontiguousarray(numbers, np.int64)).view(type_)
