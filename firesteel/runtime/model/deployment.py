"""Task deployment descriptors: one per subtask, self-contained and picklable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, NamedTuple, overload

from firesteel.api.output_tag import OutputTag
from firesteel.config.configuration import Configuration
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.partitioner import StreamPartitioner
from firesteel.spi.execution_traits import PIPELINED, ExecutionTraits

__all__ = [
    "ChannelDescriptor",
    "ChannelRange",
    "InputDescriptor",
    "OperatorDescriptor",
    "OutputDescriptor",
    "TaskDeploymentDescriptor",
]

MAX_LOG_NAME = 60
"""The maximum length of a task's name in a log line."""


@dataclass(frozen=True)
class OperatorDescriptor:
    """One operator of a chain. ``parent`` is the chained operator that feeds it, None for the head."""

    node_id: int
    operator_id: str
    name: str
    spec: OperatorSpec
    uid: str | None = None
    key_selectors: tuple[Any, ...] = ()
    output_type: Any = None
    defined_at: str | None = None
    parent: int | None = None
    parent_tag: OutputTag | None = None


class ChannelDescriptor(NamedTuple):
    """One producer subtask to one consumer subtask, and the slots they run in; the id is unique in the job."""

    id: int
    producer: int
    consumer: int
    producer_slot: int
    consumer_slot: int


@dataclass(frozen=True)
class ChannelRange(Sequence[ChannelDescriptor]):
    """Channels at equal distances, each created when it is read: the same few numbers at any parallelism.

    >>> channels = ChannelRange(ChannelDescriptor(1, 0, 1, 0, 1), step=ChannelDescriptor(4, 1, 0, 1, 0), length=3)
    >>> [(channel.id, channel.producer, channel.consumer) for channel in channels]
    [(1, 0, 1), (5, 1, 1), (9, 2, 1)]
    >>> channels[-1].producer_slot
    2
    """

    first: ChannelDescriptor
    step: ChannelDescriptor
    """What each field grows by from one channel to the next."""
    length: int

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[ChannelDescriptor]:
        """The channels in order."""
        return islice(map(ChannelDescriptor, *map(count, self.first, self.step)), self.length)

    @overload
    def __getitem__(self, index: int) -> ChannelDescriptor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ChannelDescriptor, ...]: ...
    def __getitem__(self, index: int | slice) -> ChannelDescriptor | tuple[ChannelDescriptor, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = range(self.length)[index]
        return ChannelDescriptor(*(start + place * step for start, step in zip(self.first, self.step, strict=True)))


@dataclass(frozen=True)
class InputDescriptor:
    """The channels of one job edge that end in this subtask."""

    input_index: int
    channels: Sequence[ChannelDescriptor]
    edge: str = ""
    """Names the edge across restarts, independently of the parallelism: see ChannelStateHandle."""
    partitioner: StreamPartitioner | None = None
    unaligned: bool = True
    """Whether an unaligned barrier overtakes records here: all inputs of a task are alike."""


@dataclass(frozen=True)
class OutputDescriptor:
    """The channels of one job edge that start in this subtask."""

    node_id: int
    tag: OutputTag | None
    partitioner: StreamPartitioner
    consumer_max_parallelism: int
    consumer_name: str
    channels: Sequence[ChannelDescriptor]
    buffer_timeout: int = 100
    consumer_operator: str | None = None
    """The operator at the other end, which a key selector or partitioner on the way belongs to."""
    consumer_uid: str | None = None
    consumer_defined_at: str | None = None
    edge: str = ""
    reduction: tuple[str, int | str] | None = None
    """What the consumer does with the records of a key, if that may be done to parts of them before: ``sum``, ``min``
    or ``max``, and of which field."""
    unaligned: bool = True
    """As in InputDescriptor, of the consumer."""


@dataclass(frozen=True)
class TaskDeploymentDescriptor:
    """One subtask of one vertex."""

    vertex_id: str
    name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    attempt: int
    slot: int
    operators: tuple[OperatorDescriptor, ...]
    inputs: tuple[InputDescriptor, ...] = ()
    outputs: tuple[OutputDescriptor, ...] = ()
    configuration: Configuration = field(default_factory=Configuration)
    job_id: str = ""
    execution: ExecutionTraits = PIPELINED
    run_id: str = ""
    """Drawn when the job was submitted: a job that is started again under the same id has another."""

    @property
    def name_with_subtask(self) -> str:
        """As Flink prints it: ``Map -> Filter (1/2)#0``."""
        return f"{self.name} ({self.subtask + 1}/{self.parallelism})#{self.attempt}"

    @property
    def log_name(self) -> str:
        """The same with the name shortened, for log lines."""
        name = self.name if len(self.name) <= MAX_LOG_NAME else f"{self.name[: MAX_LOG_NAME - 1]}…"
        return f"{name} ({self.subtask + 1}/{self.parallelism})#{self.attempt}"
