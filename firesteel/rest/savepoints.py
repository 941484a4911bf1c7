"""Savepoints and checkpoints on demand: one request starts an operation, others ask how it is doing."""

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

_TRIGGERED = {400: "There is no directory to write to, or something of the request is not what it should be."}
_POLLED = {
    404: "There is no such operation, or it ended more than five minutes ago.",
    500: "The operation has failed; the message says why.",
}


class SavepointTrigger(msgspec.Struct, rename="kebab"):
    """What savepoint to take."""

    target_directory: str | None = None
    """By default execution.checkpointing.savepoint-dir."""
    cancel_job: bool = False
    format_type: FormatType | None = msgspec.field(name="formatType", default=None)
    trigger_id: str | None = msgspec.field(name="triggerId", default=None)
    """An id for the operation, with which the same request can be made again."""


class StopWithSavepoint(msgspec.Struct, rename="camel"):
    """What savepoint to stop with."""

    target_directory: str | None = None
    drain: bool = False
    """Whether the sources say that all time has passed, so that timers and windows fire."""
    format_type: FormatType | None = None
    trigger_id: str | None = None


class CheckpointTrigger(msgspec.Struct, rename="camel"):
    """What checkpoint to take."""

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = None
    """FULL: everything is written anew. The others: only what changed, if execution.checkpointing.incremental is on."""
    trigger_id: str | None = None


class SavepointDisposal(msgspec.Struct, rename="kebab"):
    """Which savepoint to delete."""

    savepoint_path: str


class AsyncOperation(msgspec.Struct, rename="kebab"):
    """An operation has begun."""

    request_id: str


class OperationStatus(msgspec.Struct):
    """``IN_PROGRESS`` or ``COMPLETED``."""

    id: str


class SavepointInfo(msgspec.Struct):
    """A savepoint that was taken."""

    location: str


class SavepointOperation(msgspec.Struct):
    """How a savepoint is doing."""

    status: OperationStatus
    operation: SavepointInfo | None = None


class CheckpointInfo(msgspec.Struct, rename="camel"):
    """A checkpoint that was taken."""

    checkpoint_id: int


class CheckpointOperation(msgspec.Struct):
    """How a checkpoint is doing."""

    status: OperationStatus
    operation: CheckpointInfo | None = None


class DisposalInfo(msgspec.Struct):
    """A savepoint is deleted."""


class DisposalOperation(msgspec.Struct):
    """How a deletion is doing."""

    status: OperationStatus
    operation: DisposalInfo | None = None


TRIGGER_SAVEPOINT: Endpoint[SavepointTrigger, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/savepoints",
    "Takes a savepoint; with cancel-job, and cancels the job then.",
    AsyncOperation,
    request=SavepointTrigger,
    status=202,
    errors=_TRIGGERED,
    tag="savepoints",
)
STOP_JOB: Endpoint[StopWithSavepoint, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/stop",
    "Takes a savepoint and ends the job. Ask for the outcome as for that of a savepoint.",
    AsyncOperation,
    request=StopWithSavepoint,
    status=202,
    errors=_TRIGGERED,
    tag="savepoints",
)
SAVEPOINT_STATUS: Endpoint[Any, SavepointOperation] = Endpoint(
    "GET",
    "/jobs/:jobid/savepoints/:triggerid",
    "Tells how a savepoint is doing.",
    SavepointOperation,
    errors=_POLLED,
    tag="savepoints",
)
TRIGGER_CHECKPOINT: Endpoint[CheckpointTrigger, AsyncOperation] = Endpoint(
    "POST",
    "/jobs/:jobid/checkpoints",
    "Takes a checkpoint now. One of type FULL writes everything anew, the others as the job's own do.",
    AsyncOperation,
    request=CheckpointTrigger,
    status=202,
    errors={400: _TRIGGERED[400]},
    tag="checkpoints",
)
CHECKPOINT_STATUS: Endpoint[Any, CheckpointOperation] = Endpoint(
    "GET",
    "/jobs/:jobid/checkpoints/:triggerid",
    "Tells how a checkpoint is doing.",
    CheckpointOperation,
    errors=_POLLED,
    tag="checkpoints",
)
DISPOSE_SAVEPOINT: Endpoint[SavepointDisposal, AsyncOperation] = Endpoint(
    "POST",
    "/savepoint-disposal",
    "Deletes a savepoint, with all files that no other needs.",
    AsyncOperation,
    request=SavepointDisposal,
    errors={400: "The path is empty."},
    tag="savepoints",
)
DISPOSAL_STATUS: Endpoint[Any, DisposalOperation] = Endpoint(
    "GET",
    "/savepoint-disposal/:triggerid",
    "Tells how a deletion is doing.",
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
