"""What the JobMaster wants done, to be carried out by the shell around it, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.checkpoints.decisions import (
    DeleteCheckpoint,
    DeleteFiles,
    RequestDone,
    RequestFailed,
    Say,
    StoreMetadata,
)
from firesteel.jobmaster.model.enumerator_call import EnumeratorCall
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = [
    "CallAsync",
    "CancelTimer",
    "DeleteCheckpoint",
    "DeleteFiles",
    "DeliverToClient",
    "Instruction",
    "JobDone",
    "KillAttempt",
    "NotifyStatus",
    "RemoveLeftovers",
    "RequestDone",
    "RequestFailed",
    "Say",
    "SendToSlot",
    "SetTimer",
    "StartAttempt",
    "StoreMetadata",
]


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Start that many slots for the attempt; each registers itself."""

    attempt: int
    slots_needed: int


@dataclass(frozen=True, slots=True)
class SendToSlot:
    """Send the message over the control connection of a slot of the attempt."""

    attempt: int
    slot_index: int
    message: JobMasterMessage


@dataclass(frozen=True, slots=True)
class KillAttempt:
    """End the attempt's processes without asking them, then report AttemptEnded.

    An attempt that was not started only gives up its place in the queue for slots.
    """

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class RemoveLeftovers:
    """Delete what an attempt left in the checkpoint directory, then report LeftoversRemoved.

    No slot runs. Once the next attempt starts, nothing more may be looked for.
    """

    attempt: int
    needed: frozenset[str]
    """The files of all checkpoints that are kept."""
    retained: tuple[str, ...]
    """The directories of these checkpoints."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Report TimerFired(name) at that time of the monotonic clock; replaces a timer of the same name."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """The timer is no longer needed."""

    name: str


@dataclass(frozen=True, slots=True)
class CallAsync:
    """Make a call in another thread after a delay, and report CallReturned."""

    attempt: int
    call: EnumeratorCall


@dataclass(frozen=True, slots=True)
class NotifyStatus:
    """The job's status changed."""

    old: JobStatus
    new: JobStatus
    at: int


@dataclass(frozen=True, slots=True)
class DeliverToClient:
    """Hand a payload to the client, and report ClientConsumed with the same numbers once it took it."""

    channel: str
    payload: Any
    attempt: int
    subtask: int
    sequence: int


@dataclass(frozen=True, slots=True)
class JobDone:
    """The job has reached a terminal status; the last instruction of all."""

    status: JobStatus
    failure: TaskFailure | None
    accumulators: Mapping[str, Any]


Instruction: TypeAlias = (
    StartAttempt
    | SendToSlot
    | KillAttempt
    | RemoveLeftovers
    | SetTimer
    | CancelTimer
    | CallAsync
    | NotifyStatus
    | DeliverToClient
    | StoreMetadata
    | DeleteCheckpoint
    | DeleteFiles
    | RequestDone
    | RequestFailed
    | Say
    | JobDone
)
"""Any of the above."""
