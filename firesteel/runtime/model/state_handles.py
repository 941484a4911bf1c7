"""State handles: locations of checkpointed state, sent in acknowledgements and stored in ``_metadata``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from firesteel.runtime.model.key_groups import KEY_ENCODING, KeyGroupRange

__all__ = [
    "BROADCAST",
    "CANONICAL",
    "SPLIT",
    "UNION",
    "ChannelStateHandle",
    "FileSegment",
    "InlineBytes",
    "KeyedPart",
    "KeyedStateHandle",
    "OperatorStateHandle",
    "OperatorSubtaskState",
    "StateBytes",
    "StateMeta",
    "TaskStateSnapshot",
]

SPLIT, UNION, BROADCAST = "split", "union", "broadcast"
"""How operator state is shared out among the subtasks of a restored operator."""

CANONICAL = "canonical"
"""The format of keyed state that every backend reads; the other formats are named like their backend."""


@dataclass(frozen=True, slots=True)
class FileSegment:
    """Bytes of a state file; ``checksum`` is of these bytes alone."""

    path: str
    """Absolute: a local path, or a URI with a scheme."""
    offset: int
    length: int
    checksum: str


@dataclass(frozen=True, slots=True)
class InlineBytes:
    """State so small that it stands in the metadata itself."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


StateBytes: TypeAlias = FileSegment | InlineBytes


@dataclass(frozen=True, slots=True)
class StateMeta:
    """What is known of one keyed state (or timer queue) without reading it."""

    name: str
    kind: str
    """value, list, map, reducing, aggregating; or timers."""
    type: str | None = None
    """The declared type, as text."""
    ttl: bool = False
    entries: int = 0
    """How many keys (and namespaces) have a value, or how many timers there are; may be an estimate."""


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """A piece of keyed state. What its name and its place among the parts mean is its format's business."""

    name: str
    data: StateBytes
    key_groups: tuple[tuple[int, int, int], ...] | None = None
    """Where it is indexed (canonical): (key group, offset within data, length), in order of key groups."""


@dataclass(frozen=True, slots=True)
class KeyedStateHandle:
    """The keyed state and timers of one operator in one subtask."""

    format: str
    """``canonical``, or the name of the backend that wrote it and alone can read it."""
    key_groups: KeyGroupRange
    parts: tuple[KeyedPart, ...]
    states: tuple[StateMeta, ...] = ()
    key_encoding: int = KEY_ENCODING
    """How its keys were encoded, which decides about their key groups."""

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(part.data.length for part in self.parts)


@dataclass(frozen=True, slots=True)
class OperatorStateHandle:
    """One named list of operator state of one subtask: ``data`` is a pickled list of pickled items."""

    name: str
    mode: str
    """SPLIT (items are dealt out), UNION (every subtask gets all items) or BROADCAST (all subtasks wrote the same)."""
    items: int
    data: StateBytes


@dataclass(frozen=True, slots=True)
class OperatorSubtaskState:
    """Everything one operator of one subtask has in a checkpoint."""

    keyed: KeyedStateHandle | None = None
    operator: tuple[OperatorStateHandle, ...] = ()
    watermark: int | None = None
    """How far event time had come; only of an operator that reads channels."""

    @property
    def size(self) -> int:
        """Bytes, shared ones included."""
        return (self.keyed.size if self.keyed else 0) + sum(handle.data.length for handle in self.operator)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to restore."""
        return (self.keyed is None or not self.keyed.parts) and not any(handle.items for handle in self.operator)


@dataclass(frozen=True, slots=True)
class ChannelStateHandle:
    """Buffers of one channel that an unaligned barrier overtook, in order: those at the consumer, then the producer's.

    ``data`` is a pickled list of items; an item is the bytes of a serialised batch, or a control event.
    """

    edge: str
    """``<operator id of the producer>-><operator id of the consumer>#<input index>``."""
    producer: int
    consumer: int
    at_producer: bool
    data: StateBytes


@dataclass(frozen=True, slots=True)
class TaskStateSnapshot:
    """What one task acknowledges."""

    operators: Mapping[str, OperatorSubtaskState] = field(default_factory=dict)
    """By operator id."""
    channels: tuple[ChannelStateHandle, ...] = ()
    finished: bool = False
    """All its input had ended and its operators had finished before the barrier."""

    def segments(self) -> Iterator[FileSegment]:
        """Every file segment the snapshot needs."""
        for state in self.operators.values():
            yield from segments_of(state)
        for channel in self.channels:
            if isinstance(channel.data, FileSegment):
                yield channel.data

    @property
    def size(self) -> int:
        """Bytes of all state, whether written for this checkpoint or shared with older ones."""
        return sum(state.size for state in self.operators.values()) + sum(c.data.length for c in self.channels)


def segments_of(state: OperatorSubtaskState) -> Iterator[FileSegment]:
    """Every file segment of an operator's state."""
    parts: list[Any] = list(state.keyed.parts) if state.keyed else []
    for holder in (*parts, *state.operator):
        if isinstance(holder.data, FileSegment):
            yield holder.data
