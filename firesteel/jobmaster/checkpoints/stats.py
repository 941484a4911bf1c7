"""Checkpoint stats tracker: records a job's checkpoints for display."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from typing import Any

from msgspec.structs import replace

from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.subtask_table import SubtaskTable
from firesteel.jobmaster.checkpoints.plan import PlannedTask
from firesteel.jobmaster.checkpoints.statistics import (
    SUMMARISED,
    CheckpointStatistics,
    CheckpointStats,
    StatsSummary,
    SubtaskCheckpointStats,
)
from firesteel.jobmaster.model.task_key import TaskKey
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode

__all__ = ["CheckpointStatsTracker", "StatsRecorder"]

_HISTORY_SIZE = 10
_WINDOW_SIZE = 10_000


class StatsRecorder:
    """Makes a StatsSummary of values that come one after the other."""

    def __init__(self, window: int = _WINDOW_SIZE):
        self._window = window
        self._values = array("q")  # a ring: 10,000 objects per summary would be seen in the JobManager's memory
        self._min = self._max = self._sum = self._count = 0

    def add(self, value: int) -> None:
        self._min = value if not self._count else min(self._min, value)
        self._max = value if not self._count else max(self._max, value)
        if self._count < self._window:
            self._values.append(value)
        else:
            self._values[self._count % self._window] = value
        self._sum += value
        self._count += 1

    def snapshot(self) -> StatsSummary:
        """The summary of the values so far."""
        return StatsSummary(self._min, self._max, self._sum, self._count, self._values.tobytes())


class _TrackedCheckpoint:
    """The mutable side of CheckpointStats."""

    def __init__(self, stats: CheckpointStats, triggered_at: int):
        self.triggered_at = triggered_at
        """By the monotonic clock. Durations go by it; what is shown is the wall clock of then, and how much later."""
        self._stats = stats
        self._subtasks: SubtaskTable[SubtaskCheckpointStats] = SubtaskTable()

    def shown(self, now: int) -> int:
        return self._stats.trigger_timestamp + now - self.triggered_at

    @property
    def is_in_progress(self) -> bool:
        return self._stats.status == "IN_PROGRESS"

    def acknowledge(self, task: TaskKey, timestamp: int, size: int, metrics: CheckpointMetrics) -> None:
        if self._subtasks.get(*task) is None:
            stats = SubtaskCheckpointStats(timestamp, size, metrics, is_late=not self.is_in_progress)
            self._subtasks.put(*task, stats)

    def update(self, **changes: Any) -> CheckpointStats:
        self._stats = replace(self._stats, subtasks=self._subtasks.frozen(), **changes)
        return self._stats


class CheckpointStatsTracker:
    """Keeps counts, summaries, and the last checkpoints in detail."""

    def __init__(self, history_size: int = _HISTORY_SIZE):
        self._history_size = history_size
        self._tracked: dict[int, _TrackedCheckpoint] = {}
        self._history: dict[int, CheckpointStats] = {}
        self._acknowledged: dict[int, _TrackedCheckpoint] = {}
        """Checkpoints whose acknowledgements are not in the history yet."""
        self._summary = {name: StatsRecorder() for name in SUMMARISED}
        self._snapshot = CheckpointStatistics()

    def triggered(
        self,
        checkpoint_id: int,
        kind: SnapshotKind,
        stop: StopMode | None,
        now: int,
        timestamp: int,
        tasks: Iterable[PlannedTask],
        finished: Collection[TaskKey],
    ) -> None:
        """A checkpoint begins; tasks that have finished count as having acknowledged nothing.

        ``timestamp`` is what the wall clock shows.
        """
        self.snapshot()  # what came late for a checkpoint that is dropped now counts for the latest ones
        vertices: dict[str, int] = {}
        for task in tasks:
            vertices[task.vertex_id] = vertices.get(task.vertex_id, 0) + 1
        stats = CheckpointStats(checkpoint_id, kind, stop, timestamp, FrozenDict(vertices))
        tracked = self._tracked[checkpoint_id] = _TrackedCheckpoint(stats, now)
        for key in finished:
            tracked.acknowledge(key, timestamp, 0, CheckpointMetrics())
        self._history[checkpoint_id] = tracked.update()
        for old in [number for number, each in self._tracked.items() if not each.is_in_progress]:
            if len(self._history) <= self._history_size:
                break
            del self._history[old], self._tracked[old]
        self._change(counts=self._counted(total=1, in_progress=1))

    def acknowledged(self, checkpoint_id: int, task: TaskKey, size: int, metrics: CheckpointMetrics, now: int) -> None:
        """A task has acknowledged, perhaps too late."""
        tracked = self._tracked.get(checkpoint_id)
        if tracked is not None:
            tracked.acknowledge(task, tracked.shown(now), size, metrics)
            self._acknowledged[checkpoint_id] = tracked

    def completed(self, checkpoint_id: int, path: str, now: int) -> None:
        stats = self._update(checkpoint_id, status="COMPLETED", path=path)
        totals = stats.totals(stats.acknowledged())
        for name, recorder in self._summary.items():
            recorder.add(totals[name])
        self._change(
            counts=self._counted(completed=1, in_progress=-1),
            latest=self._snapshot.latest.merge({"savepoint" if stats.kind.is_savepoint else "completed": stats}),
            summary=FrozenDict({name: recorder.snapshot() for name, recorder in self._summary.items()}),
        )

    def failed(self, checkpoint_id: int, message: str, now: int) -> None:
        at = self._tracked[checkpoint_id].shown(now)
        stats = self._update(checkpoint_id, status="FAILED", failure_timestamp=at, failure_message=message)
        self._change(
            counts=self._counted(failed=1, in_progress=-1), latest=self._snapshot.latest.merge({"failed": stats})
        )

    def discarded(self, checkpoint_id: int) -> None:
        """A completed checkpoint was deleted."""
        if checkpoint_id in self._tracked:
            self._replace_latest(self._update(checkpoint_id, is_discarded=True))
        else:
            latest = self._snapshot.latest.get("completed")
            if latest is not None and latest.checkpoint_id == checkpoint_id:
                self._replace_latest(replace(latest, is_discarded=True))

    def restored(self, checkpoint_id: int, kind: SnapshotKind, path: str, timestamp: int) -> None:
        """An attempt starts from a checkpoint."""
        restored = {
            "id": checkpoint_id,
            "restore_timestamp": timestamp,
            "is_savepoint": kind.is_savepoint,
            "external_path": path,
        }
        self._change(counts=self._counted(restored=1), restored=FrozenDict(restored))

    def snapshot(self) -> CheckpointStatistics:
        """The current statistics; shares unchanged parts with the last snapshot."""
        if self._acknowledged:
            for checkpoint_id, tracked in self._acknowledged.items():
                stats = self._update(checkpoint_id)
                if not tracked.is_in_progress:
                    self._replace_latest(stats)
            self._acknowledged.clear()
            self._change()
        return self._snapshot

    def _update(self, checkpoint_id: int, **changes: Any) -> CheckpointStats:
        stats = self._history[checkpoint_id] = self._tracked[checkpoint_id].update(**changes)
        return stats

    def _replace_latest(self, stats: CheckpointStats) -> None:
        """The checkpoint may be one of the latest, too."""
        latest = {
            name: stats for name, each in self._snapshot.latest.items() if each.checkpoint_id == stats.checkpoint_id
        }
        self._change(latest=self._snapshot.latest.merge(latest))

    def _counted(self, **added: int) -> FrozenDict[str, int]:
        counts = self._snapshot.counts
        return counts.merge({name: counts[name] + number for name, number in added.items()})

    def _change(self, **changes: Any) -> None:
        self._snapshot = replace(self._snapshot, history=tuple(self._history.values()), **changes)
