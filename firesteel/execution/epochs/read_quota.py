"""Rate control of sources in epochs: how much a source may read so that an epoch meets its target duration."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from firesteel.runtime.model.messages import TaskKey

__all__ = ["ReadQuotaControl", "SourceLoad", "SplitRequests"]

_INITIAL_QUOTA = 20_000
_MAX_GROWTH = 4
_MAX_GROWTH_WHEN_LATE = 1.5
"""After an epoch that took longer than it should, however few its records seem to have been."""
_MIN_LOAD_SHARE = 0.05
"""An epoch with less than this part of the records it might have had does not show the cost of a record."""
_MAX_DEVIATION = 2
"""A cost that differs from the known one by more than this factor is believed at once, in both directions."""
_MIN_PART = 0.02
"""Records are taken to need at least this part of an epoch."""
_WINDOW_EPOCHS = 7
"""The number of epochs from which the fixed cost of an epoch is estimated."""
_MIN_RECORDS_RATIO = 1.2
"""The ratio of records from which two epochs show how the cost grows with records."""
_MIN_OVERHEAD_SHARE = 0.25
"""Where it is less than this part of the target, it does not matter how it grows."""
_MAX_OVERHEAD_FACTOR = 2
"""In the first epoch what is more than so many times the target is not taken for fixed."""
_PROBE_SHARE = 0.6
"""Where it matters and is not known, one epoch gets only this part of the quota."""
_MAX_SPLITS = 32


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """What one subtask of a source read in an epoch."""

    records: int
    used_up: bool
    """Whether its quota ended the reading, so that there may be more."""


class ReadQuotaControl:
    """The quota of every subtask of every source: how many records it may read in the next epoch.

    An epoch takes a fixed time, and some time for each record. Tasks report how long they were at records; the rest of
    the epoch is the fixed time, except for what grows with the number of records (`_Overhead`). The quota is what
    fits into the target besides the fixed time, shared by the subtasks that had more to read than they might. At least
    half of an epoch is for records: where the fixed time is more than half of the target, as on a busy machine, epochs
    take twice the fixed time. Fewer records would not make them much shorter, and the job would fall behind.

    The quota begins small, grows at most fourfold from one epoch to the next, and shrinks at once when an epoch took
    far too long. It does not grow by epochs in which there was little to read. Where the overhead is large and all
    epochs have had as many records, one gets fewer, to learn which part of the overhead is due to them.

    >>> control = ReadQuotaControl(target_ms=1000)
    >>> control.epoch_ended(300, 100, [SourceLoad(20_000, True)])
    >>> control.fixed_ms, control.quota
    (200, 80000)
    """

    def __init__(self, target_ms: int, max_records: int | None = None):
        self._target = max(target_ms, 1)
        self._max = max_records
        self._overhead = _Overhead(self._target)
        self._cost: float | None = None
        """Milliseconds that tasks are at a record."""
        self.quota = self._limited(_INITIAL_QUOTA)

    @property
    def fixed_ms(self) -> int:
        """The fixed cost of an epoch, as far as it is known."""
        return round(self._overhead.fixed)

    @property
    def duration_ms(self) -> int:
        """What an epoch should take: the target, or twice the fixed cost."""
        return max(self._target, 2 * self.fixed_ms)

    def resume(self, other: ReadQuotaControl, scale: float) -> None:
        """Continues with the estimates of an earlier attempt, with ``scale`` times the quota for each subtask.

        Of a large quota only a part is given at first: it may be the reason why that attempt has failed.
        """
        self._overhead.resume(other._overhead)
        self._cost = other._cost
        quota = other.quota * scale
        self.quota = self._limited(min(quota, max(_INITIAL_QUOTA, quota / _MAX_GROWTH)))

    def epoch_ended(self, duration_ms: float, records_ms: float, loads: Sequence[SourceLoad]) -> None:
        """Updates the estimates from an epoch of the usual kind: not one in which state had to be loaded.

        ``records_ms`` is the part of the duration in which tasks were at records.
        """
        duration = max(duration_ms, 0.1)
        total = sum(load.records for load in loads)
        spent = min(max(records_ms, _MIN_PART * duration), duration) if total else 0.0
        self._overhead.learn(total, duration - spent)
        used_up = sum(load.used_up for load in loads)
        if not total or (total < _MIN_LOAD_SHARE * self.quota * len(loads) and not used_up):
            return
        self._learn_cost(spent / total)
        assert self._cost is not None
        sharing = used_up or sum(load.records > 0 for load in loads)
        room = self.duration_ms - self._overhead.fixed
        wanted = room / (self._cost + self._overhead.per_record) / sharing
        if not used_up:
            wanted = self.quota if duration <= self.duration_ms else min(wanted, self.quota)
        growth = _MAX_GROWTH if duration <= self.duration_ms else _MAX_GROWTH_WHEN_LATE
        wanted = min(wanted, self.quota * growth)
        if self._overhead.is_uncertain and used_up and wanted > _PROBE_SHARE * self.quota:
            wanted = _PROBE_SHARE * self.quota
        self.quota = self._limited(wanted)

    def _learn_cost(self, measured: float) -> None:
        if self._cost is None or not self._cost / _MAX_DEVIATION <= measured <= self._cost * _MAX_DEVIATION:
            self._cost = measured
        else:
            self._cost = sqrt(self._cost * measured)

    def _limited(self, quota: float) -> int:
        most = 1 << 62 if self._max is None else self._max
        return max(1, min(int(quota), most))


class _Overhead:
    """What epochs take besides the time in which tasks are at records: a fixed time, and a part that grows with them.

    What is written at the end of an epoch, for example, or committed, may grow with the number of records. So a line is
    laid through the last few epochs. Its slope is the median of those between epochs with different numbers of records,
    so that one during which the machine stood still does not matter.
    """

    def __init__(self, target: float):
        self._target = target
        self._epochs: deque[tuple[int, float]] = deque(maxlen=_WINDOW_EPOCHS)
        self.fixed = 0.0
        self.per_record = 0.0

    def resume(self, other: _Overhead) -> None:
        """Continues with the estimates of another one."""
        self._epochs.extend(other._epochs)
        self.fixed, self.per_record = other.fixed, other.per_record

    @property
    def is_uncertain(self) -> bool:
        """Whether there is much of it, and no epoch with fewer records that shows whether they are the reason."""
        return median(ms for _, ms in self._epochs) > _MIN_OVERHEAD_SHARE * self._target and not self._slopes()

    def learn(self, records: int, ms: float) -> None:
        """Takes one more epoch into account."""
        self._epochs.append((records, ms))
        slopes = self._slopes()
        if slopes:
            self.per_record = max(median(slopes), 0.0)
        elif records and len(self._epochs) == 1:
            # nothing is known yet, and so much of it is rather due to the records
            self.per_record = max(ms - _MAX_OVERHEAD_FACTOR * self._target, 0.0) / records
        self.fixed = max(median(ms - self.per_record * records for records, ms in self._epochs), 0.0)

    def _slopes(self) -> list[float]:
        return [
            (ms_of_more - ms_of_fewer) / (more - fewer)
            for more, ms_of_more in self._epochs
            for fewer, ms_of_fewer in self._epochs
            if more > _MIN_RECORDS_RATIO * fewer
        ]


class SplitRequests:
    """How many splits to ask for when a reader asks for one.

    A reader that has read its splits can go on only in the next epoch. So the one that reads all of them each time gets
    twice as many the next time, and one whose quota does not suffice for what it has gets fewer.

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
                self._ahead[task] = min(2 * ahead, _MAX_SPLITS)
        turns = range(max(wanted.values(), default=0))
        return [task for turn in turns for task, number in wanted.items() if turn < number]
