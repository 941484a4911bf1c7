"""The checkpoints and savepoints of a job."""

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
    """What several values have in common; percentiles of none are ``NaN``."""

    min: int
    max: int
    avg: int
    p50: float | str
    p90: float | str
    p95: float | str
    p99: float | str
    p999: float | str


class CheckpointCounts(msgspec.Struct):
    """How many checkpoints there were."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class CheckpointSummary(msgspec.Struct):
    """Completed checkpoints, in bytes and milliseconds."""

    checkpointed_size: MinMaxAvg
    state_size: MinMaxAvg
    end_to_end_duration: MinMaxAvg
    alignment_buffered: MinMaxAvg
    processed_data: MinMaxAvg
    persisted_data: MinMaxAvg


class TaskCheckpoint(msgspec.Struct):
    """A vertex's part of a checkpoint."""

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
    """A checkpoint; ``className`` says which of the last four fields it has."""

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
    """What the job was started from last."""

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
    """The checkpoints of a job; of the history the last are kept, newest first."""

    counts: CheckpointCounts
    summary: CheckpointSummary
    latest: LatestCheckpoints
    history: list[Checkpoint]


class Externalization(msgspec.Struct):
    """Whether checkpoints outlive the job."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfig(msgspec.Struct):
    """How checkpoints are taken; times in milliseconds."""

    mode: str
    interval: int
    """The largest number there is, if no checkpoints are taken by themselves."""
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
    """How long a subtask took, while it stood still and after."""

    sync: int
    async_: int


class Alignment(msgspec.Struct):
    """What a subtask did while it waited for barriers."""

    buffered: int
    processed: int
    persisted: int
    duration: int


class SubtaskCheckpoint(msgspec.Struct, rename={"class_name": "className"}):
    """A subtask's part of a checkpoint; one that has not acknowledged has only the first three fields."""

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
    """How long the subtasks took."""

    sync: MinMaxAvg
    async_: MinMaxAvg


class AlignmentSummary(msgspec.Struct):
    """What the subtasks did while they waited for barriers."""

    buffered: MinMaxAvg
    processed: MinMaxAvg
    persisted: MinMaxAvg
    duration: MinMaxAvg


class SubtaskSummary(msgspec.Struct):
    """The subtasks of a vertex in a checkpoint."""

    checkpointed_size: MinMaxAvg
    state_size: MinMaxAvg
    end_to_end_duration: MinMaxAvg
    checkpoint_duration: DurationSummary
    alignment: AlignmentSummary
    start_delay: MinMaxAvg


class TaskCheckpointWithSubtasks(TaskCheckpoint):
    """A vertex's part of a checkpoint, with that of each subtask."""

    summary: SubtaskSummary
    subtasks: list[SubtaskCheckpoint]


_CHECKPOINTS = "/jobs/:jobid/checkpoints"
_NO_JOB = {404: "There is no such job."}
_NO_CHECKPOINT = {404: "There is no such job or checkpoint, or it is not kept in the history any more."}

CHECKPOINTS = Endpoint(
    "GET",
    _CHECKPOINTS,
    "Shows the checkpoints of a job.",
    CheckpointingStatistics,
    errors=_NO_JOB,
    tag="checkpoints",
)
CHECKPOINT_CONFIG = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/config",
    "Shows how a job takes checkpoints.",
    CheckpointConfig,
    errors=_NO_JOB,
    tag="checkpoints",
)
CHECKPOINT_DETAILS = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/details/:checkpointid",
    "Shows a checkpoint.",
    Checkpoint,
    errors=_NO_CHECKPOINT,
    tag="checkpoints",
)
CHECKPOINT_SUBTASKS = Endpoint(
    "GET",
    f"{_CHECKPOINTS}/details/:checkpointid/subtasks/:vertexid",
    "Shows a vertex's part of a checkpoint.",
    TaskCheckpointWithSubtasks,
    errors=_NO_CHECKPOINT,
    tag="checkpoints",
)

ENDPOINTS = (CHECKPOINTS, CHECKPOINT_CONFIG, CHECKPOINT_DETAILS, CHECKPOINT_SUBTASKS)
