"""Events of a job, passed to the JobMaster by its runner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from firesteel.common.errors import TaskFailure
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.messages import SlotMessage

__all__ = [
    "AttemptAccepted",
    "AttemptEnded",
    "CallReturned",
    "CancelJob",
    "CheckpointWanted",
    "ClientConsumed",
    "Event",
    "LeftoversRemoved",
    "MessageReceived",
    "MetadataFailed",
    "MetadataStored",
    "RescaleJob",
    "SlotLost",
    "SlotsAvailable",
    "SlotsOffered",
    "SlotsQueued",
    "StartJob",
    "SuspendJob",
    "TimerFired",
    "TriggerSavepoint",
]


@dataclass(frozen=True, slots=True)
class StartJob:
    """The job is to run."""


@dataclass(frozen=True, slots=True)
class CancelJob:
    """The user cancels the job."""

    reason: str = "cancelled by the user"


@dataclass(frozen=True, slots=True)
class SuspendJob:
    """The JobManager stops: the job ends here, and continues from its last checkpoint where it is recovered."""

    reason: str = "the JobManager is shutting down"


@dataclass(frozen=True, slots=True)
class RescaleJob:
    """The user changes the parallelism of the job."""

    job_graph: JobGraph
    reason: str = "the job is rescaled"
    serialized: bytes = field(default=b"", repr=False)
    """The same graph, pickled for the slots."""


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message of a slot."""

    slot_index: int
    message: SlotMessage


@dataclass(frozen=True, slots=True)
class SlotsOffered:
    """The number of slots that the host has for the attempt; sent when it changes, as long as it is too small."""

    attempt: int
    available: int


@dataclass(frozen=True, slots=True)
class SlotsQueued:
    """The attempt waits for slots that other jobs hold; sent when its place changes."""

    attempt: int
    ahead: int
    """How many jobs get slots before it."""
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class SlotsAvailable:
    """The number of slots that the host has for the job, including its own; sent to an adaptive job on changes."""

    slots: int


@dataclass(frozen=True, slots=True)
class SlotLost:
    """A slot's control connection closed; reported after everything that arrived on it."""

    attempt: int
    slot_index: int
    reason: str = "connection closed"
    by_host: bool = False
    """Whether the host is to blame, and not what runs in the slot."""


@dataclass(frozen=True, slots=True)
class AttemptAccepted:
    """The host has taken a StartAttempt: slots register as soon as there are enough."""

    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """None of the attempt's processes runs any more; ``failure`` is the host's failure report, if there is one.

    If its ``cause`` is a HostError, the job is not to blame.

    The host (Spark) reports this exactly once per attempt it was asked to start, also after KillAttempt: the
    next attempt waits for it. It may arrive before the last messages of the slots.
    """

    attempt: int
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class LeftoversRemoved:
    """A RemoveLeftovers has been carried out, as far as it could be."""

    attempt: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of a SetTimer has come."""

    name: str


@dataclass(frozen=True, slots=True)
class CallReturned:
    """A CallAsync has been carried out."""

    attempt: int
    operator_id: str
    number: int
    result: Any
    error: Exception | None


@dataclass(frozen=True, slots=True)
class ClientConsumed:
    """The client took what a DeliverToClient handed over: the slot may send more."""

    attempt: int
    channel: str
    subtask: int
    sequence: int
    size: int = 0
    """In bytes, where that counts."""


@dataclass(frozen=True, slots=True)
class TriggerSavepoint:
    """The user requests a savepoint or, by ``kind``, a checkpoint; answered with a RequestDone or -Failed."""

    request_id: int
    kind: SnapshotKind
    target_directory: str | None
    stop: StopMode | None = None


@dataclass(frozen=True, slots=True)
class CheckpointWanted:
    """The host is ready for the next checkpoint, and the time has come for it: the next epoch is to begin."""

    attempt: int


@dataclass(frozen=True, slots=True)
class MetadataStored:
    """The metadata of a checkpoint is durable: the checkpoint exists."""

    checkpoint_id: int
    path: str


@dataclass(frozen=True, slots=True)
class MetadataFailed:
    """The metadata of a checkpoint could not be written."""

    checkpoint_id: int
    reason: str


Event: TypeAlias = (
    StartJob
    | CancelJob
    | SuspendJob
    | RescaleJob
    | MessageReceived
    | SlotsAvailable
    | SlotsOffered
    | SlotsQueued
    | SlotLost
    | AttemptAccepted
    | AttemptEnded
    | LeftoversRemoved
    | TimerFired
    | CallReturned
    | ClientConsumed
    | TriggerSavepoint
    | CheckpointWanted
    | MetadataStored
    | MetadataFailed
)
"""Any of the above."""
