"""Records whose results have not been emitted yet, in the order of their arrival, with the borders between them.

A border is a watermark or a change of the idle status. It is emitted after the results of all records before it, and
before those of all records after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Border", "Call", "CallQueue", "Idle", "OrderedQueue", "UnorderedQueue", "WatermarkBorder"]


class Call:
    """One record, and its results once they are there."""

    __slots__ = ("emitted", "error", "has_timed_out", "is_done", "results", "segment", "task", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None):
        self.value = value
        self.timestamp = timestamp
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.is_done = False
        """Set by the event loop, once."""
        self.has_timed_out = False
        """Whether the coroutine was given up; a result that it still gives is ignored."""
        self.emitted = 0
        """How many of the results have been emitted: if there are others, a checkpoint keeps these, not the record."""
        self.segment: _Segment | None = None
        self.task: Any = None
        """The task of the event loop."""


@dataclass(frozen=True)
class WatermarkBorder:
    """A watermark."""

    timestamp: int


@dataclass(frozen=True)
class Idle:
    """The input became idle or active."""

    idle: bool


Border = WatermarkBorder | Idle


class CallQueue(ABC):
    """Calls and borders in order. ``len`` is the number of calls."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are neither calls nor borders."""

    @abstractmethod
    def add(self, calls: Iterable[Call]) -> None:
        """Adds calls behind everything else."""

    @abstractmethod
    def add_border(self, border: Border) -> None:
        """Adds a border behind everything else."""

    @abstractmethod
    def complete(self, call: Call) -> None:
        """Declares that the results of a call are there."""

    @property
    @abstractmethod
    def first(self) -> Call | Border | None:
        """What may be emitted next; None if that has to be waited for."""

    @abstractmethod
    def remove_first(self) -> None:
        """Removes what ``first`` returns."""

    @abstractmethod
    def __iter__(self) -> Iterator[Call | Border]:
        """All calls and borders, as they came."""


class OrderedQueue(CallQueue):
    """Results are emitted in the order of the records."""

    def __init__(self) -> None:
        self._items: deque[Call | Border] = deque()
        self._calls = 0

    def __len__(self) -> int:
        return self._calls

    @property
    def is_empty(self) -> bool:
        return not self._items

    def add(self, calls: Iterable[Call]) -> None:
        before = len(self._items)
        self._items.extend(calls)
        self._calls += len(self._items) - before

    def add_border(self, border: Border) -> None:
        if self._items and _replaces(border, self._items[-1]):
            self._items.pop()
        self._items.append(border)

    def complete(self, call: Call) -> None:
        """Nothing to do: the call itself says that it is done."""

    @property
    def first(self) -> Call | Border | None:
        if not self._items:
            return None
        item = self._items[0]
        return None if isinstance(item, Call) and not item.is_done else item

    def remove_first(self) -> None:
        if isinstance(self._items.popleft(), Call):
            self._calls -= 1

    def __iter__(self) -> Iterator[Call | Border]:
        return iter(self._items)


class _Segment:
    """The calls between two borders."""

    __slots__ = ("border", "calls", "done")

    def __init__(self) -> None:
        self.calls: dict[Call, None] = {}
        """Those that have not been emitted, in their order."""
        self.done: deque[Call] = deque()
        self.border: Border | None = None
        """What comes after them."""


class UnorderedQueue(CallQueue):
    """Results are emitted as they come, but not across borders."""

    def __init__(self) -> None:
        self._segments = deque([_Segment()])
        self._calls = 0

    def __len__(self) -> int:
        return self._calls

    @property
    def is_empty(self) -> bool:
        first = self._segments[0]
        return not first.calls and first.border is None

    def add(self, calls: Iterable[Call]) -> None:
        segment = self._segments[-1]
        before = len(segment.calls)
        for call in calls:
            call.segment = segment
            segment.calls[call] = None
        self._calls += len(segment.calls) - before

    def add_border(self, border: Border) -> None:
        segments = self._segments
        if len(segments) > 1 and not segments[-1].calls and _replaces(border, segments[-2].border):
            segments[-2].border = border
            return
        segments[-1].border = border
        segments.append(_Segment())

    def complete(self, call: Call) -> None:
        assert call.segment is not None
        call.segment.done.append(call)

    @property
    def first(self) -> Call | Border | None:
        segment = self._segments[0]
        if segment.done:
            return segment.done[0]
        return None if segment.calls else segment.border

    def remove_first(self) -> None:
        segment = self._segments[0]
        if segment.done:
            del segment.calls[segment.done.popleft()]
            self._calls -= 1
        else:
            self._segments.popleft()

    def __iter__(self) -> Iterator[Call | Border]:
        for segment in self._segments:
            yield from segment.calls
            if segment.border is not None:
                yield segment.border


def _replaces(border: Border, before: Call | Border | None) -> bool:
    """Whether a border makes the one directly before it superfluous."""
    return isinstance(border, WatermarkBorder) and isinstance(before, WatermarkBorder)
