"""Assigned state: the part of a checkpoint that each task of a restored job gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from firesteel.runtime.model.state_handles import (
    ChannelStateHandle,
    FileSegment,
    KeyedStateHandle,
    OperatorStateHandle,
)

__all__ = ["AssignedOperatorState", "RestoredOperator", "TaskRestore"]


@dataclass(frozen=True, slots=True)
class AssignedOperatorState:
    """The items ``start`` to ``stop`` (exclusive) of a list of operator state."""

    handle: OperatorStateHandle
    start: int
    stop: int

    @property
    def name(self) -> str:
        return self.handle.name

    @property
    def items(self) -> int:
        """How many items these are."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class RestoredOperator:
    """What one operator of one subtask starts with."""

    keyed: tuple[KeyedStateHandle, ...] = ()
    """Handles that hold key groups of the subtask; they may hold others too."""
    operator: tuple[AssignedOperatorState, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to restore."""
        return not self.keyed and not self.operator


@dataclass(frozen=True, slots=True)
class TaskRestore:
    """What one task starts with; a task of a restored job has one even if it gets no state."""

    checkpoint_id: int
    operators: Mapping[str, RestoredOperator] = field(default_factory=dict)
    """By operator id; operators without state are absent."""
    channels: tuple[ChannelStateHandle, ...] = ()
    """Buffers to be processed before anything else."""
    finished: bool = False
    """All subtasks of the vertex had finished: the task only notifies its consumers."""
    reusable: bool = False
    """Whether later checkpoints may share the files (the checkpoint belongs to the job)."""
    watermark: int | None = None
    """How far event time had come, if that is known: what was late stays late, also what was in flight."""
    rescaled: bool = False
    """The vertex or one it reads from has another parallelism now: ``channels`` may hold records of other subtasks."""

    def segments(self) -> Iterator[FileSegment]:
        """Every file segment the task will read, some of them perhaps more than once."""
        for operator in self.operators.values():
            for keyed in operator.keyed:
                for part in keyed.parts:
                    if isinstance(part.data, FileSegment):
                        yield part.data
            for assigned in operator.operator:
                if isinstance(assigned.handle.data, FileSegment):
                    yield assigned.handle.data
        for channel in self.channels:
            if isinstance(channel.data, FileSegment):
                yield channel.data
