"""How much a source may read in an epoch, so that the epoch takes as long as it should: figures in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from firesteel.runtime.messages import TaskKey

__all__ = ["AdmissionControl", "SourceLoad", "SplitRequests"]

_START = 20_000
_GROWTH = 4
_LIGHT = 0.05
"""An epoch with less than this part of the records it might have had tells what an epoch costs without any."""
_LEAST_ROOM = 0.25
"""This part of an epoch is for records even where one without any takes longer than the target."""
_FEWER = 0.7
"""An epoch with less than this part of another's records tells what part of the time is not due to records."""
_MOST_SPLITS = 32


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """What one subtask of a source read in an epoch."""

    records: int
    used_up: bool
    """Whether its credits ended the reading, so that there may be more."""


class AdmissionControl:
    """Credits for every subtask of every source: so many records may it read in the next epoch.

    An epoch takes a fixed time, and some time for each record: the first is learned from epochs with hardly any
    records, the second from the others. The credits are what fits into the target then, shared by the subtasks that
    had more to read than they might. They begin small, grow at most fourfold from one epoch to the next, and shrink at
    once when an epoch took far too long. They do not grow by epochs in which there was little to read.

    >>> control = AdmissionControl(target_ms=1000)
    >>> control.epoch_ended(200, [SourceLoad(0, False)])
    >>> control.epoch_ended(300, [SourceLoad(20_000, True)])
    >>> control.credits
    80000
    """

    def __init__(self, target_ms: int, max_records: int | None = None):
        self._target = max(target_ms, 1)
        self._most = max_records
        self._fixed: float | None = None
        self._cost: float | None = None
        self._other = (0, 0.0)
        """Records and duration of an earlier epoch that had others than those since."""
        self.credits = self._limited(_START)

    @property
    def fixed_ms(self) -> int:
        """What an epoch costs whatever it reads, as far as is known."""
        return round(self._fixed or 0.0)

    def epoch_ended(self, duration_ms: float, loads: Sequence[SourceLoad]) -> None:
        """Learns from an epoch of the usual kind: not one in which state had to be loaded."""
        duration = max(duration_ms, 0.1)
        total = sum(load.records for load in loads)
        if not total or (total < _LIGHT * self.credits * len(loads) and not any(load.used_up for load in loads)):
            self._learn_fixed(duration)
            return
        if self._fixed is not None:
            # nothing that lasts longer than a whole epoch can be a part of it
            self._fixed = min(self._fixed, duration)
        self._compare(duration, total)
        self._learn_cost(duration, total)
        assert self._cost is not None
        sharing = sum(load.used_up for load in loads) or sum(load.records > 0 for load in loads)
        fixed = self._fixed or 0.0
        room = max(self._target - fixed, max(self._target, fixed) * _LEAST_ROOM)
        wanted = room / self._cost / sharing
        if not any(load.used_up for load in loads):
            wanted = self.credits if duration <= self._target else min(wanted, self.credits)
        self.credits = self._limited(min(wanted, self.credits * _GROWTH))

    def _learn_fixed(self, duration: float) -> None:
        if self._fixed is None:
            self._fixed = duration
            self._cost = None  # held the fixed one too
        else:
            # a machine that stops for a moment is no reason to believe in another cost
            self._fixed += 0.3 * (min(duration, 2 * self._fixed + 1) - self._fixed)

    def _compare(self, duration: float, total: int) -> None:
        """Where fewer records do not make epochs short enough, the rest of the time is no matter of records.

        Taken for their cost, it would make them ever fewer, without end.
        """
        records, lasted = self._other
        if _FEWER * records <= total <= records / _FEWER:
            return
        if total < records and duration > self._target:
            slope = max(lasted - duration, 0.0) / (records - total)
            fixed = max(duration - slope * total, 0.0)
            if self._fixed is None or self._fixed < fixed:
                self._fixed = (fixed + (self._fixed or 0.0)) / 2
        self._other = total, duration

    def _learn_cost(self, duration: float, total: int) -> None:
        fixed = self._fixed or 0.0
        measured = max(duration - fixed, 0.02 * duration) / total
        if self._cost is None or (duration > 1.5 * max(self._target, fixed) and measured > self._cost):
            self._cost = measured
        else:
            self._cost = sqrt(self._cost * measured)

    def _limited(self, credits: float) -> int:
        most = 1 << 62 if self._most is None else self._most
        return max(1, min(int(credits), most))


class SplitRequests:
    """How many splits to ask for when a reader asks for one.

    A reader that has read its splits can go on only in the next epoch. So the one that reads all of them each time gets
    twice as many the next time, and one whose credits do not suffice for what it has gets fewer.

    >>> requests = SplitRequests()
    >>> [requests.ask({("source", 0): 1}, frozenset()) for _ in range(3)][-1]
    [('source', 0), ('source', 0), ('source', 0), ('source', 0)]
    """

    def __init__(self) -> None:
        self._ahead: dict[TaskKey, int] = {}

    def ask(self, asked: Mapping[TaskKey, int], used_up: frozenset[TaskKey]) -> list[TaskKey]:
        """Who is to be given a split, in turns, given how many requests each reader made and who has more to read."""
        for task in used_up:
            self._ahead[task] = max(self._ahead.get(task, 1) // 2, 1)
        wanted = dict(asked)
        for task in asked:
            if task not in used_up:
                ahead = self._ahead.get(task, 1)
                wanted[task] = max(ahead, asked[task])
                self._ahead[task] = min(2 * ahead, _MOST_SPLITS)
        turns = range(max(wanted.values(), default=0))
        return [task for turn in turns for task, number in wanted.items() if turn < number]
