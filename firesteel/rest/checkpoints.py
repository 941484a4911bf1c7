"""REST endpoints: checkpoint statistics of a job."""

from __future__ import annotations

import msgspec

from firesteel.rest.endpoint import Endpoint

__all__ = [
    "ENDPOINTS",
    "Alignment",
    "AlignmentSummary",
    "Checkpoint",
    "CheckpointConfig",
    "CheckpointCounts",
    "CheckpointDuration",
    "CheckpointSummary",
    "CheckpointingStatistics",
    "DurationSummary",
    "Externalization",
    "LatestCheckpoints",
    "MinMaxAvg",
    "RestoredCheckpoint",
    "SubtaskCheckpoint",
    "SubtaskSummary",
    "TaskCheckpoint",
    "TaskCheckpointWithSubtasks",
]


class MinMaxAvg(msgspec.Struct):
    """Minimum, maximum, average and percentiles of several values; percentiles of no values are ``NaN``."""

    min: int
    max: int
    avg: int
    p50: float | str
    p90: float | str
    p95: float | str
    p99: float | str
    p999: float | str


class CheckpointCounts(msgspec.Struct):
    """Number of checkpoints by status."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class CheckpointSummary(msgspec.Struct):
    """Summary of the completed checkpoints, in bytes and milliseconds."""

    checkpointed_size: MinMaxAvg
    state_size: MinMaxAvg
    end_to_end_duration: MinMaxAvg
    alignment_buffered: MinMaxAvg
    processed_data: MinMaxAvg
    persisted_data: MinMaxAvg


class TaskCheckpoint(msgspec.Struct):
    """Statistics of a checkpoint for a vertex."""

    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(msgspec.Struct, rename={"class_name": "className", "savepoint_format": "savepointFormat"}):
    """A checkpoint; ``className`` determines which of the last four fields are present."""

    class_name: str
    """``completed``, ``failed`` or ``in_progress``."""
    id: int
    status: str
    is_savepoint: bool
    savepoint_format: str | None
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    tasks: dict[str, TaskCheckpoint]
    external_path: str | msgspec.UnsetType | None = msgspec.UNSET
    discarded: bool | msgspec.UnsetType = msgspec.UNSET
    failure_timestamp: int | msgspec.UnsetType = msgspec.UNSET
    failure_message: str | msgspec.UnsetType | None = msgspec.UNSET


class RestoredCheckpoint(msgspec.Struct):
    """The checkpoint or savepoint from which the job was last restored."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str | None


class LatestCheckpoints(msgspec.Struct):
    """The last checkpoint of each kind."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: RestoredCheckpoint | None


class CheckpointingStatistics(msgspec.Struct):
    """The checkpoints of a job; the history holds the latest, newest first."""

    counts: CheckpointCounts
    summary: CheckpointSummary
    latest: LatestCheckpoints
    history: list[Checkpoint]


class Externalization(msgspec.Struct):
    """Whether checkpoints are retained after the job ends."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfig(msgspec.Struct):
    """Checkpoint configuration; times in milliseconds."""

    mode: str
    interval: int
    """The largest 64-bit integer if periodic checkpoints are disabled."""
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool = False
    changelog_periodic_materialization_interval: int = 600_000
    changelog_storage: str = "memory"


class CheckpointDuration(msgspec.Struct, rename={"async_": "async"}):
    """Duration of the synchronous and asynchronous part of a checkpoint."""

    sync: int
    async_: int


class Alignment(msgspec.Struct):
    """Barrier alignment of a subtask."""

    buffered: int
    processed: int
    persisted: int
    duration: int


class SubtaskCheckpoint(msgspec.Struct, rename={"class_name": "className"}):
    """Statistics of a checkpoint for a subtask; only the first three fields before it is acknowledged."""

    class_name: str
    """``completed`` or ``pending``."""
    index: int
    status: str
    ack_timestamp: int | msgspec.UnsetType = msgspec.UNSET
    end_to_end_duration: int | msgspec.UnsetType = msgspec.UNSET
    checkpointed_size: int | msgspec.UnsetType = msgspec.UNSET
    state_size: int | msgspec.UnsetType = msgspec.UNSET
    checkpoint: CheckpointDuration | msgspec.UnsetType = msgspec.UNSET
    alignment: Alignment | msgspec.UnsetType = msgspec.UNSET
    start_delay: int | msgspec.UnsetType = msgspec.UNSET
    unaligned_checkpoint: bool | msgspec.UnsetType = msgspec.UNSET
    aborted: bool | msgspec.UnsetType = msgspec.UNSET


class DurationSummary(msgspec.Struct, rename={"async_": "async"}):
    """Durations over the subtasks."""

    sync: MinMaxAvg
    async_: MinMaxAvg


class AlignmentSummary(msgspec.Struct):
    """Barrier alignment over the subtasks."""

    buffered: MinMaxAvg
    processed: MinMaxAvg
    persisted: MinMaxAvg
    duration: MinMaxAvg


class SubtaskSummary(msgspec.Struct):
    """Summary of a checkpoint over the subtasks of a vertex."""

    checkpointed_size: MinMaxAvg
    state_size: MinMaxAvg
    end_to_end_duration: MinMaxAvg
    checkpoint_duration: DurationSummary
    alignment: AlignmentSummary
    start_delay: MinMaxAvg


class TaskCheckpointWithSubtasks(TaskCheckpoint):
    """Statistics of a checkpoint for a vertex and each of its subtasks."""

    summary: SubtaskSummary
    subtasks: list[SubtaskCheckpoint]


_CHECKPOINTS = "/jobs/:jobid/checkpoints"
_NO_JOB = {404: "The job does not exist."}
_NO_CHECKPOINT = {404: "The job or checkpoint does not exist, or the checkpoint is no longer in the history."}

CHECKPOINTS = Endpoint(
    "GET",
    _CHECKPOINTS,
    "Returns the checkpointing statistics of a job.",
    CheckpointingStatistics,
    errors=_NO_JOB,
    tag="checkpoints",
)
CHECKPOINT_CONFIG = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/config",
    "Returns the checkpointing configuration of a job.",
    CheckpointConfig,
    errors=_NO_JOB,
    tag="checkpoints",
)
CHECKPOINT_DETAILS = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/details/:checkpointid",
    "Returns the statistics of a checkpoint.",
    Checkpoint,
    errors=_NO_CHECKPOINT,
    tag="checkpoints",
)
CHECKPOINT_SUBTASKS = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/details/:checkpointid/subtasks/:vertexid",
    "Returns the statistics of a checkpoint for a vertex and its subtasks.",
    TaskCheckpointWithSubtasks,
    errors=_NO_CHECKPOINT,
    tag="checkpoints",
)

ENDPOINTS = (CHECKPOINTS, CHECKPOINT_CONFIG, CHECKPOINT_DETAILS, CHECKPOINT_SUBTASKS)
