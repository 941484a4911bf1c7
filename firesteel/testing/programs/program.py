"""A program as data: a graph of nodes, each with the static type of the streams it makes.

A node knows four things: how it is drawn, which type its outputs have, how it is built with the DataStream API, and
what it means (for the oracle). The type of a stream has what is known of it in every run, so that a node is only put
where its result does not depend on timing.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from firesteel.testing.programs.oracle.flow import Flow, Mode
    from firesteel.testing.programs.running.building import Site

__all__ = ["EventTime", "Misfit", "Node", "Program", "Ref", "Sketch", "StreamType"]

T = TypeVar("T")


class Misfit(Exception):
    """A node cannot be put behind these inputs: its result would depend on timing, or it makes no sense there."""


class EventTime(Enum):
    """What is known of a stream's timestamps and watermarks."""

    NONE = "none"
    """Records have no timestamps, or such that differ from run to run."""
    SAFE = "safe"
    """No record is ever late. When watermarks come depends on timing."""
    EXACT = "exact"
    """Watermarks have a fixed place between the records; records may be late."""
    TAINTED = "tainted"
    """Whether a record is late depends on timing."""


@dataclass(frozen=True)
class StreamType:
    """What holds for a stream in every run."""

    shape: str
    time: EventTime = EventTime.NONE
    ordered: bool = False
    """Records with the same k come in the same order in every run."""
    lane: bool = False
    """All records pass through one subtask, in one order."""
    idle: bool = False
    """The stream may become idle and active again at any time."""
    settled: bool = True
    """The records are the same in every run; if not, only the sum of v for each k is."""
    width: int | None = None
    """The parallelism that the program sets, None for the job's."""
    disorder: int | None = None
    """By how much a timestamp can be below an earlier one of the same subtask, if that is known."""
    ascending: bool = False
    """Timestamps of records with the same k never go back. Only if ``ordered``."""
    volume: int = 0
    """How many records there are at most."""
    batchable: bool = True
    """The oracle knows what comes out in a batch."""
    batch_times: bool = True
    """In a batch, records have the timestamps that they have in a stream."""

    def at(self, parallelism: int | None) -> StreamType:
        """Returns the type as an operator with that parallelism sees it behind a forward edge, or a rebalance."""
        if parallelism == self.width:
            return self
        to_one = parallelism == 1
        lane = self.lane and to_one
        kept = self.time in (EventTime.SAFE, EventTime.NONE) and (lane or not self.idle)
        return replace(
            self,
            width=parallelism,
            lane=lane,
            ordered=self.ordered and to_one,
            ascending=self.ascending and to_one,
            time=self.time if kept else EventTime.TAINTED,
            disorder=self.disorder if self.lane or lane else None,
        )

    def shuffled(self, parallelism: int | None, *, ordered: bool = False) -> StreamType:
        """Returns the type behind an operator to which records go by key, or in turn.

        It has several input channels, except behind a single subtask: then it does not matter if that is idle.
        """
        is_single = self.lane and self.width == 1
        kept = self.time in (EventTime.SAFE, EventTime.NONE) and (is_single or not self.idle)
        return replace(
            self,
            width=parallelism,
            lane=False,
            ordered=ordered and self.ordered,
            ascending=ordered and self.ascending,
            time=self.time if kept else EventTime.TAINTED,
            disorder=None,
        )

    def in_event_time(self) -> StreamType:
        """Returns the type as an operator sees it that goes by timestamps."""
        return replace(self, batchable=self.batchable and self.batch_times)

    @property
    def has_event_time(self) -> bool:
        """Whether event-time operators have a result that can be known.

        Of several subtasks, one may learn later than the others that the source is active again, and be left behind.
        """
        return self.time in (EventTime.SAFE, EventTime.EXACT) and (self.lane or not self.idle)


