"""Partitioners: how records are distributed from one vertex to the next, as values on graph edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = [
    "BroadcastPartitioner",
    "CommittablePartitioner",
    "CustomPartitioner",
    "ForwardPartitioner",
    "GlobalPartitioner",
    "KeyGroupPartitioner",
    "RebalancePartitioner",
    "RescalePartitioner",
    "ShufflePartitioner",
    "StreamPartitioner",
]


@dataclass(frozen=True)
class StreamPartitioner:
    """Root of all partitioners; ``name`` is what Flink's plans print."""

    name: ClassVar[str] = ""
    is_pointwise: ClassVar[bool] = False
    can_be_overtaken: ClassVar[bool] = True
    """Whether records in flight may be part of a checkpoint: after rescaling it must be known where they belong.

    Behind a forward edge it is unknown which subtask continues with the records of a key, or of a split: they would
    come to another one than the records that follow, and could be processed after them. Of a broadcast, some subtasks
    may have read what others have not: with another number of them, each cannot get it once. A partitioner of the
    user's own is asked again, and if it does not answer as before, a record goes to several subtasks or to none."""


@dataclass(frozen=True)
class ForwardPartitioner(StreamPartitioner):
    """Subtask i to subtask i; the only one that allows chaining."""

    name: ClassVar[str] = "FORWARD"
    is_pointwise: ClassVar[bool] = True
    can_be_overtaken: ClassVar[bool] = False


@dataclass(frozen=True)
class KeyGroupPartitioner(StreamPartitioner):
    """To the subtask that owns the key's key group."""

    key_selector: Any
    name: ClassVar[str] = "HASH"


@dataclass(frozen=True)
class RebalancePartitioner(StreamPartitioner):
    """Round robin over all subtasks."""

    name: ClassVar[str] = "REBALANCE"


@dataclass(frozen=True)
class RescalePartitioner(StreamPartitioner):
    """Round robin over the few subtasks a producer is connected to."""

    name: ClassVar[str] = "RESCALE"
    is_pointwise: ClassVar[bool] = True
    can_be_overtaken: ClassVar[bool] = False


@dataclass(frozen=True)
class ShufflePartitioner(StreamPartitioner):
    """To a random subtask."""

    name: ClassVar[str] = "SHUFFLE"


@dataclass(frozen=True)
class BroadcastPartitioner(StreamPartitioner):
    """To every subtask."""

    name: ClassVar[str] = "BROADCAST"
    can_be_overtaken: ClassVar[bool] = False


@dataclass(frozen=True)
class GlobalPartitioner(StreamPartitioner):
    """To subtask 0."""

    name: ClassVar[str] = "GLOBAL"


@dataclass(frozen=True)
class CommittablePartitioner(GlobalPartitioner):
    """What writers prepared, to the one committer.

    An unaligned barrier does not overtake it: a committer that commits a checkpoint has all of it, and may remove the
    files of earlier attempts that belong to no commit.
    """

    can_be_overtaken: ClassVar[bool] = False


@dataclass(frozen=True)
class CustomPartitioner(StreamPartitioner):
    """To the subtask the user's partitioner names for the user's key."""

    partitioner: Any
    key_selector: Any
    name: ClassVar[str] = "CUSTOM"
    can_be_overtaken: ClassVar[bool] = False
