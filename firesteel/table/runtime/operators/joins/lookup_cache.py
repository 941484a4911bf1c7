"""Cache of the rows that lookups have found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.connector.lookups import LookupCacheOptions

__all__ = ["LookupCache"]

Rows = Sequence[tuple[Any, ...]]
_ROWS, _WRITTEN, _READ = range(3)


class LookupCache:
    """Rows by key; those read longest ago go first if there are too many."""

    def __init__(self, options: LookupCacheOptions, clock: Callable[[], int]):
        self._options = options
        self._clock = clock
        self._entries: dict[Any, list[Any]] = {}

    def get(self, key: Any) -> Rows | None:
        """The rows of a key; None if they are not known, or known for too long."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        now, options = self._clock(), self._options
        written, read = options.expire_after_write_ms, options.expire_after_access_ms
        if (written is not None and now - entry[_WRITTEN] >= written) or (
            read is not None and now - entry[_READ] >= read
        ):
            del self._entries[key]
            return None
        entry[_READ] = now
        if options.max_rows is not None:
            # dictionaries are ordered: the first entry is the one read longest ago
            self._entries[key] = self._entries.pop(key)
        rows: Rows = entry[_ROWS]
        return rows

    def put(self, key: Any, rows: Rows) -> None:
        """Keeps the rows of a key."""
        if not rows and not self._options.caches_missing_keys:
            return
        now = self._clock()
        self._entries.pop(key, None)
        self._entries[key] = [rows, now, now]
        if self._options.max_rows is not None:
            while len(self._entries) > self._options.max_rows:
                del self._entries[next(iter(self._entries))]

    def __len__(self) -> int:
        return len(self._entries)
