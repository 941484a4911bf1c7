"""Instructions of a JobMaster to its runner, executed in order.

The JobMaster gives instructions to the shell around it, and its parts (CheckpointCoordinator, AdaptiveScheduler, …) to
the JobMaster. It carries out itself what concerns the job as a whole, and passes on the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.model.enumerator_call import EnumeratorCall
from firesteel.jobmaster.model.task_key import TaskKey
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = [
    "CallAsync",
    "CancelTimer",
    "DeleteCheckpoint",
    "DeleteFiles",
    "DeliverToClient",
    "FailJob",
    "Instruction",
    "JobDone",
    "JobInstruction",
    "KillAttempt",
    "NotifyAborted",
    "NotifyComplete",
    "NotifyStatus",
    "PartInstruction",
    "RemoveLeftovers",
    "RequestDone",
    "RequestFailed",
    "RequestSlots",
    "RestartJob",
    "Say",
    "SendToSlot",
    "SetTimer",
    "StartAttempt",
    "StoreMetadata",
    "TakeCheckpoint",
    "TriggerTasks",
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
class StoreMetadata:
    """Write ``_metadata``, then report `stored` or `store_failed`."""

    checkpoint_id: int
    metadata: CheckpointMetadata
    location: CheckpointLocation
    is_committed: bool = True
    """Whether sinks commit with it, so that from then on the job can start from nothing older."""


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint:
    """Delete ``_metadata`` in the directory first, so that it is not taken for complete, then the files.

    With ``whole`` delete the directory with all that is in it; without, other checkpoints still need some of that.
    """

    path: str
    files: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Delete these files."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestDone:
    """A requested checkpoint or savepoint is at that path."""

    request_id: str
    path: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A requested checkpoint or savepoint will not be."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Say:
    """Log a warning for the job."""

    text: str


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
"""What the shell carries out."""


@dataclass(frozen=True, slots=True)
class TriggerTasks:
    """Begin a checkpoint: snapshot the enumerators, report `coordinator_states`, then trigger these tasks."""

    checkpoint_id: int
    timestamp: int
    options: CheckpointOptions
    tasks: tuple[TaskKey, ...]
    coordinators: tuple[str, ...] = ()
    """The operators whose enumerators take part."""


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """Notify all tasks, and the enumerators, that the checkpoint is complete."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Notify all tasks that the checkpoint is aborted."""

    checkpoint_id: int
    reason: str
    is_expired: bool = False
    """Whether it took too long."""


@dataclass(frozen=True, slots=True)
class FailJob:
    """The job cannot go on like this: fail it, and let the restart strategy decide."""

    failure: TaskFailure


@dataclass(frozen=True, slots=True)
class RequestSlots:
    """Start the attempt with that many slots."""

    slots: int


@dataclass(frozen=True, slots=True)
class RestartJob:
    """End the attempt and begin the next one, although nothing has failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class TakeCheckpoint:
    """Take a checkpoint as soon as possible."""


JobInstruction: TypeAlias = (
    TriggerTasks | NotifyComplete | NotifyAborted | FailJob | RequestSlots | RestartJob | TakeCheckpoint
)
"""What the JobMaster carries out itself."""

PartInstruction: TypeAlias = Instruction | JobInstruction
"""What parts of the JobMaster give."""
