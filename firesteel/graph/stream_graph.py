"""StreamGraph: operators and the edges between them, not yet chained or placed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import Execution, JobType, boundedness_of
from firesteel.graph.transformation import ChainingStrategy, ResourceProfile
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.partitioner import StreamPartitioner
from firesteel.spi.source import Boundedness

__all__ = ["StreamEdge", "StreamGraph", "StreamNode"]


@dataclass(frozen=True)
class StreamNode:
    """One operator with all its settings decided."""

    id: int
    name: str
    spec: OperatorSpec
    parallelism: int
    max_parallelism: int
    operator_id: str
    """32 hex digits, the same in every run of the same program; state is found by it."""
    slot_sharing_group: str
    uid: str | None = None
    uid_hash: str | None = None
    description: str = ""
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout: int = 100
    """Milliseconds until a buffer leaves even if not full; 0: at once, -1: only when full."""
    key_selectors: tuple[Any, ...] = ()
    """One per input if the operator has keyed state, else empty."""
    key_type: Any = None
    output_type: Any = None
    defined_at: str | None = None
    max_parallelism_configured: bool = False
    """Whether the program set the max parallelism; if not, a restored job takes over that of its state."""

    @property
    def is_source(self) -> bool:
        """Whether this operator reads a source."""
        return self.spec.get_source() is not None

    @property
    def is_sink(self) -> bool:
        """Whether this operator writes to a sink."""
        return self.spec.get_sink() is not None


@dataclass(frozen=True)
class StreamEdge:
    """Carries one output of an operator to one input of another.

    ``index`` distinguishes edges that are otherwise equal, such as those of a stream in union with itself.
    """

    index: int
    source_id: int
    target_id: int
    input_index: int
    partitioner: StreamPartitioner
    output_tag: OutputTag | None = None


@dataclass(frozen=True)
class StreamGraph:
    """Nodes in topological order, and edges in the order in which they enter their targets."""

    job_name: str
    configuration: Configuration
    nodes: tuple[StreamNode, ...]
    edges: tuple[StreamEdge, ...]
    execution: Execution
    chaining_enabled: bool = True
    chain_different_max_parallelism: bool = True
    slot_resources: dict[str, ResourceProfile] = field(default_factory=dict)

    @cached_property
    def _nodes_by_id(self) -> dict[int, StreamNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _in_edges(self) -> dict[int, tuple[StreamEdge, ...]]:
        return self._grouped(lambda edge: edge.target_id)

    @cached_property
    def _out_edges(self) -> dict[int, tuple[StreamEdge, ...]]:
        return self._grouped(lambda edge: edge.source_id)

    def _grouped(self, end: Callable[[StreamEdge], int]) -> dict[int, tuple[StreamEdge, ...]]:
        grouped: dict[int, list[StreamEdge]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            grouped[end(edge)].append(edge)
        return {node_id: tuple(edges) for node_id, edges in grouped.items()}

    def node(self, node_id: int) -> StreamNode:
        """The node with that id."""
        return self._nodes_by_id[node_id]

    def in_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """The edges that enter a node, first input first."""
        return self._in_edges[node_id]

    def out_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """The edges that leave a node."""
        return self._out_edges[node_id]

    @property
    def sources(self) -> tuple[StreamNode, ...]:
        """The nodes that read a source."""
        return tuple(node for node in self.nodes if node.is_source)

    @property
    def sinks(self) -> tuple[StreamNode, ...]:
        """The nodes that write to a sink."""
        return tuple(node for node in self.nodes if node.is_sink)

    @property
    def job_type(self) -> JobType:
        """Whether the job is a batch, in terms of Flink's REST API."""
        return self.execution.job_type

    @property
    def boundedness(self) -> Boundedness:
        """Whether the job ends by itself: all its sources do."""
        return boundedness_of(self.nodes)
