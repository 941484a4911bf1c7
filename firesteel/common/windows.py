"""Windows, merging of time windows, and trigger results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CountWindow", "GlobalWindow", "TimeWindow", "TriggerResult", "Window"]

_MAX_LONG: Final = (1 << 63) - 1


class Window(ABC):
    """A bucket of records; windows are values, compared and hashed by what they stand for."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last timestamp that belongs to the window."""


class TimeWindow(Window):
    """The time from ``start`` (included) to ``end`` (excluded), in milliseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int):
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """The last timestamp that belongs to the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window a timestamp falls into, where windows start at offset + n * window_size.

        >>> TimeWindow.get_window_start_with_offset(-1, 0, 10)
        -10
        """
        # Python's % is never negative for a positive divisor, so timestamps before 1970 need no correction
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: Any) -> None:
        """Finds windows that overlap or touch, and calls ``callback.merge(to_be_merged, merge_result)``.

        It is called once per group: a set of at least two windows, and the window that covers them.
        """
        ordered = sorted(windows)
        groups: list[tuple[TimeWindow, set[TimeWindow]]] = []
        for candidate in ordered:
            if groups and groups[-1][0].intersects(candidate):
                covering, members = groups[-1]
                members.add(candidate)
                groups[-1] = (covering.cover(candidate), members)
            else:
                groups.append((candidate, {candidate}))
        for covering, members in groups:
            if len(members) > 1:
                callback.merge(members, covering)

    def __hash__(self) -> int:
        return self.start * 31 + self.end

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and self.end == other.end and self.start == other.start

    def __lt__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return self.start < other.start or (self.start == other.start and self.end < other.end)

    def __le__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return self.start < other.start or (self.start == other.start and self.end <= other.end)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self.start, self.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """The id-th window of a key, where windows are cut by the number of records."""

    __slots__ = ("id",)

    def __init__(self, id: int):
        self.id = id

    def max_timestamp(self) -> int:
        """The maximum timestamp."""
        return _MAX_LONG

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return other.__class__ is self.__class__ and self.id == other.id

    def __lt__(self, other: CountWindow) -> bool:
        return self.id < other.id if isinstance(other, CountWindow) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self.id,)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window that holds everything; there is a single instance."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """The single instance."""
        return _the_global_window or super().__new__(cls)  # type: ignore[return-value]

    @staticmethod
    def get() -> GlobalWindow:
        """The single instance."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """The end of time."""
        return _MAX_LONG

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return other.__class__ is GlobalWindow

    def __lt__(self, other: GlobalWindow) -> bool:
        return False if isinstance(other, GlobalWindow) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


_the_global_window: GlobalWindow | None = None
_the_global_window = GlobalWindow()


class TriggerResult(Enum):
    """The result of a trigger: fire (emit the window), purge (clear it), both or neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    _fire: bool
    _purge: bool

    def __init__(self, fire: bool, purge: bool):
        # read once per record: a plain attribute is much cheaper than Enum.value
        self._fire = fire
        self._purge = purge

    def is_fire(self) -> bool:
        """Whether the window's result is emitted."""
        return self._fire

    def is_purge(self) -> bool:
        """Whether the window's contents are dropped."""
        return self._purge
