"""Commands to the tasks of a batch or an epoch, and their reports. All of them are pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.jobmaster.model.log_line import LogLine
from firesteel.runtime.codegen.inlining import InlineTable
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = ["BatchCommand", "BatchReport", "EpochCommand", "EpochReport", "StageTaskDescriptor"]


@dataclass(frozen=True)
class StageTaskDescriptor:
    """One subtask and where its outputs go."""

    task: TaskDeploymentDescriptor
    input_edges: tuple[int, ...] = ()
    """The job edge of each of the task's inputs."""
    output_edges: tuple[int, ...] = ()
    """The job edge of each of the task's outputs."""
    output_offsets: tuple[int, ...] = ()
    """For each output the partition of its consumer's subtask 0."""
    inline_expressions: InlineTable = field(default_factory=dict)
    """To be registered in the task's process before its chain is built (``register_inline_expressions``)."""


@dataclass(frozen=True)
class BatchCommand:
    """All that one subtask of a batch job gets besides its rows."""

    descriptor: StageTaskDescriptor
    splits: tuple[Any, ...] = ()
    """What a source reads."""


@dataclass(frozen=True)
class EpochCommand:
    """One subtask's part of one epoch."""

    descriptor: StageTaskDescriptor
    epoch: int
    """The number of the checkpoint the epoch ends with."""
    version: int | None
    """The epoch after which the task's state is to be found as it was left; None if it starts from ``restore``."""
    restore: TaskRestore | None = None
    """What to load where that is not at hand: a worker that is new, or another one than last time."""
    is_restorable: bool = True
    """Whether ``restore`` (also None: from nothing) is that state; else a worker without it fails the epoch."""
    messages: tuple[JobMasterMessage, ...] = ()
    """In order; the last one is the TriggerCheckpoint of the epoch."""
    quota: int = 1 << 62
    """How many records a source may read."""
    budget_ms: int = 60_000
    """How long a source may go on reading."""
    is_last: bool = False
    """The job stops with this epoch, and continues in a later run: sinks flush as at the end of input."""


@dataclass(frozen=True)
class EpochReport:
    """How an epoch went for one subtask; for the host of the epochs, not for the JobMaster."""

    vertex_id: str
    subtask: int
    epoch: int
    records: int = 0
    """Records read, from a source or from rows."""
    host: str = ""
    at_records: tuple[float, float] | None = None
    """From when to when the task was at records, in seconds of its host's monotonic clock; None if there were none."""
    reloaded: bool = False
    """Whether its state had to be loaded."""
    next_timer: int | None = None
    """When the first processing-time timer is due, in milliseconds of the wall clock."""
    ready_in_ms: int | None = None
    """For a source that has read all there is: in how many milliseconds there may be more; None if unknown."""
    ran_dry: bool = True
    """Whether a source had read all there was before its quota was used up."""
    pending_records: int | None = None
    """A source's backlog, where its reader knows it."""
    ended: bool = False
    run: str = ""
    """Names this run of the task: another one if the task is run again."""
    read_runs: dict[tuple[int, int], str] = field(default_factory=dict)
    """The runs whose output the task has read, by edge and subtask of the producer (see ``mixed_runs``)."""
    output_edges: tuple[int, ...] = ()
    gauges: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchReport:
    """How a subtask of a batch job ended; where it has much for the client, parts of that come ahead."""

    vertex_id: str
    subtask: int
    part: int = 0
    """The place among those of the subtask."""
    accumulators: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    """As Task.metrics() gives them."""
    committables: dict[str, list[Any]] = field(default_factory=dict)
    """What its sinks prepared, by operator id."""
    client_payloads: tuple[tuple[str, bytes], ...] = ()
    """Client channels and what was sent to them, in order."""
    printed: tuple[tuple[str, str], ...] = ()
    """What functions printed: (stdout or stderr, text)."""
    logged: tuple[LogLine, ...] = ()
    """What functions logged."""
