"""Split cursor: one open split of an IteratorSource, its iterator and its position."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from firesteel.connectors.base.iterator_split import IteratorSourceError, IteratorSourceSplit
from firesteel.filesystem.stores import current_stores
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.connectors.base.iterator_source import IteratorSource

__all__ = ["SplitCursor", "open_cursor"]

MIN_WAIT_S = 0.001
MAX_WAIT_S = 0.02
_ROOM_WAIT_S = 0.1


def open_cursor(source: IteratorSource, split: IteratorSourceSplit, copies: bool = True) -> SplitCursor:
    """Begins to read a split; with ``copies`` the iterator may change what it has yielded."""
    return (_ThreadedCursor if source.blocking else _InlineCursor)(source, split, copies)


class SplitCursor(ABC):
    """A split that is being read. ``position`` is behind the last record that was taken."""

    def __init__(self, source: IteratorSource, split: IteratorSourceSplit, copies: bool) -> None:
        self.split = split
        self.position = split.position
        self.ended = False
        self.available_at = 0.0
        """When it is worth looking again, by time.monotonic()."""
        self._source = source
        self._can_rewind = source.can_rewind()
        self._copies = copies

    def snapshot(self) -> IteratorSourceSplit:
        """The split from here on."""
        return IteratorSourceSplit(self.split.split_id, self.split.split, self.position)

    def take(self, limit: int) -> tuple[Sequence[Any], Sequence[int] | None]:
        """The next records, up to a limit, with their timestamps if they have any; the position is behind them."""
        items = self._take(limit)
        if not items:
            return (), None
        try:
            if type(items[0]) is not tuple:
                raise TypeError
            values, positions, *timestamps = zip(*items, strict=True)
            if len(timestamps) > 1:
                raise ValueError
        except (TypeError, ValueError):
            raise IteratorSourceError(
                type(self._source).__name__,
                f"read() yielded {_odd_one(items)!r} for split '{self.split.split_id}'.",
                hint="It must yield (record, position) or (record, position, timestamp), the same throughout, or None.",
            ) from None
        if positions[-1] is None and self._can_rewind:
            raise IteratorSourceError(
                type(self._source).__name__,
                f"read() yielded {items[-1]!r} for split '{self.split.split_id}', with None as its position.",
                hint="None is the start of a split. A source that cannot rewind must return False from can_rewind().",
            )
        self.position = positions[-1]
        return values, timestamps[0] if timestamps else None

    @property
    def pending(self) -> int | None:
        """How many records can be taken, if that is known."""
        return None

    @abstractmethod
    def _take(self, limit: int) -> list[Any]:
        """What the iterator has yielded, without None; sets ``ended``, or ``available_at`` if there is nothing."""

    @abstractmethod
    def stop(self) -> None:
        """Signals a thread to end."""

    @abstractmethod
    def close(self, deadline: float) -> None:
        """Closes the iterator; a thread must have ended by the deadline, by time.monotonic()."""


def _odd_one(items: list[Any]) -> Any:
    """The first item that is not like those before it."""
    lengths = [len(item) if type(item) is tuple else -1 for item in items]
    for item, length in zip(items, lengths, strict=True):
        if length not in (2, 3) or length != lengths[0]:
            return item
    return items[0]


def _close(iterator: Iterator[Any]) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


class _InlineCursor(SplitCursor):
    """Runs the iterator whenever the job polls."""

    def __init__(self, source: IteratorSource, split: IteratorSourceSplit, copies: bool) -> None:
        super().__init__(source, split, copies)
        self._iterator = iter(source.read(split.split, split.position))

    def _take(self, limit: int) -> list[Any]:
        if time.monotonic() < self.available_at:
            return []
        items: list[Any] = []
        for item in self._iterator:
            if item is None:
                self.available_at = time.monotonic() + self._source.poll_interval_ms / 1000
                return items
            items.append(copy_value(item) if self._copies else item)
            if len(items) >= limit:
                return items
        self.ended = True
        return items

    def stop(self) -> None:
        pass

    def close(self, deadline: float) -> None:
        _close(self._iterator)


class _ThreadedCursor(SplitCursor):
    """Runs the iterator in a thread, which is at most ``queue_size`` records ahead of the job.

    The thread appends one record at a time, so that none waits for others; the two ends share the queue without a
    lock, since both ends of a deque may be used at once.
    """

    def __init__(self, source: IteratorSource, split: IteratorSourceSplit, copies: bool) -> None:
        super().__init__(source, split, copies)
        self._queue: deque[Any] = deque()
        self._stopped = threading.Event()
        self._has_room = threading.Event()
        self._error: BaseException | None = None
        self._has_run = False
        self._wait_s = MIN_WAIT_S
        self._thread = threading.Thread(
            target=current_stores().bind(self._run),
            name=f"firesteel-{type(source).__name__}-{split.split_id}",
            daemon=True,
        )
        self._thread.start()

    @property
    def pending(self) -> int | None:
        return len(self._queue)

    def _take(self, limit: int) -> list[Any]:
        # asked before the queue is looked at: what was appended until then is seen
        has_run = self._has_run
        queue = self._queue
        items = [queue.popleft() for _ in range(min(limit, len(queue)))]
        if len(queue) <= self._source.queue_size // 2:
            self._has_room.set()
        if items:
            self._wait_s = MIN_WAIT_S
            self.available_at = 0.0
        elif has_run:
            if self._error is not None:
                raise self._error
            self.ended = True
        else:
            self.available_at = time.monotonic() + self._wait_s
            self._wait_s = min(self._wait_s * 2, MAX_WAIT_S)
        return items

    def stop(self) -> None:
        self._stopped.set()
        self._has_room.set()

    def close(self, deadline: float) -> None:
        self.stop()
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        if self._thread.is_alive():
            raise IteratorSourceError(
                type(self._source).__name__,
                f"read() of split '{self.split.split_id}' did not yield for {self._source.close_timeout_s:g} s, so it "
                "could not be stopped.",
                hint="Let the client's call time out after a second at most, and yield None.",
            )

    def _run(self) -> None:
        try:
            iterator = iter(self._source.read(self.split.split, self.split.position))
            try:
                self._drain(iterator)
            finally:
                with suppress(GeneratorExit):
                    _close(iterator)
        except BaseException as error:  # noqa: BLE001 - raised in the task's own thread
            self._error = error
        finally:
            self._has_run = True

    def _drain(self, iterator: Iterator[Any]) -> None:
        queue, size, stopped = self._queue, self._source.queue_size, self._stopped
        interval = self._source.poll_interval_ms / 1000
        for item in iterator:
            if stopped.is_set():
                return
            if item is None:
                stopped.wait(interval)
                continue
            queue.append(copy_value(item) if self._copies else item)
            while len(queue) >= size and not stopped.is_set():
                self._has_room.clear()
                if len(queue) >= size:
                    # also looks again by itself: a wakeup between the two lines above would be lost
                    self._has_room.wait(_ROOM_WAIT_S)