@dataclass(frozen=True)
class Ref:
    """An output of a node: the main one, or a side output by its tag."""

    node: int
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class Node(ABC):
    """One operator of a program, or a source or a sink."""

    id: int
    inputs: tuple[Ref, ...] = ()
    parallelism: int | None = None
    chain: str = ""
    """``new`` starts a new chain, ``off`` disables chaining."""

    weight: ClassVar[float] = 1.0
    """How often the node is drawn, compared with others."""
    is_source: ClassVar[bool] = False
    is_sink: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a node that reads streams of the sketch; None if there are none that fit."""

    @abstractmethod
    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Returns the types of the outputs by tag (``""`` is the main output); raises Misfit."""

    @abstractmethod
    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls the DataStream API; returns the stream, or the sink."""

    @abstractmethod
    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Returns what comes out, by tag."""

    @property
    def kind(self) -> str:
        """What coverage counts the node as."""
        return type(self).__name__

    @property
    def mutates(self) -> bool:
        """Whether a function of the node changes objects that it has emitted or received."""
        return False

    @property
    def waits_for_time(self) -> bool:
        """Whether its results come with watermarks, and not with records."""
        return False

    @property
    def takes_time(self) -> bool:
        """Whether a function waits in real time for what its result rests on."""
        return False

    @property
    def functions(self) -> tuple[str, ...]:
        """The places where an exception of user code can be injected."""
        return ()

    def smaller(self) -> Iterator[Node]:
        """Yields nodes that do less, for programs that fail to be made small."""
        return iter(())

    @property
    def pinned(self) -> tuple[str, ...]:
        """The uids of its operators whose parallelism the program sets."""
        return () if self.parallelism is None else (f"node-{self.id}",)


@dataclass(frozen=True)
class Program:
    """A whole program: nodes in an order in which each comes after its inputs."""

    nodes: tuple[Node, ...]
    seed: str = ""
    ends: bool = True
    """Whether all sources end by themselves. If not, the job is stopped once it has given what it must give."""

    def types(self) -> dict[Ref, StreamType]:
        """Returns the type of every stream; raises Misfit if a node is where it cannot be."""
        types: dict[Ref, StreamType] = {}
        for node in self.nodes:
            try:
                inputs = [types[ref] for ref in node.inputs]
            except KeyError as missing:
                raise Misfit(f"{node.kind} {node.id} has no input {missing}") from None
            for tag, kind in node.infer(inputs).items():
                types[Ref(node.id, tag)] = kind
        return types

    @property
    def sinks(self) -> tuple[Node, ...]:
        """The nodes whose input is compared with the oracle."""
        return tuple(node for node in self.nodes if node.is_sink)

    @cached_property
    def volume(self) -> int:
        """How many records the largest of its streams has at most."""
        return max((kind.volume for kind in self.types().values()), default=0)

    @property
    def mutates(self) -> bool:
        """Whether any function changes objects that it has emitted or received."""
        return any(node.mutates for node in self.nodes)


@dataclass
class Sketch:
    """A program while it is drawn."""

    rng: random.Random
    ends: bool = True
    nodes: list[Node] = field(default_factory=list)
    types: dict[Ref, StreamType] = field(default_factory=dict)

    @property
    def next_id(self) -> int:
        """The id of the next node."""
        return len(self.nodes)

    def add(self, node: Node) -> bool:
        """Adds a node if it fits."""
        try:
            outputs = node.infer([self.types[ref] for ref in node.inputs])
        except Misfit:
            return False
        self.nodes.append(node)
        for tag, kind in outputs.items():
            self.types[Ref(node.id, tag)] = kind
        return True

    def pick(self, fits: Callable[[StreamType], bool] = lambda _type: True) -> Ref | None:
        """Draws a stream, preferring those that nothing reads yet."""
        refs = [ref for ref, kind in self.types.items() if fits(kind)]
        if not refs:
            return None
        unread = [ref for ref in refs if not self.is_read(ref)]
        return self.rng.choice(unread if unread and self.rng.random() < 0.8 else refs)

    def is_read(self, ref: Ref) -> bool:
        """Whether a node reads the stream."""
        return any(ref in node.inputs for node in self.nodes)

    def draw_chain(self) -> str:
        """Draws how a node is chained."""
        return self.rng.choices(("", "new", "off"), (8, 1, 1))[0]

    def draw_width(self) -> int | None:
        """Draws the parallelism of a keyed operator."""
        return self.rng.choices((None, 1, 2, 3), (8, 1, 1, 1))[0]

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return self.rng.random() < probability

    def choice(self, *options: T) -> T:
        """Draws one of the options."""
        return self.rng.choice(options)
