"""Control messages between the JobMaster and the TaskExecutor of a slot.

Every message is a frozen value that pickles on its own. A slot sends the number of its attempt, so that the
JobMaster can ignore messages of an older attempt. Messages of one connection arrive in the order
they were sent, and SlotStopped or SlotFailed is the last one a slot sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from firesteel.common.errors import TaskFailure
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import CheckpointOptions
from firesteel.runtime.model.state_handles import TaskStateSnapshot

__all__ = [
    "Accumulators",
    "AcknowledgeCheckpoint",
    "AddSplits",
    "Address",
    "AlignWatermark",
    "Answer",
    "Ask",
    "CancelSlot",
    "ClientAck",
    "ClientPayload",
    "DeclineCheckpoint",
    "Deploy",
    "Heartbeat",
    "HeartbeatReceived",
    "JobMasterMessage",
    "MetricReport",
    "MetricScope",
    "NoMoreSplits",
    "NotifyCheckpointAborted",
    "NotifyCheckpointComplete",
    "ReaderEvent",
    "ReaderStarted",
    "RegisterSlot",
    "ReportWatermark",
    "RequestSplit",
    "SendBeforeBarrier",
    "Shutdown",
    "SlotFailed",
    "SlotMessage",
    "SlotStopped",
    "SourceEvent",
    "TaskAwaitsCheckpoint",
    "TaskKey",
    "TaskStateChanged",
    "TriggerCheckpoint",
]

Address: TypeAlias = tuple[str, int]
"""Host and port."""

TaskKey: TypeAlias = tuple[str, int]
"""Vertex id and subtask."""

Accumulators: TypeAlias = Mapping[TaskKey, Mapping[str, Any]]
"""What the functions of tasks have counted, by name."""

MetricScope: TypeAlias = tuple[str, str, int]
"""Vertex id, operator id (empty for the task itself) and subtask."""


# Slot -> JobMaster


@dataclass(frozen=True, slots=True)
class RegisterSlot:
    """A slot's process has started and listens for its peers at the data address."""

    attempt: int
    slot_index: int
    host: str
    data_address: Address
    pid: int
    executor_id: str = ""
    task_manager: str = ""
    """The id of the TaskManager it runs in, if it knows."""


@dataclass(frozen=True, slots=True)
class TaskStateChanged:
    """A task entered the state named as in Flink's ExecutionState; ``failure`` comes with FAILED."""

    attempt: int
    vertex_id: str
    subtask: int
    state: str
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class ReaderStarted:
    """A source reader is ready to be given splits."""

    attempt: int
    vertex_id: str
    operator_id: str
    subtask: int
    host: str | None = None


@dataclass(frozen=True, slots=True)
class RequestSplit:
    """A source reader has nothing left to read."""

    attempt: int
    vertex_id: str
    operator_id: str
    subtask: int
    host: str | None = None


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """An event of a source reader for its enumerator."""

    attempt: int
    vertex_id: str
    operator_id: str
    subtask: int
    event: Any


@dataclass(frozen=True, slots=True)
class ReportWatermark:
    """How far a source subtask of a watermark alignment group has come; MAX if it is idle or has ended."""

    attempt: int
    vertex_id: str
    operator_id: str
    subtask: int
    group: str
    watermark: int
    max_drift: int


@dataclass(frozen=True, slots=True)
class ClientPayload:
    """Print lines or collected records for the client.

    A channel belongs to one sink operator. In each attempt a subtask numbers its payloads 0, 1, 2, …
    They are pickled on their own, so that one that cannot be read does not take the connection down.
    """

    attempt: int
    channel: str
    subtask: int
    sequence: int
    payload: Any
    last_checkpoint_id: int = 0
    """The last checkpoint whose barrier the sink had seen: it does not contain the payload, the next one does."""


