"""The latest metrics of the vertices of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firesteel.client.connection import ClusterClient
from firesteel.rest.metrics import VERTEX_METRICS

__all__ = ["metric_names", "metric_values"]

_AT_ONCE = 200
"""Maximum number of metrics per request: the length of a URL is limited."""


def metric_names(client: ClusterClient, job_id: str, vertex_id: str) -> list[str]:
    """The metrics of a vertex, such as ``0.numRecordsIn``, or ``0.map.numRecordsIn`` for one of an operator."""
    return [metric.id for metric in client.call(VERTEX_METRICS, {"jobid": job_id, "vertexid": vertex_id})]


def metric_values(
    client: ClusterClient, job_id: str, vertex_id: str, names: Sequence[str]
) -> Iterator[tuple[str, str, str | None]]:
    """Subtask, name and value of metrics; None for a metric without a value."""
    path = {"jobid": job_id, "vertexid": vertex_id}
    for start in range(0, len(names), _AT_ONCE):
        for metric in client.call(VERTEX_METRICS, path, {"get": names[start : start + _AT_ONCE]}):
            subtask, _, name = metric.id.partition(".")
            yield subtask, name, metric.value if isinstance(metric.value, str) else None
