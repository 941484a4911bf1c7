"""REST handlers for metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.cluster.diagnostics.known_jobs import (
    KnownJobs,
    find_job,
    find_subtask,
    find_vertex,
    now_ms,
)
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.jobmaster.view.metrics import VertexMetrics, job_metrics, metric_text
from firesteel.rest import metrics as rest
from firesteel.rest.endpoint import Text

__all__ = ["aggregate", "aggregated", "named_metrics", "routes"]

_AGGREGATIONS = ("min", "max", "avg", "sum", "skew")


def routes(jobs: KnownJobs, prometheus: Callable[[], str] | None = None) -> list[Route]:
    """What answers each endpoint; ``prometheus`` gives the text of ``/metrics``."""
    handlers = _MetricsHandlers(jobs, prometheus)
    return [
        Route(rest.JOBS_METRICS, handlers.jobs),
        Route(rest.JOB_METRICS, handlers.job),
        Route(rest.VERTEX_METRICS, handlers.vertex),
        Route(rest.SUBTASKS_METRICS, handlers.subtasks),
        Route(rest.SUBTASK_METRICS, handlers.subtask),
        Route(rest.VERTEX_WATERMARKS, handlers.watermarks),
        Route(rest.VERTEX_JM_OPERATOR_METRICS, handlers.jm_operator_metrics),
        # with many jobs it is long, and no client waits for it
        Route(rest.PROMETHEUS, handlers.prometheus, blocking=True),
    ]


class _MetricsHandlers:
    def __init__(self, jobs: KnownJobs, prometheus: Callable[[], str] | None):
        self._jobs = jobs
        self._prometheus = prometheus

    def prometheus(self, _request: RestRequest[Any]) -> Text:
        if self._prometheus is None:
            raise RestError(404, "Prometheus metrics are disabled.", hint="Set metrics.prometheus.enabled.")
        return Text(self._prometheus())

    def jobs(self, request: RestRequest[Any]) -> list[rest.AggregatedMetric]:
        now = now_ms()
        wanted = set(request.query["jobs"])
        stores = [job_metrics(job.view(), now) for job in self._jobs.jobs() if not wanted or job.job_id in wanted]
        names = {name: None for store in stores for name in store}
        return aggregated(request, list(names), lambda name: [store.get(name) for store in stores])

    def job(self, request: RestRequest[Any]) -> list[rest.Metric]:
        metrics = job_metrics(find_job(self._jobs, request), now_ms())
        return named_metrics(request, lambda: metrics, metrics.get)

    def vertex(self, request: RestRequest[Any]) -> list[rest.Metric]:
        metrics = self._vertex(request)
        return named_metrics(request, metrics.of_all, metrics.indexed)

    def subtask(self, request: RestRequest[Any]) -> list[rest.Metric]:
        view = find_job(self._jobs, request)
        vertex = find_vertex(view, request)
        index = find_subtask(vertex, request).index
        metrics = VertexMetrics(view, vertex)
        return named_metrics(request, lambda: metrics.of_subtask(index), lambda name: metrics.value(index, name))

    def subtasks(self, request: RestRequest[Any]) -> list[rest.AggregatedMetric]:
        view = find_job(self._jobs, request)
        vertex = find_vertex(view, request)
        metrics = VertexMetrics(view, vertex)
        chosen = _subtasks(request.query["subtasks"], vertex.parallelism)
        names: dict[str, None] = {}
        if not request.query["get"]:
            names = {name: None for index in chosen for name in metrics.of_subtask(index)}
        return aggregated(request, list(names), lambda name: [metrics.value(index, name) for index in chosen])

    def watermarks(self, request: RestRequest[Any]) -> list[rest.Metric]:
        watermarks = self._vertex(request).watermarks()
        return [rest.Metric(name, metric_text(value)) for name, value in watermarks.items()]

    def jm_operator_metrics(self, request: RestRequest[Any]) -> list[rest.Metric]:
        self._vertex(request)
        return []

    def _vertex(self, request: RestRequest[Any]) -> VertexMetrics:
        view = find_job(self._jobs, request)
        return VertexMetrics(view, find_vertex(view, request))


def named_metrics(
    request: RestRequest[Any], all_of_them: Callable[[], Iterable[str]], value_of: Callable[[str], Any]
) -> list[rest.Metric]:
    """The names of all metrics or, with ``get``, the values of those named that there are."""
    wanted = request.query["get"]
    if not wanted:
        return [rest.Metric(name) for name in all_of_them()]
    values = ((name, value_of(name)) for name in wanted)
    return [rest.Metric(name, metric_text(value)) for name, value in values if value is not None]


def aggregated(
    request: RestRequest[Any], names: Sequence[str], values_of: Callable[[str], list[Any]]
) -> list[rest.AggregatedMetric]:
    """The names of all metrics or, with ``get``, the requested aggregates of the named ones."""
    chosen = [name.lower() for name in request.query["agg"]]
    for name in chosen:
        if name not in _AGGREGATIONS:
            raise RestError(
                400,
                f"Cannot resolve query parameter (agg): {name[:100]}",
                hint=f"It is one of {', '.join(_AGGREGATIONS)}.",
            )
    wanted = request.query["get"]
    if not wanted:
        return [rest.AggregatedMetric(name) for name in names]
    answer = []
    for name in wanted:
        numbers = [number for number in map(_number, values_of(name)) if number is not None]
        if numbers:
            answer.append(aggregate(name, numbers, chosen or _AGGREGATIONS))
    return answer


def aggregate(name: str, numbers: Sequence[float], chosen: Sequence[str] = _AGGREGATIONS) -> rest.AggregatedMetric:
    """What several values of a metric have in common.

    >>> aggregate("numRecordsIn", [0.0, 30.0])
    AggregatedMetric(id='numRecordsIn', min=0.0, max=30.0, avg=15.0, sum=30.0, skew=100.0)
    """
    total = sum(numbers)
    mean = total / len(numbers)
    deviation = sum(abs(number - mean) for number in numbers) / len(numbers)
    all_of_them = {
        "min": min(numbers),
        "max": max(numbers),
        "avg": mean,
        "sum": total,
        "skew": min(deviation / mean * 100, 100.0) if mean else 0.0,
    }
    return rest.AggregatedMetric(name, **{key: all_of_them[key] for key in chosen})


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _subtasks(ranges: Sequence[str], parallelism: int) -> Sequence[int]:
    """The subtasks that ``0,2-4`` names, as far as there are such."""
    if not ranges:
        return range(parallelism)
    chosen: dict[int, None] = {}
    for text in ranges:
        first, dash, last = text.partition("-")
        ends = [first, last] if dash else [first, first]
        if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in ends):
            raise RestError(
                400,
                f"Cannot resolve query parameter (subtasks): {text[:100]}",
                hint="It is a number, or a range such as 0-3.",
            )
        chosen.update(dict.fromkeys(range(int(ends[0]), min(int(ends[1]) + 1, parallelism))))
    return [index for index in chosen if index < parallelism]
