"""Timer queue of the RocksDB backend: in memory, with changes written to a column family by the next snapshot."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.runtime.state.rocksdb.database import ColumnFamilyTable
from firesteel.runtime.state.rocksdb.keys import KeyEncoder
from firesteel.runtime.state.rocksdb.row_encoding import Timer, timer_row, timers_of
from firesteel.runtime.time.timers import TimerQueue, renumbered

__all__ = ["StoredTimerQueue"]

_END = b"\xff" * 16
_MAX_CHANGES = 5_000
"""Changes that wait for a snapshot at most: more would make the job stand still for long."""


class StoredTimerQueue(TimerQueue):
    """A timer queue with a table that has its timers as of the last snapshot or a little later.

    A timer that comes and goes between two snapshots, as most do, costs the table nothing unless there are very many.
    """

    __slots__ = ("_encoder", "_fresh", "_gone", "_open_table")

    def __init__(
        self,
        open_table: Callable[[], ColumnFamilyTable],
        restored: ColumnFamilyTable | None,
        encoder: KeyEncoder,
        *,
        merged: bool,
    ):
        """The table is opened with the first change; if it was restored, it has timers already.

        ``merged``: those are of several queues, each of which gave numbers of its own.
        """
        rows = () if restored is None else restored.scan(b"", _END)
        stored = {timer: number for _group, timer, number in timers_of(rows)}
        super().__init__(renumbered(stored) if merged else stored)
        self._open_table = open_table
        self._encoder = encoder
        self._fresh: set[Timer] = set(stored) if merged else set()
        self._gone: set[Timer] = set()
        self.store()

    def add(self, timestamp: int, key: Any, namespace: Any) -> bool:
        """Adds a timer; False if it is there already."""
        timer = (timestamp, key, namespace)
        if timer in self.live:
            return False
        self._sequence += 1
        self.live[timer] = self._sequence
        heapq.heappush(self._heap, (timestamp, self._sequence, key, namespace))
        self._fresh.add(timer)
        if len(self._fresh) >= _MAX_CHANGES:
            self.store()
        return True

    def remove(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Removes a timer if it is there."""
        timer = (timestamp, key, namespace)
        if self.live.pop(timer, None) is not None:
            self._forget(timer)
            self.compact()

    def pop_due(self, now: int) -> Timer | None:
        """Removes and returns the first timer at or before now."""
        timer = super().pop_due(now)
        if timer is not None:
            self._forget(timer)
        return timer

    def store(self) -> None:
        """Writes what changed since the last call to the table."""
        if self._gone or self._fresh:
            self._open_table().change(self._changes())
            self._fresh, self._gone = set(), set()

    def _changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        encoder, live = self._encoder, self.live
        for timer in self._gone:
            yield timer_row(encoder, timer, 0)[0], None
        for timer in self._fresh:
            yield timer_row(encoder, timer, live[timer])

    def _forget(self, timer: Timer) -> None:
        # an old timer that was removed and added again stays among the gone ones: the table still has it
        if timer in self._fresh:
            self._fresh.remove(timer)
        else:
            self._gone.add(timer)
            if len(self._gone) >= _MAX_CHANGES:
                self.store()
