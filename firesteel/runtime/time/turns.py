"""Time slices: bounds how long one task of a slot occupies the mailbox.

A turn should end after ``MAX_TURN_S``, so that barriers, timers, mails and the other tasks need not wait any longer, or
with the record or timer that is being processed then. How many records that allows is not known beforehand: a function
may become slow in the middle of a batch. So a thread looks at the turns and ends those that take too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firesteel.process.concurrency import BackgroundThread, Concurrency

__all__ = ["CUTTABLE", "MAX_TURN_S", "Turn", "TurnWatch"]

MAX_TURN_S = 0.05
"""How long a turn may take."""
CUTTABLE = (list, range)
"""Records in one of these can be cut short: see Turn."""
_POLL_INTERVAL_S = 0.02
"""How often the watch looks at the turns."""
_IDLE_POLLS_BEFORE_SLEEP = 50
"""The watch sleeps until it is woken if it saw no turn so many times in a row."""
_JOIN_TIMEOUT_S = 5.0


class Turn:
    """The present turn of a task.

    A loop over records reads them from ``cursor``, an iterator over a list or a range. ``end`` moves the records that
    are left from there to ``rest``, so the loop ends as if the batch had no more, and pays nothing for being
    interruptible. Another thread can do that at any time: extending a list by such an iterator is one step for the
    interpreter, so each record goes either to the loop or to ``rest``. Code without a cursor checks
    ``is_over``.
    """

    __slots__ = ("cursor", "is_full", "is_over", "is_whole", "rest", "started", "watch")

    def __init__(self) -> None:
        self.watch: TurnWatch | None = None
        """Who ends the turn, unless somebody else does."""
        self.started = 0.0
        """0 between turns."""
        self.is_over = False
        self.is_full = False
        """Whether the turn has already been ended because an output was full; it may be over for another reason."""
        self.is_whole = False
        """Whether the records under way must all be processed in this turn."""
        self.cursor: Iterator[Any] | None = None
        self.rest: list[Any] = []

    def begin(self, now: float) -> None:
        self.is_over = False
        self.is_full = False
        self.started = now
        # after that: the watch falls asleep only if it sees no turn
        if self.watch is not None and self.watch.is_asleep:
            self.watch.wake()

    def finish(self) -> None:
        self.started = 0.0
        self.is_over = False
        self.cursor = None

    def take_rest(self) -> list[Any]:
        """The records that were taken from the loop that has just ended; most often none."""
        self.cursor = None
        rest = self.rest
        if rest:
            self.rest = []
        return rest

    def end(self) -> None:
        """Ends the turn after the record or timer under way; may be called from any thread."""
        self.is_over = True
        cursor = self.cursor
        if cursor is not None:
            self.rest.extend(cursor)

    def end_if_long(self, now: float) -> None:
        """Ends the turn if it has taken its time."""
        started = self.started
        if started and now - started > MAX_TURN_S:
            self.end()


class TurnWatch:
    """Ends the turns of a slot that take too long, in a thread beside the mailbox."""

    def __init__(self, turns: Sequence[Turn], concurrency: Concurrency):
        self._turns = turns
        for turn in turns:
            turn.watch = self
        self._monotonic = concurrency.monotonic
        self._woken = concurrency.event()
        self._closed = concurrency.event()
        self.is_asleep = False
        """Whether ``wake`` has to be called when a turn begins."""
        self._thread: BackgroundThread = concurrency.start(self._run, name="firesteel-turn-watch")

    def wake(self) -> None:
        """A turn has begun after a long time without any."""
        self.is_asleep = False
        self._woken.set()

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        self._woken.set()
        self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        idle = 0
        while not self._closed.wait(_POLL_INTERVAL_S):
            if not any(turn.started for turn in self._turns):
                idle += 1
                if idle >= _IDLE_POLLS_BEFORE_SLEEP:
                    self._sleep()
                    idle = 0
                continue
            idle = 0
            now = self._monotonic()
            for turn in self._turns:
                turn.end_if_long(now)

    def _sleep(self) -> None:
        self._woken.clear()
        self.is_asleep = True
        # a turn that began before that cannot have seen it
        if not any(turn.started for turn in self._turns) and not self._closed.is_set():
            self._woken.wait()
        self.is_asleep = False
