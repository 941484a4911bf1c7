"""REST endpoints: triggering savepoints and checkpoints; a request starts an operation whose status is polled."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from firesteel.rest.endpoint import Endpoint

__all__ = [
    "CHECKPOINT_STATUS",
    "DISPOSAL_STATUS",
    "DISPOSE_SAVEPOINT",
    "ENDPOINTS",
    "SAVEPOINT_STATUS",
    "STOP_JOB",
    "TRIGGER_CHECKPOINT",
    "TRIGGER_SAVEPOINT",
    "AsyncOperation",
    "CheckpointInfo",
    "CheckpointOperation",
    "CheckpointTrigger",
    "DisposalInfo",
    "DisposalOperation",
    "OperationStatus",
    "SavepointDisposal",
    "SavepointInfo",
    "SavepointOperation",
    "SavepointTrigger",
    "StopWithSavepoint",
]

FormatType = Literal["CANONICAL", "NATIVE", "DEFAULT"]

_TRIGGERED = {400: "No target directory is given or configured, or the request is invalid."}
_POLLED = {
    404: "The operation does not exist, or ended more than five minutes ago.",
    500: "The operation failed; the message contains the cause.",
}


class SavepointTrigger(msgspec.Struct, rename="kebab"):
    """Parameters of a savepoint."""

    target_directory: str | None = None
    """Default: execution.checkpointing.savepoint-dir."""
    cancel_job: bool = False
    format_type: FormatType | None = msgspec.field(name="formatType", default=None)
    trigger_id: str | None = msgspec.field(name="triggerId", default=None)
    """An id for the operation, which makes the request idempotent."""


class StopWithSavepoint(msgspec.Struct, rename="camel"):
    """Parameters of stop-with-savepoint."""

    target_directory: str | None = None
    drain: bool = False
    """Whether the sources emit the maximum watermark, so that all timers and windows fire."""
    format_type: FormatType | None = None
    trigger_id: str | None = None


class CheckpointTrigger(msgspec.Struct, rename="camel"):
    """Parameters of a checkpoint."""

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = None
    """FULL takes a full checkpoint; other types are incremental if execution.checkpointing.incremental is true."""
    trigger_id: str | None = None


class SavepointDisposal(msgspec.Struct, rename="kebab"):
    """Parameters of a savepoint disposal."""

    savepoint_path: str


class AsyncOperation(msgspec.Struct, rename="kebab"):
    """A started operation."""

    request_id: str


class OperationStatus(msgspec.Struct):
    """``IN_PROGRESS`` or ``COMPLETED``."""

    id: str


class SavepointInfo(msgspec.Struct):
    """A completed savepoint."""

    location: str


class SavepointOperation(msgspec.Struct):
    """The status of a savepoint."""

    status: OperationStatus
    operation: SavepointInfo | None = None


class CheckpointInfo(msgspec.Struct, rename="camel"):
    """A completed checkpoint."""

    checkpoint_id: int


class CheckpointOperation(msgspec.Struct):
    """The status of a checkpoint."""

    status: OperationStatus
    operation: CheckpointInfo | None = None


class DisposalInfo(msgspec.Struct):
    """A completed savepoint disposal."""


class DisposalOperation(msgspec.Struct):
    """The status of a savepoint disposal."""

    status: OperationStatus
    operation: DisposalInfo | None = None


TRIGGER_SAVEPOINT: Endpoint[SavepointTrigger, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/savepoints",
    "Triggers a savepoint. With cancel-job, cancels the job afterwards.",
    AsyncOperation,
    request=SavepointTrigger,
    status=202,
    errors=_TRIGGERED,
    tag="savepoints",
)
STOP_JOB: Endpoint[StopWithSavepoint, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/stop",
    "Stops a job with a savepoint. The status is returned by the savepoint status endpoint.",
    AsyncOperation,
    request=StopWithSavepoint,
    status=202,
    errors=_TRIGGERED,
    tag="savepoints",
)
SAVEPOINT_STATUS: Endpoint[Any, SavepointOperation] = Endpoint(
    "GET",
    "/jobs/:jobid/savepoints/:triggerid",
    "Returns the status of a savepoint.",
    SavepointOperation,
    errors=_POLLED,
    tag="savepoints",
)
TRIGGER_CHECKPOINT: Endpoint[CheckpointTrigger, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/checkpoints",
    "Triggers a checkpoint. Type FULL takes a full checkpoint; other types follow the job's configuration.",
    AsyncOperation,
    request=CheckpointTrigger,
    status=202,
    errors={400: _TRIGGERED[400]},
    tag="checkpoints",
)
CHECKPOINT_STATUS: Endpoint[Any, CheckpointOperation] = Endpoint(
    "GET",
    "/jobs/:jobid/checkpoints/:triggerid",
    "Returns the status of a checkpoint.",
    CheckpointOperation,
    errors=_POLLED,
    tag="checkpoints",
)
DISPOSE_SAVEPOINT: Endpoint[SavepointDisposal, AsyncOperation] = Endpoint(
    "POST",
    "/savepoint-disposal",
    "Disposes of a savepoint: deletes all files that no other savepoint or checkpoint uses.",
    AsyncOperation,
    request=SavepointDisposal,
    errors={400: "The path is empty."},
    tag="savepoints",
)
DISPOSAL_STATUS: Endpoint[Any, DisposalOperation] = Endpoint(
    "GET",
    "/savepoint-disposal/:triggerid",
    "Returns the status of a savepoint disposal.",
    DisposalOperation,
    errors=_POLLED,
    tag="savepoints",
)

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    TRIGGER_SAVEPOINT,
    STOP_JOB,
    SAVEPOINT_STATUS,
    TRIGGER_CHECKPOINT,
    CHECKPOINT_STATUS,
    DISPOSE_SAVEPOINT,
    DISPOSAL_STATUS,
)
