"""The vertices of a job and their subtasks."""

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

_NO_VERTEX = {404: "There is no such job or vertex."}
_NO_SUBTASK = {404: "There is no such job, vertex, subtask or attempt."}


class StateDurations(msgspec.Struct, rename="upper"):
    """How long a subtask was in each state up to RUNNING, in milliseconds; -1 if it never was."""

    created: int
    scheduled: int
    deploying: int
    initializing: int
    running: int


class StateTimestamps(msgspec.Struct, rename="upper"):
    """When a subtask entered each state; 0 if it never did."""

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
    """What several subtasks have in common."""

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
    """The same as ``start-time``, under the name that Flink's older clients know."""


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
    """When a subtask entered its states."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: StateTimestamps


class SubtasksTimes(msgspec.Struct):
    """When the subtasks of a vertex entered their states."""

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
    """How a subtask spends its time; the three ratios are parts of 1."""

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
    """Whether a vertex has to wait for those after it: ``ok``, ``low`` or ``high``."""

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
VERTEX = Endpoint("GET", _VERTEX, "Shows the subtasks of a vertex.", VertexDetails, errors=_NO_VERTEX, tag="vertices")
VERTEX_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/accumulators",
    "Shows the accumulators of a vertex: the counters of its functions, summed over its subtasks.",
    VertexAccumulators,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASKS_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/accumulators",
    "Shows the accumulators of the subtasks of a vertex.",
    SubtasksAccumulators,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASK_TIMES = Endpoint(
    "GET",
    f"{_VERTEX}/subtasktimes",
    "Shows when the subtasks of a vertex entered their states.",
    SubtasksTimes,
    errors=_NO_VERTEX,
    tag="vertices",
)
VERTEX_TASK_MANAGERS = Endpoint(
    "GET",
    f"{_VERTEX}/taskmanagers",
    "Shows the subtasks of a vertex by TaskManager.",
    VertexTaskManagers,
    errors=_NO_VERTEX,
    tag="vertices",
)
VERTEX_BACK_PRESSURE = Endpoint(
    "GET",
    f"{_VERTEX}/backpressure",
    "Shows how the subtasks of a vertex spend their time.",
    BackPressure,
    errors=_NO_VERTEX,
    tag="vertices",
)
SUBTASK = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex",
    "Shows the current attempt of a subtask.",
    SubtaskAttempt,
    errors=_NO_SUBTASK,
    tag="vertices",
)
SUBTASK_ATTEMPT = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt",
    "Shows an attempt of a subtask.",
    SubtaskAttempt,
    errors=_NO_SUBTASK,
    tag="vertices",
)
SUBTASK_ATTEMPT_ACCUMULATORS = Endpoint(
    "GET",
    f"{_VERTEX}/subtasks/:subtaskindex/attempts/:attempt/accumulators",
    "Shows the accumulators of an attempt of a subtask.",
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
