"""Manual clock: processing time that a test advances."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias

__all__ = ["ClockFollower", "FakeClock"]


_Callback: TypeAlias = tuple[int, int, Callable[[int], None]]
"""When it is due, its number, and what to call with the time."""


class ClockFollower(Protocol):
    """A running job that goes by a fake clock."""

    def settle(self) -> None:
        """Waits until the job has done all it can do at the present time."""
        ...

    def wakeup(self) -> None:
        """The time has changed."""
        ...


class FakeClock:
    """Processing time that stands still until a test moves it.

    Give it to :func:`~firesteel.testing.test_environment` or to a harness. Timers, processing-time windows,
    time-to-live, idleness and the periodic watermarks of the job then go by it, so a test of an hour takes
    milliseconds and never depends on how fast the machine is.

    >>> clock = FakeClock()
    >>> clock.advance(1500)
    >>> clock.now
    1500
    """

    def __init__(self, now: int = 0):
        self._now = now
        self._stepped = 0
        self._sequence = 0
        self._callbacks: list[_Callback] = []
        self._delays: list[_Callback] = []
        self._followers: list[ClockFollower] = []
        self._lock = threading.Lock()

    @property
    def now(self) -> int:
        """The time in milliseconds."""
        return self._now

    def now_ms(self) -> int:
        """The time in milliseconds, as a job asks for it."""
        return self._now

    def monotonic_ms(self) -> int:
        """The time that delays go by: it advances with the clock, but is not changed by :meth:`step`."""
        return self._now - self._stepped

    def __call__(self) -> int:
        """The time in milliseconds."""
        return self._now

    def advance(self, milliseconds: int) -> None:
        """Moves the clock forward; see :meth:`advance_to`."""
        if milliseconds < 0:
            raise ValueError(f"A clock does not go back: advance({milliseconds}).")
        self.advance_to(self._now + milliseconds)

    def advance_to(self, timestamp: int) -> None:
        """Moves the clock to a time; one that has passed changes nothing.

        A running job first does all it can do at the old time, then sees the new one at once and has reacted
        to it when this returns: every timer that is due has fired, in the order of their times. A harness
        stops at each time it waits for on the way.
        """
        followers = self._settled_followers()
        while (following := self._next_callback(timestamp)) is not None:
            due, callback = following
            self._now = max(self._now, due)
            callback(self._now)
        self._now = max(self._now, timestamp)
        for follower in followers:
            follower.wakeup()
        for follower in followers:
            follower.settle()

    def step(self, milliseconds: int) -> None:
        """Sets the wall clock back or forward, as an administrator or NTP does: no time passes.

        Delays, such as the interval of watermarks, go on as if nothing had happened. Processing-time timers go by the
        new time once the clock is advanced by up to a second.
        """
        self._settled_followers()
        self._now += milliseconds
        self._stepped += milliseconds

    def settle(self) -> None:
        """Waits until every job that goes by this clock has done all it can do before the clock is moved."""
        self._settled_followers()

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back when the clock is moved to or past the timestamp."""
        self._sequence += 1
        heapq.heappush(self._callbacks, (timestamp, self._sequence, callback))

    def schedule_after(self, milliseconds: int, callback: Callable[[], None]) -> None:
        """Calls back when the clock has been advanced so far; :meth:`step` has no effect on it."""
        self._sequence += 1
        due = self.monotonic_ms() + milliseconds
        heapq.heappush(self._delays, (due, self._sequence, lambda _now: callback()))

    def _next_callback(self, timestamp: int) -> tuple[int, Callable[[int], None]] | None:
        """Takes the callback that comes next on the way to a time, with its own."""
        first = min(
            ((heap[0][0] + offset, heap[0][1], heap) for heap, offset in self._heaps() if heap),
            default=None,
        )
        if first is None or first[0] > timestamp:
            return None
        return first[0], heapq.heappop(first[2])[2]

    def _heaps(self) -> tuple[tuple[list[_Callback], int], ...]:
        return (self._callbacks, 0), (self._delays, self._stepped)

    def follow(self, follower: ClockFollower) -> None:
        """Lets a job know from now on when the clock moves."""
        with self._lock:
            self._followers.append(follower)

    def unfollow(self, follower: ClockFollower) -> None:
        """The job is over."""
        with self._lock:
            self._followers.remove(follower)

    def _settled_followers(self) -> list[ClockFollower]:
        with self._lock:
            followers = list(self._followers)
        for follower in followers:
            follower.settle()
        return followers

    def __repr__(self) -> str:
        return f"FakeClock({self._now})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A FakeClock stays with the test that moves it; a function that travels with the job reads the time "
            "from ctx.timer_service().current_processing_time()."
        )
