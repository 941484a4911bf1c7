"""What is known of a job's checkpoints, as the web pages show it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from firesteel.jobmaster.checkpoints.plan import PlannedTask, TaskKey
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode

__all__ = ["CheckpointStatsTracker", "StatsSummary", "percentile"]

Json: TypeAlias = dict[str, Any]

_HISTORY = 10
_WINDOW = 10_000
_PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9))


class StatsSummary:
    """Least, greatest and mean of all values, and percentiles of the last ones.

    >>> summary = StatsSummary()
    >>> for value in (10, 20, 30):
    ...     summary.add(value)
    >>> summary.to_json()["avg"], summary.to_json()["p50"]
    (20, 20.0)
    """

    def __init__(self, window: int = _WINDOW):
        self._window = window
        self._values = array("q")  # a ring: 10,000 objects per summary would be seen in the JobManager's memory
        self._min = self._max = self._sum = self._count = 0

    def add(self, value: int) -> None:
        """Takes a value into account."""
        self._min = value if not self._count else min(self._min, value)
        self._max = value if not self._count else max(self._max, value)
        if self._count < self._window:
            self._values.append(value)
        else:
            self._values[self._count % self._window] = value
        self._sum += value
        self._count += 1

    def to_json(self) -> Json:
        """As the REST API shows it; percentiles of nothing are ``NaN``."""
        ordered = sorted(self._values)
        average = self._sum // self._count if self._count else 0
        answer: Json = {"min": self._min, "max": self._max, "avg": average}
        return answer | {name: percentile(ordered, p) if ordered else "NaN" for name, p in _PERCENTILES}

    @classmethod
    def of(cls, values: Iterable[int]) -> Json:
        """The summary of some values."""
        summary = cls()
        for value in values:
            summary.add(value)
        return summary.to_json()


def percentile(ordered: list[int], part: float) -> float:
    """The value below which that part of 100 lies, interpolated as Flink does.

    >>> percentile([10, 20, 30, 40], 25)
    12.5
    """
    position = part * (len(ordered) + 1) / 100
    below = math.floor(position)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


@dataclass(frozen=True, slots=True)
class _SubtaskStats:
    ack_timestamp: int
    size: int
    metrics: CheckpointMetrics
    is_late: bool = False

    def to_json(self, index: int, trigger_timestamp: int) -> Json:
        metrics = self.metrics
        return {
            "className": "completed",
            "index": index,
            "status": "completed",
            "ack_timestamp": self.ack_timestamp,
            "end_to_end_duration": max(0, self.ack_timestamp - trigger_timestamp),
            "checkpointed_size": metrics.bytes_written,
            "state_size": self.size,
            "checkpoint": {"sync": metrics.sync_ms, "async": metrics.async_ms},
            "alignment": {
                "buffered": 0,
                "processed": metrics.bytes_processed_during_alignment,
                "persisted": metrics.bytes_persisted_in_flight,
                "duration": metrics.alignment_ms,
            },
            "start_delay": metrics.start_delay_ms,
            "unaligned_checkpoint": metrics.unaligned,
            "aborted": self.is_late,
        }


@dataclass(slots=True)
class _CheckpointStats:
    checkpoint_id: int
    kind: SnapshotKind
    stop: StopMode | None
    triggered_at: int
    """By the monotonic clock. Durations go by it; what is shown is the wall clock of then, and how much later."""
    trigger_timestamp: int
    vertices: dict[str, int]
    """Vertex ids, with their parallelism."""
    subtasks: dict[TaskKey, _SubtaskStats] = field(default_factory=dict)
    status: str = "IN_PROGRESS"
    path: str | None = None
    is_discarded: bool = False
    failure_timestamp: int | None = None
    failure_message: str | None = None

    def shown(self, now: int) -> int:
        return self.trigger_timestamp + now - self.triggered_at

    def of_vertex(self, vertex_id: str) -> dict[int, _SubtaskStats]:
        return {subtask: stats for (vertex, subtask), stats in self.subtasks.items() if vertex == vertex_id}

    def duration(self, subtasks: Collection[_SubtaskStats]) -> int:
        latest = max((each.ack_timestamp for each in subtasks), default=None)
        return -1 if latest is None else max(0, latest - self.trigger_timestamp)

    def totals(self, subtasks: Collection[_SubtaskStats]) -> Json:
        return {
            "latest_ack_timestamp": max((each.ack_timestamp for each in subtasks), default=-1),
            "checkpointed_size": sum(each.metrics.bytes_written for each in subtasks),
            "state_size": sum(each.size for each in subtasks),
            "end_to_end_duration": self.duration(subtasks),
            "alignment_buffered": 0,
            "processed_data": sum(each.metrics.bytes_processed_during_alignment for each in subtasks),
            "persisted_data": sum(each.metrics.bytes_persisted_in_flight for each in subtasks),
        }

    @property
    def checkpoint_type(self) -> str:
        if self.kind.is_savepoint:
            return "SAVEPOINT" if self.stop is None else "SYNC_SAVEPOINT"
        is_unaligned = any(each.metrics.unaligned for each in self.subtasks.values())
        return "UNALIGNED_CHECKPOINT" if is_unaligned else "CHECKPOINT"

    @property
    def savepoint_format(self) -> str | None:
        if not self.kind.is_savepoint:
            return None
        return "CANONICAL" if self.kind is SnapshotKind.SAVEPOINT else "NATIVE"

    def to_json(self, *, details: bool = False) -> Json:
        answer: Json = {
            "className": self.status.lower(),
            "id": self.checkpoint_id,
            "status": self.status,
            "is_savepoint": self.kind.is_savepoint,
            "savepointFormat": self.savepoint_format,
            "trigger_timestamp": self.trigger_timestamp,
            **self.totals(self.subtasks.values()),
            "num_subtasks": sum(self.vertices.values()),
            "num_acknowledged_subtasks": len(self.subtasks),
            "checkpoint_type": self.checkpoint_type,
            "tasks": {vertex: self.task_to_json(vertex) for vertex in self.vertices} if details else {},
        }
        if self.status == "COMPLETED":
            answer |= {"external_path": self.path, "discarded": self.is_discarded}
        elif self.failure_timestamp is not None:
            answer |= {"failure_timestamp": self.failure_timestamp, "failure_message": self.failure_message}
            answer["end_to_end_duration"] = max(0, self.failure_timestamp - self.trigger_timestamp)
        return answer

    def task_to_json(self, vertex_id: str) -> Json:
        subtasks = self.of_vertex(vertex_id)
        return {
            "id": self.checkpoint_id,
            "status": self.status,
            **self.totals(subtasks.values()),
            "num_subtasks": self.vertices[vertex_id],
            "num_acknowledged_subtasks": len(subtasks),
        }

    def subtasks_to_json(self, vertex_id: str) -> Json:
        subtasks = self.of_vertex(vertex_id)
        known = subtasks.values()
        return self.task_to_json(vertex_id) | {
            "summary": {
                "checkpointed_size": StatsSummary.of(each.metrics.bytes_written for each in known),
                "state_size": StatsSummary.of(each.size for each in known),
                "end_to_end_duration": StatsSummary.of(self.duration([each]) for each in known),
                "checkpoint_duration": {
                    "sync": StatsSummary.of(each.metrics.sync_ms for each in known),
                    "async": StatsSummary.of(each.metrics.async_ms for each in known),
                },
                "alignment": {
                    "buffered": StatsSummary.of(0 for _ in known),
                    "processed": StatsSummary.of(each.metrics.bytes_processed_during_alignment for each in known),
                    "persisted": StatsSummary.of(each.metrics.bytes_persisted_in_flight for each in known),
                    "duration": StatsSummary.of(each.metrics.alignment_ms for each in known),
                },
                "start_delay": StatsSummary.of(each.metrics.start_delay_ms for each in known),
            },
            "subtasks": [
                subtasks[index].to_json(index, self.trigger_timestamp)
                if index in subtasks
                else {"className": "pending", "index": index, "status": "pending_or_failed"}
                for index in range(self.vertices[vertex_id])
            ],
        }


_SUMMARISED = (
    "checkpointed_size",
    "state_size",
    "end_to_end_duration",
    "alignment_buffered",
    "processed_data",
    "persisted_data",
)


class CheckpointStatsTracker:
    """Counts, summaries, and the last checkpoints in detail; everything it gives out is plain data."""

    def __init__(self, history_size: int = _HISTORY):
        self._history_size = history_size
        self._history: dict[int, _CheckpointStats] = {}
        self._counts = {"restored": 0, "total": 0, "in_progress": 0, "completed": 0, "failed": 0}
        self._summary = {name: StatsSummary() for name in _SUMMARISED}
        self._latest: dict[str, _CheckpointStats] = {}
        self._restored: Json | None = None

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
        vertices: dict[str, int] = {}
        for task in tasks:
            vertices[task.vertex_id] = vertices.get(task.vertex_id, 0) + 1
        stats = _CheckpointStats(checkpoint_id, kind, stop, now, timestamp, vertices)
        stats.subtasks.update((task, _SubtaskStats(timestamp, 0, CheckpointMetrics())) for task in finished)
        self._history[checkpoint_id] = stats
        self._counts["total"] += 1
        self._counts["in_progress"] += 1
        for old in [each for each in self._history.values() if each.status != "IN_PROGRESS"]:
            if len(self._history) <= self._history_size:
                break
            del self._history[old.checkpoint_id]

    def acknowledged(self, checkpoint_id: int, task: TaskKey, size: int, metrics: CheckpointMetrics, now: int) -> None:
        """A task has acknowledged, perhaps too late."""
        stats = self._history.get(checkpoint_id)
        if stats is not None and task not in stats.subtasks:
            stats.subtasks[task] = _SubtaskStats(stats.shown(now), size, metrics, stats.status != "IN_PROGRESS")

    def completed(self, checkpoint_id: int, path: str, now: int) -> None:
        """A checkpoint is complete."""
        stats = self._history[checkpoint_id]
        stats.status, stats.path = "COMPLETED", path
        self._counts["in_progress"] -= 1
        self._counts["completed"] += 1
        self._latest["savepoint" if stats.kind.is_savepoint else "completed"] = stats
        totals = stats.totals(stats.subtasks.values())
        for name, summary in self._summary.items():
            summary.add(totals[name])

    def failed(self, checkpoint_id: int, message: str, now: int) -> None:
        """A checkpoint was given up."""
        stats = self._history[checkpoint_id]
        stats.status, stats.failure_timestamp, stats.failure_message = "FAILED", stats.shown(now), message
        self._counts["in_progress"] -= 1
        self._counts["failed"] += 1
        self._latest["failed"] = stats

    def discarded(self, checkpoint_id: int) -> None:
        """A completed checkpoint was deleted."""
        for stats in (self._history.get(checkpoint_id), self._latest.get("completed")):
            if stats is not None and stats.checkpoint_id == checkpoint_id:
                stats.is_discarded = True

    def restored(self, checkpoint_id: int, kind: SnapshotKind, path: str, timestamp: int) -> None:
        """An attempt starts from a checkpoint."""
        self._counts["restored"] += 1
        self._restored = {
            "id": checkpoint_id,
            "restore_timestamp": timestamp,
            "is_savepoint": kind.is_savepoint,
            "external_path": path,
        }

    # -- what the REST API answers --------------------------------------------------------------------

    def snapshot(self) -> Json:
        """The answer to ``/jobs/:jobid/checkpoints``."""
        latest: Json = {
            name: None if name not in self._latest else self._latest[name].to_json()
            for name in ("completed", "savepoint", "failed")
        }
        return {
            "counts": dict(self._counts),
            "summary": {name: summary.to_json() for name, summary in self._summary.items()},
            "latest": latest | {"restored": self._restored},
            "history": [stats.to_json() for stats in reversed(self._history.values())],
        }

    def details(self, checkpoint_id: int) -> Json | None:
        """The answer to ``/jobs/:jobid/checkpoints/details/:checkpointid``; None if it is not known any more."""
        stats = self._find(checkpoint_id)
        return None if stats is None else stats.to_json(details=True)

    def subtask_details(self, checkpoint_id: int, vertex_id: str) -> Json | None:
        """The answer to ``/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid``."""
        stats = self._find(checkpoint_id)
        return None if stats is None or vertex_id not in stats.vertices else stats.subtasks_to_json(vertex_id)

    def _find(self, checkpoint_id: int) -> _CheckpointStats | None:
        known = (*self._latest.values(), *self._history.values())
        return next((each for each in known if each.checkpoint_id == checkpoint_id), None)
