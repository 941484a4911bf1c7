"""Transformations: the nodes that API methods create, linked by their inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.partitioner import StreamPartitioner

if TYPE_CHECKING:
    from firesteel.runtime.operators.sink import SinkSpec

__all__ = [
    "CacheTransformation",
    "ChainingStrategy",
    "OneInputTransformation",
    "PartitionTransformation",
    "PhysicalTransformation",
    "ResourceProfile",
    "SideOutputTransformation",
    "SinkTransformation",
    "SourceTransformation",
    "Transformation",
    "TwoInputTransformation",
    "UnionTransformation",
]

_ids = itertools.count(1)


class ChainingStrategy(Enum):
    """Whether an operator may share a task with its neighbours."""

    ALWAYS = "ALWAYS"
    """With its predecessor and with its successors."""
    HEAD = "HEAD"
    """With its successors only: a new chain starts here."""
    NEVER = "NEVER"
    """Not chained."""


@dataclass(frozen=True)
class ResourceProfile:
    """What a slot sharing group asks of each of its slots; None means unspecified."""

    cpu_cores: float | None = None
    task_heap_memory_mb: int | None = None
    task_off_heap_memory_mb: int | None = None
    managed_memory_mb: int | None = None
    external_resources: tuple[tuple[str, float], ...] = ()


@dataclass(eq=False, kw_only=True)
class Transformation:
    """One step of a program. Inputs never change; the rest may be set until the program is executed.

    Two transformations are equal only if they are the same object. ``id`` is unique in the process and
    grows in the order of creation. ``None`` for parallelism, max parallelism, slot sharing group or buffer
    timeout means that the graph decides.
    """

    name: str
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None
    resource_profile: ResourceProfile | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout: int | None = None
    output_type: Any = None
    defined_at: str | None = None
    """``file.py:12``: the user's line that made this step."""
    part_of: Transformation | None = None
    """The step that this one was made for, which the user has a name for; its uid is derived from that one's."""
    id: int = field(default_factory=lambda: next(_ids), init=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The transformations this one reads from, in order."""
        return ()

    def transitive_predecessors(self) -> Iterator[Transformation]:
        """This transformation and all it reads from, each once, nearest first."""
        seen: set[int] = set()
        pending: list[Transformation] = [self]
        while pending:
            current = pending.pop(0)
            if current.id not in seen:
                seen.add(current.id)
                yield current
                pending.extend(current.inputs)


@dataclass(eq=False, kw_only=True)
class PhysicalTransformation(Transformation):
    """A transformation that becomes an operator, unlike those that only define how records are partitioned."""

    @property
    def operator_spec(self) -> OperatorSpec:
        """What the operator is to do."""
        raise NotImplementedError

    @property
    def state_key_selectors(self) -> tuple[Any, ...]:
        """One key selector (or None) per input; empty if the operator has no keyed state."""
        return ()


@dataclass(eq=False)
class SourceTransformation(PhysicalTransformation):
    """Reads a source."""

    spec: OperatorSpec

    @property
    def operator_spec(self) -> OperatorSpec:
        """What the operator is to do."""
        return self.spec


@dataclass(eq=False)
class OneInputTransformation(PhysicalTransformation):
    """Applies an operator to one stream; with a key selector the operator has keyed state."""

    input: Transformation
    spec: OperatorSpec
    key_selector: Any = None
    key_type: Any = None

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The one input."""
        return (self.input,)

    @property
    def operator_spec(self) -> OperatorSpec:
        """What the operator is to do."""
        return self.spec

    @property
    def state_key_selectors(self) -> tuple[Any, ...]:
        """The input's key selector, if the operator is keyed."""
        return () if self.key_selector is None else (self.key_selector,)


@dataclass(eq=False)
class TwoInputTransformation(PhysicalTransformation):
    """Applies an operator to two connected streams; input indices are 0 and 1."""

    input1: Transformation
    input2: Transformation
    spec: OperatorSpec
    key_selectors: tuple[Any, Any] = (None, None)
    key_type: Any = None

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """Both inputs."""
        return (self.input1, self.input2)

    @property
    def operator_spec(self) -> OperatorSpec:
        """What the operator is to do."""
        return self.spec

    @property
    def state_key_selectors(self) -> tuple[Any, ...]:
        """The inputs' key selectors, if the operator is keyed on at least one of them."""
        return () if self.key_selectors == (None, None) else tuple(self.key_selectors)


@dataclass(eq=False)
class SinkTransformation(PhysicalTransformation):
    """Writes a stream to a sink."""

    input: Transformation
    spec: SinkSpec

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The one input."""
        return (self.input,)

    @property
    def operator_spec(self) -> OperatorSpec:
        """What the operator is to do."""
        return self.spec


@dataclass(eq=False)
class PartitionTransformation(Transformation):
    """Defines how records of a stream are partitioned for the next operator; creates no operator itself."""

    input: Transformation
    partitioner: StreamPartitioner
    name: str = field(default="Partition", kw_only=True)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The one input."""
        return (self.input,)


@dataclass(eq=False)
class CacheTransformation(Transformation):
    """A result that is kept after the first job that computes it; creates no operator itself."""

    input: Transformation
    reading: Transformation | None = None
    """Reads the result, once it is there."""
    name: str = field(default="Cache", kw_only=True)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """What the result is computed or read by."""
        return (self.input if self.reading is None else self.reading,)


@dataclass(eq=False)
class UnionTransformation(Transformation):
    """Several streams of one type as one; makes no operator itself."""

    union_inputs: Sequence[Transformation]
    name: str = field(default="Union", kw_only=True)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """All streams of the union."""
        return tuple(self.union_inputs)


@dataclass(eq=False)
class SideOutputTransformation(Transformation):
    """The records an operator sent to one side output; makes no operator itself."""

    input: Transformation
    tag: OutputTag
    name: str = field(default="SideOutput", kw_only=True)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """The one input."""
        return (self.input,)
