"""The windows of window functions, and their arithmetic. All times are in milliseconds.

Time is cut into *slices* in which all times belong to the same windows; the end of a slice names it. A window is named
by its end as well: no two windows of one function end at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

__all__ = [
    "AlignedWindow",
    "CumulativeWindow",
    "HoppingWindow",
    "SessionWindow",
    "TumblingWindow",
    "Window",
    "interval_text",
]

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def interval_text(millis: int) -> str:
    """A number of milliseconds as EXPLAIN shows it.

    >>> interval_text(90_000), interval_text(600_000), interval_text(1500)
    ('90 s', '10 min', '1500 ms')
    """
    return next((f"{millis // size} {unit}" for size, unit in _UNITS if millis % size == 0), f"{millis} ms")


@dataclass(frozen=True)
class Window:
    """Windows of one kind and size."""

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class AlignedWindow(Window):
    """Windows that are the same for all keys."""

    size: int
    offset: int = 0

    @property
    def slice(self) -> int:
        """The length of slices."""
        return self.size

    def slice_ends(self, times: Any) -> Any:
        """The ends of the slices of times, a number or an array of them."""
        width = self.slice
        return times - (times - self.offset) % width + width

    def window_start(self, end: Any) -> Any:
        """Where the window with an end starts."""
        return end - self.size

    def first_end(self, slice_end: Any) -> Any:
        """The end of the first window that has a slice."""
        return slice_end

    def last_end(self, slice_end: Any) -> Any:
        """The end of the last window that has a slice; before that of the slice if there is none."""
        return slice_end

    @property
    def step(self) -> int:
        """The time from the end of a window to that of the next one which has slices in common with it."""
        return self.size

    @property
    def is_sliced(self) -> bool:
        """Whether a window has more than one slice, or a slice more than one window."""
        return True

    def _options(self) -> str:
        return f", offset=[{interval_text(self.offset)}]" if self.offset else ""


@dataclass(frozen=True)
class TumblingWindow(AlignedWindow):
    """One window after the other.

    >>> TumblingWindow(10).slice_ends(25), TumblingWindow(10, 3).slice_ends(-8)
    (30, -7)
    """

    @property
    def is_sliced(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"TUMBLE(size=[{interval_text(self.size)}]{self._options()})"


@dataclass(frozen=True)
class HoppingWindow(AlignedWindow):
    """Windows that start after each slide.

    >>> window = HoppingWindow(size=10, slide=5)
    >>> window.slice_ends(12), window.first_end(15), window.last_end(15)
    (15, 15, 20)
    """

    slide: int = 1

    @property
    def slice(self) -> int:
        return gcd(self.size, self.slide)

    @property
    def step(self) -> int:
        return self.slide

    def first_end(self, slice_end: Any) -> Any:
        base = self.offset + self.size
        return base - (base - slice_end) // self.slide * self.slide

    def last_end(self, slice_end: Any) -> Any:
        start = slice_end - self.slice
        return start - (start - self.offset) % self.slide + self.size

    def __str__(self) -> str:
        sizes = f"size=[{interval_text(self.size)}], slide=[{interval_text(self.slide)}]"
        return f"HOP({sizes}{self._options()})"


@dataclass(frozen=True)
class CumulativeWindow(AlignedWindow):
    """Windows that start together and grow by a step up to the size.

    >>> window = CumulativeWindow(size=20, step_size=5)
    >>> window.slice_ends(12), window.window_start(15), window.first_end(15), window.last_end(15)
    (15, 0, 15, 20)
    """

    step_size: int = 1

    @property
    def slice(self) -> int:
        return self.step_size

    @property
    def step(self) -> int:
        return self.step_size

    def window_start(self, end: Any) -> Any:
        inside = end - self.step_size
        return inside - (inside - self.offset) % self.size

    def last_end(self, slice_end: Any) -> Any:
        return self.window_start(slice_end) + self.size

    def __str__(self) -> str:
        sizes = f"max_size=[{interval_text(self.size)}], step=[{interval_text(self.step_size)}]"
        return f"CUMULATE({sizes}{self._options()})"


@dataclass(frozen=True)
class SessionWindow(Window):
    """For each key, times with less than a gap between them."""

    gap: int

    def __str__(self) -> str:
        return f"SESSION(gap=[{interval_text(self.gap)}])"
