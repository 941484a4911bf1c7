"""REST endpoints: the vertices of a job and their subtasks."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint
from firesteel.rest.jobs import Accumulator, IoMetrics, StateCounts

__all__ = [
    "ENDPOINTS",
    "AggregatedTaskDetails",
    "AttemptAccumulators",
    "BackPressure",
    "StateDurations",
    "StateTimestamps",
    "Statistics",
    "SubtaskAccumulators",
    "SubtaskAttempt",
    "SubtaskBackPressure",
    "SubtaskTimes",
    "SubtasksAccumulators",
    "SubtasksTimes",
    "TaskManagerTasks",
    "VertexAccumulators",
    "VertexDetails",
    "VertexTaskManagers",
]

_NO_VERTEX = {404: "The job or vertex does not exist."}
_NO_SUBTASK = {404: "The job, vertex, subtask or attempt does not exist."}


class StateDurations(msgspec.Struct, rename="upper"):
    """Time a subtask spent in each state up to RUNNING, in milliseconds; -1 if never."""

    created: int
    scheduled: int
    deploying: int
    initializing: int
    running: int


class StateTimestamps(msgspec.Struct, rename="upper"):
    """Time at which a subtask entered each state; 0 if never."""

    created: int = 0
    scheduled: int = 0
    deploying: int = 0
    initializing: int = 0
    running: int = 0
    finished: int = 0
    canceling: int = 0
    canceled: int = 0
    failed: int = 0
    reconciling: int = 0


class Statistics(msgspec.Struct):
    """Statistics over several subtasks."""

    min: int
    max: int
    avg: int
    sum: int
    median: int
    p25: int
    p75: int
    p95: int


class AggregatedTaskDetails(msgspec.Struct, rename="kebab"):
    """Metrics and durations over several subtasks."""

    metrics: dict[str, Statistics]
    status_duration: dict[str, Statistics]


class SubtaskAttempt(
    msgspec.Struct,
    rename={
        "start_time": "start-time",
        "end_time": "end-time",
        "taskmanager_id": "taskmanager-id",
        "status_duration": "status-duration",
        "compatible_start_time": "start_time",
    },
):
    """One attempt of one subtask."""

    subtask: int
    status: str
    attempt: int
    endpoint: str
    start_time: int
    end_time: int
    duration: int
    metrics: IoMetrics
    taskmanager_id: str
    status_duration: StateDurations
    compatible_start_time: int
    """The same as ``start-time``, for older clients of Flink."""


class VertexDetails(msgspec.Struct, rename={"max_parallelism": "maxParallelism"}):
    """A vertex with its subtasks."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    now: int
    subtasks: list[SubtaskAttempt]
    aggregated: AggregatedTaskDetails


class TaskManagerTasks(msgspec.Struct, rename="kebab"):
    """The subtasks of a vertex in one TaskManager."""

    endpoint: str
    status: str
    start_time: int
    end_time: int
    duration: int
    metrics: IoMetrics
    status_counts: StateCounts
    taskmanager_id: str
    aggregated: AggregatedTaskDetails


class VertexTaskManagers(msgspec.Struct):
    """The TaskManagers of a vertex."""

    id: str
    name: str
    now: int
    taskmanagers: list[TaskManagerTasks]


class SubtaskTimes(msgspec.Struct):
    """State timestamps of a subtask."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: StateTimestamps


class SubtasksTimes(msgspec.Struct):
    """State timestamps of the subtasks of a vertex."""

    id: str
    name: str
    now: int
    subtasks: list[SubtaskTimes]


class SubtaskBackPressure(
    msgspec.Struct,
    rename={
        "level": "backpressureLevel",
        "deprecated_level": "backpressure-level",
        "idle_ratio": "idleRatio",
        "busy_ratio": "busyRatio",
    },
):
    """Backpressure of a subtask; the three ratios add up to 1."""

    subtask: int
    level: str
    deprecated_level: str
    ratio: float
    idle_ratio: float
    busy_ratio: float


class BackPressure(
    msgspec.Struct,
    rename={
        "level": "backpressureLevel",
        "deprecated_level": "backpressure-level",
        "end_timestamp": "end-timestamp",
    },
):
    """Backpressure of a vertex: ``ok``, ``low`` or ``high``."""

    status: str
    level: str
    deprecated_level: str
    end_timestamp: int
    subtasks: list[SubtaskBackPressure]


class VertexAccumulators(msgspec.Struct, rename="kebab"):
    """The accumulators of a vertex."""

    id: str
    user_accumulators: list[Accumulator]


class SubtaskAccumulators(msgspec.Struct, rename="kebab"):
    """The accumulators of a subtask."""

    subtask: int
    attempt: int
    endpoint: str
    user_accumulators: list[Accumulator]


class SubtasksAccumulators(msgspec.Struct):
    """The accumulators of all subtasks of a vertex."""

    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


class AttemptAccumulators(msgspec.Struct, rename="kebab"):
    """The accumulators of an attempt."""

    subtask: int
    attempt: int
    id: str
    user_accumulators: list[Accumulator]


_VERTEX = "/jobs/:jobid/vertices/:vertexid"
VERTEX = Endpoint(
    "GET", _VERTEX, "Returns a vertex and its subtasks.", VertexDetails, errors=_NO_VERTEX, tag="vertices"
)
VERTEX_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/accumulators",
    "Returns the accumulators of a vertex, summed over its subtasks.",
    VertexAccumulators,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASKS_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/accumulators",
    "Returns the accumulators of the subtasks of a vertex.",
    SubtasksAccumulators,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASK_TIMES = Endpoint(
    "GET",
    f"{_VERTEX}/subtasktimes",
    "Returns the state timestamps of the subtasks of a vertex.",
    SubtasksTimes,
    errors=_NO_VERTEX,
    tag="vertices",
)
VERTEX_TASK_MANAGERS = Endpoint(
    "GET",
    f"{_VERTEX}/taskmanagers",
    "Returns the subtasks of a vertex, grouped by TaskManager.",
    VertexTaskManagers,
    errors=_NO_VERTEX,
    tag="vertices",
)
VERTEX_BACK_PRESSURE = Endpoint(
    "GET",
    f"{_VERTEX}/backpressure",
    "Returns the backpressure of a vertex and its subtasks.",
    BackPressure,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASK = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex",
    "Returns the current attempt of a subtask.",
    SubtaskAttempt,
    errors=_NO_SUBTASK,
    tag="vertices",
)
SUBTASK_ATTEMPT = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt",
    "Returns an attempt of a subtask.",
    SubtaskAttempt,
    errors=_NO_SUBTASK,
    tag="vertices",
)
SUBTASK_ATTEMPT_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt/accumulators",
    "Returns the accumulators of an attempt of a subtask.",
    AttemptAccumulators,
    errors=_NO_SUBTASK,
    tag="vertices",
)

ENDPOINTS = (
    VERTEX,
    VERTEX_ACCUMULATORS,
    SUBTASKS_ACCUMULATORS,
    SUBTASK_TIMES,
    VERTEX_TASK_MANAGERS,
    VERTEX_BACK_PRESSURE,
    SUBTASK,
    SUBTASK_ATTEMPT,
    SUBTASK_ATTEMPT_ACCUMULATORS,
)
