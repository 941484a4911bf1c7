"""JobGraph: vertices, each a chain of operators run as one task, and their edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from firesteel.api.output_tag import OutputTag
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import Execution, JobType, boundedness_of
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.graph.transformation import ResourceProfile
from firesteel.runtime.codegen.inlining import InlineTable
from firesteel.runtime.model.partitioner import StreamPartitioner
from firesteel.spi.source import Boundedness

__all__ = ["ChainedOperator", "JobEdge", "JobGraph", "JobVertex"]


@dataclass(frozen=True)
class ChainedOperator:
    """An operator in a chain, with the chained edges that feed it; the head of a chain has none.

    The edge's ``source_id`` is the node of the same chain that calls this one, and its ``output_tag`` names
    the output.
    """

    node: StreamNode
    inputs: tuple[StreamEdge, ...] = ()

    @property
    def is_head(self) -> bool:
        """Whether this operator reads the task's input gates, or a source."""
        return not self.inputs


@dataclass(frozen=True)
class JobEdge:
    """Carries records from one vertex to another through channels.

    ``id`` is the edge's index in the JobGraph. Vertices are named by id, operators by node id.
    """

    id: int
    source_vertex: str
    source_node_id: int
    target_vertex: str
    target_node_id: int
    input_index: int
    partitioner: StreamPartitioner
    output_tag: OutputTag | None = None
    buffer_timeout: int = 100


@dataclass(frozen=True)
class JobVertex:
    """A chain of operators that runs as one task in each of ``parallelism`` subtasks."""

    id: str
    name: str
    operators: tuple[ChainedOperator, ...]
    """The chain, which is a tree: the head first, and every operator after the one that feeds it."""
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    input_edges: tuple[JobEdge, ...] = ()
    output_edges: tuple[JobEdge, ...] = ()

    @property
    def head(self) -> ChainedOperator:
        """The operator that gets the task's input."""
        return self.operators[0]

    @property
    def is_source(self) -> bool:
        """Whether the vertex reads a source instead of other vertices."""
        return self.head.node.is_source

    def operator(self, node_id: int) -> ChainedOperator:
        """The chained operator of a node."""
        return next(operator for operator in self.operators if operator.node.id == node_id)

    def consumers(self, node_id: int) -> tuple[ChainedOperator, ...]:
        """The operators of the chain that a node feeds, main output and side outputs alike."""
        return tuple(
            operator for operator in self.operators if any(edge.source_id == node_id for edge in operator.inputs)
        )


@dataclass(frozen=True)
class JobGraph:
    """A job, ready to run: self-contained and picklable with cloudpickle."""

    job_id: str
    job_name: str
    configuration: Configuration
    vertices: tuple[JobVertex, ...]
    """In topological order, sources first."""
    edges: tuple[JobEdge, ...]
    execution: Execution
    slot_resources: dict[str, ResourceProfile] = field(default_factory=dict)
    inline_expressions: InlineTable = field(default_factory=dict)
    """Bodies of user functions that slots may write into their loops instead of calls."""
    run_id: str = ""
    """Drawn when the job is submitted, so that the remains of two runs of the same job can be distinguished."""

    @cached_property
    def _vertices_by_id(self) -> dict[str, JobVertex]:
        return {vertex.id: vertex for vertex in self.vertices}

    def vertex(self, vertex_id: str) -> JobVertex:
        """The vertex with that id."""
        return self._vertices_by_id[vertex_id]

    def nodes(self) -> Iterator[StreamNode]:
        """All operators of all vertices."""
        return (operator.node for vertex in self.vertices for operator in vertex.operators)

    @property
    def job_type(self) -> JobType:
        """Whether the job is a batch, in terms of Flink's REST API."""
        return self.execution.job_type

    @property
    def boundedness(self) -> Boundedness:
        """Whether the job ends by itself: all its sources do."""
        return boundedness_of(self.nodes())

    @property
    def total_subtasks(self) -> int:
        """How many tasks the job has when it runs."""
        return sum(vertex.parallelism for vertex in self.vertices)
