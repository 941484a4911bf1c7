"""Task metrics: busy, idle and back-pressured time, and the record counts of a task, under Flink's names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.runtime.task.operator_metrics import operator_metrics
from firesteel.runtime.task.record_sizes import ObjectBytes

if TYPE_CHECKING:
    from firesteel.runtime.task.task import Task

__all__ = ["BACKPRESSURED", "BUSY", "IDLE", "TaskMetrics", "TaskTimes", "measure_times"]

IDLE = 0
"""There is nothing to read."""
BUSY = 1
BACKPRESSURED = 2
"""There is something to read, but those who take the results hold the task back."""

_RATE_WINDOW_S = 5.0
"""What rates and shares of time are taken over: as often as Flink updates its own."""
_NS_PER_MS = 1_000_000
_clock = time.monotonic


class TaskTimes:
    """How long a task has been idle, busy and backpressured. Costs something only when that changes."""

    __slots__ = ("_since", "_spent", "_stopped", "state", "upstream")

    def __init__(self) -> None:
        self.state = BUSY
        self.upstream: list[TaskTimes] = []
        """The tasks of the same process whose records come here, directly or through others."""
        self._spent = [0.0, 0.0, 0.0]
        self._since = _clock()
        self._stopped = False

    def start(self) -> None:
        """The task runs from now on: what it took to open it does not count."""
        self._since = _clock()

    def enter(self, state: int) -> None:
        """From now on the task is idle, busy or backpressured."""
        if self._stopped:
            return
        now = _clock()
        self._spent[self.state] += now - self._since
        self.state = state
        self._since = now

    def become_busy(self) -> None:
        """The task is about to do something. All its producers of this process can do now is to wait for it."""
        self.enter(BUSY)
        for times in self.upstream:
            if times.state == BUSY:
                times.enter(BACKPRESSURED)

    def interrupt(self) -> int:
        """The task does something in between, a timer's work; returns what it was before, and is then again."""
        before = self.state
        if before != BUSY:
            self.enter(BUSY)
        return before

    def stop(self) -> None:
        """The task has ended: nothing is added any more."""
        self.enter(IDLE)
        self._stopped = True

    @property
    def is_stopped(self) -> bool:
        """Whether the task has ended."""
        return self._stopped

    def spent(self) -> tuple[float, float, float]:
        """Seconds spent idle, busy and backpressured until now."""
        idle, busy, backpressured = self._spent
        if not self._stopped:
            passed = _clock() - self._since
            if self.state == IDLE:
                idle += passed
            elif self.state == BUSY:
                busy += passed
            else:
                backpressured += passed
        return idle, busy, backpressured


def measure_times(tasks: Sequence[Task]) -> None:
    """Measures the busy, idle and backpressured time of the tasks of a slot.

    A slot has one thread. So a task that could continue but for its consumers in the same slot, which go first, is
    backpressured just as one whose outputs are full; a task that waits for others than its consumers is busy, as are
    Flink's threads when they wait for a processor.
    """
    by_channel = {channel.id: task for task in tasks for entry in task.descriptor.inputs for channel in entry.channels}
    for task in tasks:
        task.times = TaskTimes()
    # producers before their consumers
    for task in sorted(tasks, key=lambda task: task.rank):
        assert task.times is not None
        for output in task.descriptor.outputs:
            for channel in output.channels:
                consumer = by_channel.get(channel.id)
                if consumer is not None:
                    assert consumer.times is not None
                    for times in (task.times, *task.times.upstream):
                        if times not in consumer.times.upstream:
                            consumer.times.upstream.append(times)


