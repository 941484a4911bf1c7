"""Cache of all rows of a table that is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from firesteel.table.connector.lookups import FullCacheOptions

__all__ = ["FullLookupCache"]

Row = tuple[Any, ...]


class FullLookupCache:
    """Rows by key. They are read again when the next reload is due, before the batch that comes then."""

    def __init__(
        self, options: FullCacheOptions, key: Sequence[int], clock: Callable[[], int], read: Callable[[], Iterable[Row]]
    ) -> None:
        self._options = options
        self._key = tuple(key)
        self._clock = clock
        self._read = read
        self._rows: dict[Row, list[Row]] = {}
        self._due: int | None = None

    def refresh(self) -> None:
        """Reads all rows if they have not been read, or not for too long."""
        now = self._clock()
        if self._due is not None and now < self._due:
            return
        found: dict[Row, list[Row]] = {}
        for row in self._read():
            found.setdefault(tuple(row[index] for index in self._key), []).append(row)
        self._rows = found
        self._due = self._next(now)

    def get(self, key: Row) -> Sequence[Row]:
        """The rows of a key."""
        return self._rows.get(key, ())

    def _next(self, started: int) -> int:
        options = self._options
        if options.interval_ms is not None:
            return (started if options.is_fixed_rate else self._clock()) + options.interval_ms
        assert options.time is not None
        at = datetime.fromtimestamp(started / 1000, options.time.tzinfo)
        due = datetime.combine(at.date(), options.time)
        if due <= at:
            due += timedelta(days=options.days)
        return int(due.timestamp() * 1000)