@dataclass(frozen=True, slots=True)
class MetricReport:
    """The present value of a slot's metrics, by scope and name."""

    attempt: int
    slot_index: int
    metrics: Mapping[MetricScope, Mapping[str, Any]]
    accumulators: Accumulators = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The slot is alive; ``sent_at`` is its own wall clock in milliseconds.

    ``rss_bytes`` is the memory its process has now, ``cpu_ms`` the time it has computed since it started; 0 if
    unknown.
    """

    attempt: int
    slot_index: int
    sent_at: int
    rss_bytes: int = 0
    cpu_ms: int = 0


@dataclass(frozen=True, slots=True)
class AcknowledgeCheckpoint:
    """A task's part of a checkpoint is safely stored."""

    attempt: int
    checkpoint_id: int
    vertex_id: str
    subtask: int
    # not in stories: state may have thousands of handles
    state: TaskStateSnapshot = field(repr=False)
    metrics: CheckpointMetrics = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeclineCheckpoint:
    """A task cannot take its part in a checkpoint."""

    attempt: int
    checkpoint_id: int
    vertex_id: str
    subtask: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskAwaitsCheckpoint:
    """A task has finished its work and ends with the next checkpoint that completes."""

    attempt: int
    vertex_id: str
    subtask: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a slot was asked, as plain data that every process can read; with an ``error`` there is no value."""

    attempt: int
    slot_index: int
    request_id: int
    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SlotStopped:
    """The slot has closed all its tasks, after a Shutdown or a CancelSlot, and exits."""

    attempt: int
    slot_index: int
    accumulators: Accumulators


@dataclass(frozen=True, slots=True)
class SlotFailed:
    """The slot cannot go on, has closed all its tasks and exits."""

    attempt: int
    slot_index: int
    failure: TaskFailure
    accumulators: Accumulators = field(default_factory=dict)


# JobMaster -> slot


@dataclass(frozen=True, slots=True)
class HeartbeatReceived:
    """The answer to a Heartbeat: the JobMaster is alive, and the slot is one of those it runs the job in."""


@dataclass(frozen=True, slots=True)
class Deploy:
    """All slots are there: connect to the peers (data addresses by slot index) and start the tasks."""

    attempt: int
    peers: Mapping[int, Address]
    slots_total: int
    restore: Mapping[TaskKey, TaskRestore] = field(default_factory=dict)
    """What the slot's tasks start from, where that is a checkpoint or savepoint."""
    storage_token: str | None = None
    """Where checkpoints are taken: a mark that the slot must find in the checkpoint directory."""


@dataclass(frozen=True, slots=True)
class AddSplits:
    """Splits for one source reader, in order."""

    operator_id: str
    subtask: int
    splits: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NoMoreSplits:
    """The reader has got all the splits it will get."""

    operator_id: str
    subtask: int


@dataclass(frozen=True, slots=True)
class ReaderEvent:
    """An event of an enumerator for one of its readers."""

    operator_id: str
    subtask: int
    event: Any


@dataclass(frozen=True, slots=True)
class AlignWatermark:
    """The source subtask waits while its watermark is beyond this one."""

    operator_id: str
    subtask: int
    max_allowed: int


@dataclass(frozen=True, slots=True)
class TriggerCheckpoint:
    """The tasks named begin the checkpoint: sources, and tasks whose producers are all gone."""

    checkpoint_id: int
    timestamp: int
    options: CheckpointOptions
    tasks: tuple[TaskKey, ...]


@dataclass(frozen=True, slots=True)
class NotifyCheckpointComplete:
    """The checkpoint exists: what was prepared for it may be committed."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyCheckpointAborted:
    """The checkpoint will never exist."""

    checkpoint_id: int
    is_expired: bool = False
    """Whether it took longer than ``execution.checkpointing.timeout``."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A query to a slot; see ``slot_answers`` for the kinds."""

    request_id: int
    question: Any


@dataclass(frozen=True, slots=True)
class SendBeforeBarrier:
    """A sink sends what comes before a checkpoint's barrier, although the client has not read what it sent before."""

    channel: str
    subtask: int
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ClientAck:
    """The client has taken this payload and every one before it on the same channel and subtask."""

    channel: str
    subtask: int
    sequence: int


@dataclass(frozen=True, slots=True)
class CancelSlot:
    """Stop all tasks without finishing them, then send SlotStopped."""

    reason: str
    job_is_over: bool = False
    """Whether no other attempt follows, so that nothing need be kept on this host."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """All tasks of the job have finished: send SlotStopped and exit."""


SlotMessage: TypeAlias = (
    RegisterSlot
    | TaskStateChanged
    | ReaderStarted
    | RequestSplit
    | SourceEvent
    | ReportWatermark
    | ClientPayload
    | MetricReport
    | Heartbeat
    | AcknowledgeCheckpoint
    | DeclineCheckpoint
    | TaskAwaitsCheckpoint
    | Answer
    | SlotStopped
    | SlotFailed
)
"""What a slot sends."""

JobMasterMessage: TypeAlias = (
    Deploy
    | AddSplits
    | NoMoreSplits
    | ReaderEvent
    | AlignWatermark
    | TriggerCheckpoint
    | NotifyCheckpointComplete
    | NotifyCheckpointAborted
    | Ask
    | ClientAck
    | SendBeforeBarrier
    | HeartbeatReceived
    | CancelSlot
    | Shutdown
)
"""What the JobMaster sends."""