class TaskMetrics:
    """Collects the metrics of one task, and derives rates from counters."""

    _RATES = ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "numBuffersIn", "numBuffersOut")

    def __init__(self, task: Task):
        self._task = task
        self._marks: deque[tuple[float, Mapping[str, float]]] = deque()
        self._started = _clock()
        self._bytes_in, self._bytes_out = ObjectBytes(), ObjectBytes()
        self._alignment_ms = 0
        self._start_delay_ms = 0
        self.mailbox_size = 0
        """Messages that wait for the slot's thread."""

    def checkpoint_begins(self, since_trigger_ms: int, alignment_ms: int) -> None:
        """The task's part of a checkpoint begins, so long after its trigger, and after its first barrier came here."""
        self._alignment_ms = alignment_ms
        self._start_delay_ms = max(since_trigger_ms - alignment_ms, 0)

    def report(self) -> dict[str, dict[str, Any]]:
        """Task metrics under '', operator metrics under their operator id."""
        return {"": self._of_task(), **operator_metrics(self._task)}

    def _of_task(self) -> dict[str, Any]:
        task = self._task
        counts = self._counts()
        idle, busy, backpressured = self._times()
        values: dict[str, Any] = {
            **counts,
            **self._rates({**counts, "idle": idle, "backpressured": backpressured}),
            "accumulatedIdleTimeMs": int(idle * 1000),
            "accumulatedBusyTimeMs": int(busy * 1000),
            "accumulatedBackPressuredTimeMs": int(backpressured * 1000),
            "isBackPressured": not task.finished and task.times is not None and task.times.state == BACKPRESSURED,
            "mailboxQueueSize": self.mailbox_size,
            "checkpointAlignmentTime": self._alignment_ms * _NS_PER_MS,
            "checkpointStartDelayNanos": self._start_delay_ms * _NS_PER_MS,
        }
        values.update(self._buffers())
        if task.source is None:
            values["currentInputWatermark"] = task.watermark
        return values

    def _counts(self) -> dict[str, int]:
        task = self._task
        counts = {
            "numRecordsIn": task.records_in,
            "numRecordsOut": task.records_out,
            "numBytesIn": 0,
            "numBytesOut": 0,
            "numBuffersIn": 0,
            "numBuffersOut": 0,
        }
        for output in task.outputs:
            counts["numBytesOut"] += output.partition.num_bytes_out
            counts["numBuffersOut"] += output.partition.num_buffers_out
        counts["numBytesOut"] += self._bytes_out.of([output.partition.objects for output in task.outputs])
        if task.gate is not None:
            counts["numBytesIn"] = task.gate.num_bytes_in + self._bytes_in.of([task.gate.objects])
            counts["numBuffersIn"] = task.gate.num_buffers_in
        return counts

    def _buffers(self) -> dict[str, float]:
        task = self._task
        queued = sum(output.partition.queued for output in task.outputs)
        usage = max((output.partition.usage for output in task.outputs), default=0.0)
        values = {"outPoolUsage": usage, "outputQueueLength": queued}
        if task.gate is not None:
            values["inPoolUsage"] = task.gate.usage
            values["inputQueueLength"] = task.gate.queued
        return values

    def _times(self) -> tuple[float, float, float]:
        if self._task.times is not None:
            return self._task.times.spent()
        # in a stage no task waits for its consumers: the rest of the time there was nothing to do
        busy = self._task.busy_s
        return max(_clock() - self._started - busy, 0.0), busy, 0.0

    def _rates(self, counts: Mapping[str, float]) -> dict[str, float]:
        task, now = self._task, _clock()
        names = {name: f"{name}PerSecond" for name in self._RATES}
        if task.finished:
            return dict.fromkeys([*names.values(), *_shares(0.0, 0.0, 0.0)], 0.0)
        marks = self._marks
        if not marks:
            marks.append((self._started, dict.fromkeys(counts, 0)))
        while len(marks) > 1 and now - marks[1][0] >= _RATE_WINDOW_S:
            marks.popleft()
        since, before = marks[0]
        marks.append((now, counts))
        elapsed = max(now - since, 0.001)
        rates = {rate: (counts[name] - before[name]) / elapsed for name, rate in names.items()}
        idle = min(1000 * (counts["idle"] - before["idle"]) / elapsed, 1000.0)
        backpressured = min(1000 * (counts["backpressured"] - before["backpressured"]) / elapsed, 1000.0 - idle)
        return {**rates, **_shares(idle, 1000.0 - idle - backpressured, backpressured)}


def _shares(idle: float, busy: float, backpressured: float) -> dict[str, float]:
    return {
        "idleTimeMsPerSecond": idle,
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": backpressured,
        # nothing blocks a task of Firesteel for good: it can always take part in a checkpoint
        "softBackPressuredTimeMsPerSecond": backpressured,
        "hardBackPressuredTimeMsPerSecond": 0.0,
    }
