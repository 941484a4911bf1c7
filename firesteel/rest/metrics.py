"""REST endpoints: metrics of jobs, vertices and subtasks."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter, Text

__all__ = ["ENDPOINTS", "AggregatedMetric", "Metric"]


class Metric(msgspec.Struct):
    """The name of a metric and, if requested, its value as text."""

    id: str
    value: str | msgspec.UnsetType = msgspec.UNSET


class AggregatedMetric(msgspec.Struct):
    """A metric over several subtasks or jobs."""

    id: str
    min: float | msgspec.UnsetType = msgspec.UNSET
    max: float | msgspec.UnsetType = msgspec.UNSET
    avg: float | msgspec.UnsetType = msgspec.UNSET
    sum: float | msgspec.UnsetType = msgspec.UNSET
    skew: float | msgspec.UnsetType = msgspec.UNSET
    """Mean deviation from the mean, in percent of the mean, at most 100."""


_GET = Parameter(
    "get",
    "Names of the metrics whose values are returned; without it, the names of all metrics are returned.",
    default=[],
    is_list=True,
)
_AGG = Parameter("agg", "Aggregations to return: min, max, sum, avg, skew; default: all.", default=[], is_list=True)
_VERTEX = "/jobs/:jobid/vertices/:vertexid"
_NO_JOB = {404: "The job does not exist."}
_NO_VERTEX = {404: "The job or vertex does not exist."}
_NO_SUBTASK = {404: "The job, vertex or subtask does not exist."}
_BAD_AGGREGATION = {400: "Unknown aggregation or invalid number."}

JOBS_METRICS = Endpoint(
    "GET",
    "/jobs/metrics",
    "Returns metrics aggregated over jobs.",
    list[AggregatedMetric],
    query=(_GET, _AGG, Parameter("jobs", "Job ids; default: all.", default=[], is_list=True)),
    errors=_BAD_AGGREGATION,
    tag="metrics",
)
JOB_METRICS = Endpoint(
    "GET",
    "/jobs/:jobid/metrics",
    "Returns the metrics of a job.",
    list[Metric],
    query=(_GET,),
    errors=_NO_JOB,
    tag="metrics",
)
VERTEX_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/metrics",
    "Returns the metrics of a vertex, with the subtask index as prefix of each name.",
    list[Metric],
    query=(_GET,),
    errors=_NO_VERTEX,
    tag="metrics",
)
SUBTASKS_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/metrics",
    "Returns metrics aggregated over the subtasks of a vertex.",
    list[AggregatedMetric],
    query=(
        _GET,
        _AGG,
        Parameter(
            "subtasks", "Subtask indexes, as numbers or ranges such as 0-3; default: all.", default=[], is_list=True
        ),
    ),
    errors={**_NO_VERTEX, **_BAD_AGGREGATION},
    tag="metrics",
)
SUBTASK_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/metrics",
    "Returns the metrics of a subtask.",
    list[Metric],
    query=(_GET,),
    errors=_NO_SUBTASK,
    tag="metrics",
)
VERTEX_WATERMARKS = Endpoint(
    "GET",
    f"{_VERTEX}/watermarks",
    "Returns the current watermark of each subtask of a vertex. Empty for sources.",
    list[Metric],
    errors=_NO_VERTEX,
    tag="metrics",
)
VERTEX_JM_OPERATOR_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/jm-operator-metrics",
    "Returns the JobManager's metrics for the operators of a vertex. Always empty.",
    list[Metric],
    query=(_GET,),
    errors=_NO_VERTEX,
    tag="metrics",
)
PROMETHEUS = Endpoint(
    "GET",
    "/metrics",
    "Returns all metrics in the Prometheus text format.",
    Text,
    errors={404: "metrics.prometheus.enabled is false."},
    tag="metrics",
    is_ours=True,
)

ENDPOINTS = (
    JOBS_METRICS,
    JOB_METRICS,
    VERTEX_METRICS,
    SUBTASKS_METRICS,
    SUBTASK_METRICS,
    VERTEX_WATERMARKS,
    VERTEX_JM_OPERATOR_METRICS,
    PROMETHEUS,
)
