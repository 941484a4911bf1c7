"""Checkpoint statistics of a job at one moment, as the REST API shows them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.subtask_table import SubtaskValues
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode

__all__ = [
    "SUMMARISED",
    "CheckpointStatistics",
    "CheckpointStats",
    "StatsSummary",
    "SubtaskCheckpointStats",
    "percentile",
]

Json: TypeAlias = dict[str, Any]

_PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9))


class StatsSummary(msgspec.Struct, frozen=True):
    """Least, greatest and mean of all values, and percentiles of the last ones.

    >>> summary = StatsSummary.of((10, 20, 30))
    >>> summary.to_json()["avg"], summary.to_json()["p50"]
    (20, 20.0)
    """

    least: int = 0
    greatest: int = 0
    total: int = 0
    count: int = 0
    latest: bytes = b""
    """The last values, as 64-bit integers in any order."""

    @classmethod
    def of(cls, values: Iterable[int]) -> StatsSummary:
        known = array("q", values)
        if not known:
            return cls()
        return cls(min(known), max(known), sum(known), len(known), known.tobytes())

    def to_json(self) -> Json:
        """As the REST API shows it; percentiles of nothing are ``NaN``."""
        ordered = sorted(array("q", self.latest))
        average = self.total // self.count if self.count else 0
        answer: Json = {"min": self.least, "max": self.greatest, "avg": average}
        return answer | {name: percentile(ordered, p) if ordered else "NaN" for name, p in _PERCENTILES}


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


class SubtaskCheckpointStats(msgspec.Struct, frozen=True):
    """What a subtask has acknowledged a checkpoint with."""

    ack_timestamp: int
    size: int
    metrics: CheckpointMetrics
    is_late: bool = False

    def to_json(self, index: int, trigger_timestamp: int) -> Json:
        """An entry of ``subtasks``."""
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


class CheckpointStats(msgspec.Struct, frozen=True):
    """One checkpoint at one moment."""

    checkpoint_id: int
    kind: SnapshotKind
    stop: StopMode | None
    trigger_timestamp: int
    vertices: Mapping[str, int]
    """Vertex ids, with their parallelism."""
    subtasks: SubtaskValues[SubtaskCheckpointStats] = FrozenDict()
    status: str = "IN_PROGRESS"
    path: str | None = None
    is_discarded: bool = False
    failure_timestamp: int | None = None
    failure_message: str | None = None

    def acknowledged(self) -> list[SubtaskCheckpointStats]:
        """What all subtasks have acknowledged with that have."""
        return [each for subtasks in self.subtasks.values() for each in subtasks if each is not None]

    def acknowledged_by(self, vertex_id: str) -> dict[int, SubtaskCheckpointStats]:
        """The same for the subtasks of one vertex, by their numbers."""
        subtasks = self.subtasks.get(vertex_id, ())
        return {index: each for index, each in enumerate(subtasks) if each is not None}

    def duration(self, subtasks: Collection[SubtaskCheckpointStats]) -> int:
        """From the trigger to the last acknowledgement of these subtasks; -1 if there is none."""
        latest = max((each.ack_timestamp for each in subtasks), default=None)
        return -1 if latest is None else max(0, latest - self.trigger_timestamp)

    def totals(self, subtasks: Collection[SubtaskCheckpointStats]) -> Json:
        """Sums over these subtasks."""
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
        """Flink's name for the kind of checkpoint."""
        if self.kind.is_savepoint:
            return "SAVEPOINT" if self.stop is None else "SYNC_SAVEPOINT"
        is_unaligned = any(each.metrics.unaligned for each in self.acknowledged())
        return "UNALIGNED_CHECKPOINT" if is_unaligned else "CHECKPOINT"

    @property
    def savepoint_format(self) -> str | None:
        """Flink's name for the format; None for a checkpoint."""
        if not self.kind.is_savepoint:
            return None
        return "CANONICAL" if self.kind is SnapshotKind.SAVEPOINT else "NATIVE"

    def to_json(self, *, details: bool = False) -> Json:
        """An entry of the history or, with details, ``/jobs/:jobid/checkpoints/details/:checkpointid``."""
        acknowledged = self.acknowledged()
        answer: Json = {
            "className": self.status.lower(),
            "id": self.checkpoint_id,
            "status": self.status,
            "is_savepoint": self.kind.is_savepoint,
            "savepointFormat": self.savepoint_format,
            "trigger_timestamp": self.trigger_timestamp,
            **self.totals(acknowledged),
            "num_subtasks": sum(self.vertices.values()),
            "num_acknowledged_subtasks": len(acknowledged),
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
        """The part of one vertex."""
        subtasks = self.acknowledged_by(vertex_id)
        return {
            "id": self.checkpoint_id,
            "status": self.status,
            **self.totals(subtasks.values()),
            "num_subtasks": self.vertices[vertex_id],
            "num_acknowledged_subtasks": len(subtasks),
        }

    def subtasks_to_json(self, vertex_id: str) -> Json:
        """The part of one vertex, with each of its subtasks."""
        subtasks = self.acknowledged_by(vertex_id)
        known = subtasks.values()
        return self.task_to_json(vertex_id) | {
            "summary": {
                "checkpointed_size": _summary(each.metrics.bytes_written for each in known),
                "state_size": _summary(each.size for each in known),
                "end_to_end_duration": _summary(self.duration([each]) for each in known),
                "checkpoint_duration": {
                    "sync": _summary(each.metrics.sync_ms for each in known),
                    "async": _summary(each.metrics.async_ms for each in known),
                },
                "alignment": {
                    "buffered": _summary(0 for _ in known),
                    "processed": _summary(each.metrics.bytes_processed_during_alignment for each in known),
                    "persisted": _summary(each.metrics.bytes_persisted_in_flight for each in known),
                    "duration": _summary(each.metrics.alignment_ms for each in known),
                },
                "start_delay": _summary(each.metrics.start_delay_ms for each in known),
            },
            "subtasks": [
                subtasks[index].to_json(index, self.trigger_timestamp)
                if index in subtasks
                else {"className": "pending", "index": index, "status": "pending_or_failed"}
                for index in range(self.vertices[vertex_id])
            ],
        }


def _summary(values: Iterable[int]) -> Json:
    return StatsSummary.of(values).to_json()


SUMMARISED = (
    "checkpointed_size",
    "state_size",
    "end_to_end_duration",
    "alignment_buffered",
    "processed_data",
    "persisted_data",
)
"""The totals of a checkpoint of which there are summaries."""


class CheckpointStatistics(msgspec.Struct, frozen=True):
    """The checkpoint statistics of a job at one moment."""

    counts: FrozenDict[str, int] = FrozenDict(restored=0, total=0, in_progress=0, completed=0, failed=0)
    summary: Mapping[str, StatsSummary] = FrozenDict(dict.fromkeys(SUMMARISED, StatsSummary()))
    latest: FrozenDict[str, CheckpointStats] = FrozenDict()
    """The last one that is ``completed``, a ``savepoint`` or ``failed``."""
    restored: Mapping[str, Any] | None = None
    history: tuple[CheckpointStats, ...] = ()
    """Those under way and the last others, oldest first."""

    def to_json(self) -> Json:
        """The answer to ``/jobs/:jobid/checkpoints``."""
        latest: Json = {
            name: None if name not in self.latest else self.latest[name].to_json()
            for name in ("completed", "savepoint", "failed")
        }
        return {
            "counts": dict(self.counts),
            "summary": {name: summary.to_json() for name, summary in self.summary.items()},
            "latest": latest | {"restored": None if self.restored is None else dict(self.restored)},
            "history": [stats.to_json() for stats in reversed(self.history)],
        }

    def details(self, checkpoint_id: int) -> Json | None:
        """The answer to ``/jobs/:jobid/checkpoints/details/:checkpointid``; None if it is no longer kept."""
        stats = self._find(checkpoint_id)
        return None if stats is None else stats.to_json(details=True)

    def subtask_details(self, checkpoint_id: int, vertex_id: str) -> Json | None:
        """The answer to ``/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid``."""
        stats = self._find(checkpoint_id)
        return None if stats is None or vertex_id not in stats.vertices else stats.subtasks_to_json(vertex_id)

    def _find(self, checkpoint_id: int) -> CheckpointStats | None:
        known = (*self.latest.values(), *self.history)
        return next((each for each in known if each.checkpoint_id == checkpoint_id), None)
