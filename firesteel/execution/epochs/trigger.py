"""Epoch trigger: decides when the next epoch of a job begins.

Times are milliseconds of a clock that is never set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings, EpochTriggerKind
from firesteel.runtime.model.messages import TaskKey

__all__ = [
    "AvailableNowTrigger",
    "ContinuousTrigger",
    "EpochOutcome",
    "EpochTrigger",
    "IntervalTrigger",
    "create_epoch_trigger",
]

_MAX_IDLE_INTERVALS = 10
"""How many times the idle interval a job waits at most."""


@dataclass(frozen=True, slots=True)
class EpochOutcome:
    """What follows from an epoch for the time of the next one."""

    records: int = 0
    """What sources read."""
    dry: frozenset[TaskKey] = frozenset()
    """The subtasks of sources that have read all there was, or have ended."""
    has_backlog: bool = False
    """Whether a source's quota ended its reading."""
    next_timer: int | None = None
    """When the first processing-time timer is due, by the wall clock: see `EpochTrigger.timer_is_due`."""


class EpochTrigger:
    """Determines when the next epoch is ``due``. Common to all kinds: timers are on time."""

    def __init__(self, now: int):
        self.due = now
        """When the next epoch is to begin."""

    @property
    def is_over(self) -> bool:
        """Whether all has been done that was to be done, so that the job stops."""
        return False

    def epoch_began(self, now: int) -> None:
        """An epoch begins, due or not."""

    def epoch_ended(self, outcome: EpochOutcome, now: int) -> None:
        """An epoch is over, and its checkpoint complete."""
        raise NotImplementedError

    def epoch_failed(self, now: int) -> None:
        """An epoch is over, but not its checkpoint: the next one tries again."""
        raise NotImplementedError

    def task_has_work(self, task: TaskKey, now: int) -> None:
        """A task was given splits, or something else that may make it go on."""

    def source_is_ready(self, now: int) -> None:
        """The time has come at which a source expects more."""

    def timer_is_due(self, now: int) -> None:
        """A processing-time timer of a task is due."""
        self.due = min(self.due, now)


class ContinuousTrigger(EpochTrigger):
    """One epoch after the other while there is something to read.

    After one without, a timer, a source that knows when there is more, or something new for a task begins the next,
    and at the latest an interval that doubles each time.
    """

    def __init__(self, settings: EpochSettings, now: int):
        super().__init__(now)
        self._settings = settings
        self._idle = 0

    def epoch_ended(self, outcome: EpochOutcome, now: int) -> None:
        """At once, if the epoch has read anything."""
        if outcome.records or outcome.has_backlog:
            self._idle = 0
            self.due = now
            return
        self._wait(now)

    def epoch_failed(self, now: int) -> None:
        """Not at once: what is wrong may need time to pass."""
        self._wait(now)

    def _wait(self, now: int) -> None:
        interval = self._settings.idle_interval
        self.due = now + min(interval << min(self._idle, 8), interval * _MAX_IDLE_INTERVALS)
        self._idle += 1

    def task_has_work(self, task: TaskKey, now: int) -> None:
        """Now."""
        self._idle = 0
        self.due = min(self.due, now)

    def source_is_ready(self, now: int) -> None:
        """Now."""
        self.due = min(self.due, now)


class IntervalTrigger(EpochTrigger):
    """Epochs begin at multiples of an interval, counted from the first one; one that is late begins at once."""

    def __init__(self, settings: EpochSettings, now: int):
        super().__init__(now)
        self._interval = max(settings.interval, 1)
        self._tick = now
        self._read_nothing = True

    def epoch_began(self, now: int) -> None:
        """Uses up the multiples that have come: what was missed is made up for by one epoch."""
        if now >= self._tick:
            self._tick += (1 + (now - self._tick) // self._interval) * self._interval

    def epoch_ended(self, outcome: EpochOutcome, now: int) -> None:
        """At the next multiple."""
        self._read_nothing = not outcome.records
        self.due = self._tick

    def epoch_failed(self, now: int) -> None:
        """At the next multiple."""
        self.due = self._tick

    def task_has_work(self, task: TaskKey, now: int) -> None:
        """Now, if there was nothing to read before: readers get their first splits only when they have asked."""
        if self._read_nothing:
            self.due = min(self.due, now)


class AvailableNowTrigger(ContinuousTrigger):
    """One epoch after the other until each subtask of each source has, once, read all there was.

    What a source gets afterwards belongs to the next run, and so does what a timer does later.
    """

    def __init__(self, settings: EpochSettings, now: int, sources: Iterable[TaskKey]):
        super().__init__(settings, now)
        self._left = set(sources)

    @property
    def is_over(self) -> bool:
        """Whether all has been read."""
        return not self._left

    def epoch_ended(self, outcome: EpochOutcome, now: int) -> None:
        """At once, unless nothing is left."""
        self._left -= outcome.dry
        self.due = now

    def task_has_work(self, task: TaskKey, now: int) -> None:
        """Splits that it asked for belong to what was there."""
        self._left.add(task)
        super().task_has_work(task, now)


def create_epoch_trigger(settings: EpochSettings, now: int, sources: Iterable[TaskKey]) -> EpochTrigger:
    """The trigger that ``execution.epoch.trigger`` names."""
    if settings.trigger is EpochTriggerKind.INTERVAL:
        return IntervalTrigger(settings, now)
    if settings.trigger is EpochTriggerKind.AVAILABLE_NOW:
        return AvailableNowTrigger(settings, now, sources)
    return ContinuousTrigger(settings, now)
