"""What jobs, vertices and subtasks measure."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter, Text

__all__ = ["ENDPOINTS", "AggregatedMetric", "Metric"]


class Metric(msgspec.Struct):
    """A metric's name and, where it was asked for, its value as text."""

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
    """The mean deviation from the mean, in per cent of it, at most 100."""


_GET = Parameter(
    "get", "The metrics whose values are wanted; without, their names are listed.", default=[], is_list=True
)
_AGG = Parameter(
    "agg", "Which of min, max, sum, avg and skew are wanted; all of them by default.", default=[], is_list=True
)
_VERTEX = "/jobs/:jobid/vertices/:vertexid"
_NO_JOB = {404: "There is no such job."}
_NO_VERTEX = {404: "There is no such job or vertex."}
_NO_SUBTASK = {404: "There is no such job, vertex or subtask."}
_BAD_AGGREGATION = {400: "There is no such aggregation, or a number is none."}

JOBS_METRICS = Endpoint(
    "GET",
    "/jobs/metrics",
    "Shows metrics over several jobs.",
    list[AggregatedMetric],
    query=(_GET, _AGG, Parameter("jobs", "The ids of the jobs; all by default.", default=[], is_list=True)),
    errors=_BAD_AGGREGATION,
    tag="metrics",
)
JOB_METRICS = Endpoint(
    "GET",
    "/jobs/:jobid/metrics",
    "Shows the metrics of a job as a whole.",
    list[Metric],
    query=(_GET,),
    errors=_NO_JOB,
    tag="metrics",
)
VERTEX_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/metrics",
    "Shows the metrics of a vertex, each with the number of its subtask before its name.",
    list[Metric],
    query=(_GET,),
    errors=_NO_VERTEX,
    tag="metrics",
)
SUBTASKS_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/metrics",
    "Shows metrics over the subtasks of a vertex.",
    list[AggregatedMetric],
    query=(
        _GET,
        _AGG,
        Parameter(
            "subtasks", "The subtasks, as numbers or ranges such as 0-3; all by default.", default=[], is_list=True
        ),
    ),
    errors={**_NO_VERTEX, **_BAD_AGGREGATION},
    tag="metrics",
)
SUBTASK_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/metrics",
    "Shows the metrics of a subtask.",
    list[Metric],
    query=(_GET,),
    errors=_NO_SUBTASK,
    tag="metrics",
)
VERTEX_WATERMARKS = Endpoint(
    "GET",
    f"{_VERTEX}/watermarks",
    "Shows how far the event time of each subtask of a vertex has come. Sources have none.",
    list[Metric],
    errors=_NO_VERTEX,
    tag="metrics",
)
VERTEX_JM_OPERATOR_METRICS = Endpoint(
    "GET",
    f"{_VERTEX}/jm-operator-metrics",
    "Shows what the JobManager measures for the operators of a vertex: nothing.",
    list[Metric],
    query=(_GET,),
    errors=_NO_VERTEX,
    tag="metrics",
)
PROMETHEUS = Endpoint(
    "GET",
    "/metrics",
    "Gives all metrics in the text format of Prometheus.",
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
