"""Metrics of a job by the names that Flink's REST API gives them."""

from __future__ import annotations

from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.vertices import VertexView

__all__ = ["VertexMetrics", "job_metrics", "metric_text", "operator_scope_name"]

_OPERATOR_NAME_LENGTH = 80
_REPLACED = str.maketrans(" .:,", "____")


def operator_scope_name(name: str) -> str:
    """An operator's name as a part of the names of its metrics.

    >>> operator_scope_name("Source: orders, v1.2")
    'Source__orders__v1_2'
    """
    return name[:_OPERATOR_NAME_LENGTH].translate(_REPLACED)


def metric_text(value: Any) -> str:
    """A value as the REST API shows it: everything is text.

    >>> metric_text(3), metric_text(True), metric_text(0.5)
    ('3', 'true', '0.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "NaN" if value != value else repr(value)
    return str(value)


class VertexMetrics:
    """The metrics of a vertex's subtasks: those of the task itself, and ``<operator>.<name>``."""

    def __init__(self, view: JobView, vertex: VertexView):
        self._vertex = vertex
        self._metrics = None if view.snapshot is None else view.snapshot.metrics
        self._operators = [
            (f"{operator_scope_name(operator.node.name)}.", operator.node.operator_id)
            for operator in vertex.job_vertex.operators
        ]

    def of_subtask(self, subtask: int) -> dict[str, Any]:
        """Everything one subtask has reported."""
        if self._metrics is None:
            return {}
        return {
            prefix + name: value
            for prefix, operator_id in (("", ""), *self._operators)
            for name, value in self._metrics.values(self._vertex.id, operator_id, subtask).items()
            if value is not None
        }

    def value(self, subtask: int, name: str) -> Any:
        """One metric of one subtask; None if it has not reported it."""
        if self._metrics is None:
            return None
        value = self._metrics.values(self._vertex.id, "", subtask).get(name)
        if value is None and "." in name:
            for prefix, operator_id in self._operators:
                if name.startswith(prefix):
                    found = self._metrics.values(self._vertex.id, operator_id, subtask).get(name[len(prefix) :])
                    value = value if found is None else found
        return value

    def of_all(self) -> dict[str, Any]:
        """Everything all subtasks have reported, as ``<subtask>.<name>``."""
        return {
            f"{subtask}.{name}": value
            for subtask in range(self._vertex.parallelism)
            for name, value in self.of_subtask(subtask).items()
        }

    def indexed(self, name: str) -> Any:
        """The value of ``<subtask>.<name>``; None if there is none."""
        index, _, rest = name.partition(".")
        if not (index.isascii() and index.isdigit()) or len(index) > 9 or int(index) >= self._vertex.parallelism:
            return None
        return self.value(int(index), rest)

    def watermarks(self) -> dict[str, Any]:
        """The input watermark of each subtask that has one, by ``<subtask>.currentInputWatermark``."""
        if self._vertex.is_source:
            return {}
        name = "currentInputWatermark"
        known = ((subtask, self.value(subtask, name)) for subtask in range(self._vertex.parallelism))
        return {f"{subtask}.{name}": value for subtask, value in known if value is not None}


def job_metrics(view: JobView, now: int) -> dict[str, Any]:
    """The metrics of the job as a whole, which Flink's JobManager has."""
    status = view.status
    metrics: dict[str, Any] = {
        "uptime": _since(view, JobStatus.RUNNING, now),
        "downtime": _since(view, JobStatus.RESTARTING, now),
        "numRestarts": 0 if view.snapshot is None else max(0, view.snapshot.attempt),
    }
    metrics["fullRestarts"] = metrics["numRestarts"]
    for name, shown in (
        ("initializing", JobStatus.INITIALIZING),
        ("created", JobStatus.CREATED),
        ("running", JobStatus.RUNNING),
        ("cancelling", JobStatus.CANCELLING),
        ("failing", JobStatus.FAILING),
        ("restarting", JobStatus.RESTARTING),
    ):
        metrics[f"{name}Time"] = _since(view, shown, now)
        metrics[f"{name}State"] = int(status is shown)
    metrics.update(_checkpoint_metrics(view))
    return metrics


def _since(view: JobView, status: JobStatus, now: int) -> int:
    """How long the job has been in a status; 0 if it is in another, -1 if it has ended."""
    if view.status is status:
        return max(0, now - view.timestamp(status))
    return -1 if view.status.is_globally_terminal_state() else 0


def _checkpoint_metrics(view: JobView) -> dict[str, Any]:
    if view.snapshot is None:
        return {}
    statistics = view.checkpoint_statistics()
    counts, restored = statistics.counts, statistics.restored
    latest = [statistics.latest[name] for name in ("completed", "savepoint") if name in statistics.latest]
    newest = max(latest, key=lambda each: each.checkpoint_id, default=None)
    last = None if newest is None else newest.to_json()
    metrics: dict[str, Any] = {
        "totalNumberOfCheckpoints": counts["total"],
        "numberOfInProgressCheckpoints": counts["in_progress"],
        "numberOfCompletedCheckpoints": counts["completed"],
        "numberOfFailedCheckpoints": counts["failed"],
        "lastCheckpointRestoreTimestamp": -1 if restored is None else restored["restore_timestamp"],
        "lastCompletedCheckpointId": -1 if last is None else last["id"],
    }
    for name, key in (
        ("lastCheckpointSize", "checkpointed_size"),
        ("lastCheckpointFullSize", "state_size"),
        ("lastCheckpointDuration", "end_to_end_duration"),
        ("lastCheckpointProcessedData", "processed_data"),
        ("lastCheckpointPersistedData", "persisted_data"),
    ):
        metrics[name] = -1 if last is None else last[key]
    metrics["lastCheckpointExternalPath"] = "n/a" if last is None else last.get("external_path") or "n/a"
    return metrics
