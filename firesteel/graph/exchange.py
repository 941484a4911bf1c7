"""How a job is executed, and how records get from vertex to vertex: the rules, each with its reason in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from firesteel.common.errors import InvalidProgramError
from firesteel.config import exchange_options, options
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobEdge, JobGraph
from firesteel.graph.stream_graph import JobType, StreamGraph, StreamNode, boundedness_of
from firesteel.runtime.model.partitioner import BroadcastPartitioner, KeyGroupPartitioner
from firesteel.spi.connector import Boundedness

__all__ = [
    "CHAINED",
    "EXCHANGE_TYPES",
    "EdgeExchange",
    "ExchangeKind",
    "Execution",
    "JobExecution",
    "exchange_of",
    "execution_of",
]


class JobExecution(Enum):
    """The three ways to run a job graph."""

    PIPELINED = "pipelined"
    EPOCHS = "epochs"
    BATCH = "batch"


EXCHANGE_TYPES = {
    JobExecution.PIPELINED: "pipelined_bounded",
    JobExecution.EPOCHS: "blocking",
    JobExecution.BATCH: "blocking",
}
"""What Flink's REST API calls the exchanges between the vertices of a job."""


class ExchangeKind(Enum):
    """How records get from one operator to the next."""

    CHAINED = "chained"
    """By a call: both are one task."""
    PIPELINED = "pipelined"
    """Over the network, as they come, between tasks that run at the same time."""
    BLOCKING = "blocking (Spark shuffle)"
    """Through Spark's shuffle: the consumer starts when the producer is done."""


@dataclass(frozen=True)
class Execution:
    """How a job is executed, with the reason in words."""

    kind: JobExecution
    reason: str


@dataclass(frozen=True)
class EdgeExchange:
    """How records cross one edge, with the reason in words."""

    kind: ExchangeKind
    type: str
    """As Flink's REST API says it in a plan: ``pipelined_bounded`` or ``blocking``; ``chained`` within a task."""
    reason: str
    is_grouped_by_key: bool = False
    """Whether the consumer gets all records of a key together, one key after the other."""

    def describe(self) -> str:
        """For plans: ``pipelined``, ``blocking (Spark shuffle), grouped by key``."""
        return self.kind.value + (", grouped by key" if self.is_grouped_by_key else "")


CHAINED = EdgeExchange(ExchangeKind.CHAINED, "chained", "both operators run as one task")
"""What every edge within a chain has."""


def execution_of(graph: JobGraph | StreamGraph) -> Execution:
    """Decides by the runtime mode, the sources and the option execution.exchange.

    A batch job has Spark's shuffle between its stages. A streaming job is pipelined unless execution.exchange is
    spark: then it runs in epochs.
    """
    nodes = graph.nodes if isinstance(graph, StreamGraph) else graph.nodes()
    sources = [node for node in nodes if node.is_source]
    mode = graph.configuration.get(options.RUNTIME_MODE)
    exchange = graph.configuration.get(exchange_options.EXCHANGE)
    if graph.job_type is JobType.BATCH:
        execution = Execution(JobExecution.BATCH, _why_batch(mode, sources))
        if exchange == "pipelined":
            raise InvalidProgramError(
                f"The job is to run as a batch ({execution.reason}), which has Spark's shuffle between its stages, but "
                "execution.exchange is pipelined.",
                hint="Set execution.runtime-mode to STREAMING, or leave out execution.exchange.",
            )
        return execution
    if exchange == "spark":
        return Execution(JobExecution.EPOCHS, "execution.exchange is spark")
    return Execution(JobExecution.PIPELINED, _why_pipelined(mode, sources, graph.configuration))


def _why_batch(mode: str, sources: Iterable[StreamNode]) -> str:
    if mode == "BATCH":
        return "execution.runtime-mode is BATCH"
    return f"execution.runtime-mode is AUTOMATIC and all sources are bounded: {_names(sources)}"


def _why_pipelined(mode: str, sources: Iterable[StreamNode], configuration: Configuration) -> str:
    if configuration.get(exchange_options.EXCHANGE) == "pipelined":
        return "execution.exchange is pipelined"
    if mode == "AUTOMATIC":
        unbounded = [node for node in sources if boundedness_of([node]) is not Boundedness.BOUNDED]
        return f"execution.runtime-mode is AUTOMATIC and not all sources are bounded: {_names(unbounded)}"
    if configuration.contains(options.RUNTIME_MODE):
        return "execution.runtime-mode is STREAMING"
    return "it is the default"


def _names(sources: Iterable[StreamNode]) -> str:
    return ", ".join(f"'{node.name}'" for node in sources)


def exchange_of(job_graph: JobGraph, edge: JobEdge) -> EdgeExchange:
    """How records cross an edge between two vertices; those within a chain are CHAINED."""
    execution = execution_of(job_graph).kind
    kind = ExchangeKind.PIPELINED if execution is JobExecution.PIPELINED else ExchangeKind.BLOCKING
    grouped = False
    if execution is JobExecution.PIPELINED:
        reason = "both tasks run at the same time, and records are handed on as they come"
    elif execution is JobExecution.EPOCHS:
        reason = "an epoch is one Spark job, and each vertex is a stage of it"
    elif grouped := _is_keyed(job_graph, edge):
        reason = "a batch handles one key after the other, so the shuffle brings a key's records together"
    elif _is_read_first(job_graph, edge):
        reason = "each vertex of a batch is a stage, and the broadcast side is read first"
    else:
        reason = "each vertex of a batch is a stage"
    return EdgeExchange(kind, EXCHANGE_TYPES[execution], reason, grouped)


def _is_keyed(job_graph: JobGraph, edge: JobEdge) -> bool:
    if not isinstance(edge.partitioner, KeyGroupPartitioner):
        return False
    # a key_by before an operator without keyed state only says where records go
    selectors = job_graph.vertex(edge.target_vertex).head.node.key_selectors
    return edge.input_index < len(selectors) and selectors[edge.input_index] is not None


def _is_read_first(job_graph: JobGraph, edge: JobEdge) -> bool:
    inputs = {other.input_index for other in job_graph.vertex(edge.target_vertex).input_edges}
    return isinstance(edge.partitioner, BroadcastPartitioner) and len(inputs) > 1
