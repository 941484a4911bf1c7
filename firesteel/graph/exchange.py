"""Exchange modes between vertices: the rules, each with its reason in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobEdge, JobGraph
from firesteel.runtime.model.partitioner import BroadcastPartitioner, KeyGroupPartitioner

__all__ = [
    "CHAINED",
    "EXCHANGE_TYPES",
    "EdgeExchange",
    "ExchangeKind",
    "exchange_of",
]


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
class EdgeExchange:
    """How records cross one edge, with the reason in words."""

    kind: ExchangeKind
    type: str
    """The name in a plan of Flink's REST API: ``pipelined_bounded`` or ``blocking``; ``chained`` within a task."""
    reason: str
    is_grouped_by_key: bool = False
    """Whether the consumer gets all records of a key together, one key after the other."""

    def describe(self) -> str:
        """For plans: ``pipelined``, ``blocking (Spark shuffle), grouped by key``."""
        return self.kind.value + (", grouped by key" if self.is_grouped_by_key else "")


CHAINED = EdgeExchange(ExchangeKind.CHAINED, "chained", "both operators run as one task")
"""What every edge within a chain has."""


def exchange_of(job_graph: JobGraph, edge: JobEdge) -> EdgeExchange:
    """How records cross an edge between two vertices; those within a chain are CHAINED."""
    execution = job_graph.execution.kind
    kind = ExchangeKind.PIPELINED if execution is JobExecution.PIPELINED else ExchangeKind.BLOCKING
    grouped = False
    if execution is JobExecution.PIPELINED:
        reason = "both tasks run concurrently, and records are sent as they are produced"
    elif execution is JobExecution.EPOCHS:
        reason = "an epoch is one Spark job, and each vertex is a stage of it"
    elif grouped := _is_keyed(job_graph, edge):
        reason = "a batch processes one key after the other, so the shuffle groups the records by key"
    elif _is_read_first(job_graph, edge):
        reason = "each vertex of a batch is a stage, and the broadcast side is read first"
    else:
        reason = "each vertex of a batch is a stage"
    return EdgeExchange(kind, EXCHANGE_TYPES[execution], reason, grouped)


def _is_keyed(job_graph: JobGraph, edge: JobEdge) -> bool:
    if not isinstance(edge.partitioner, KeyGroupPartitioner):
        return False
    # a key_by before an operator without keyed state only determines where records go
    selectors = job_graph.vertex(edge.target_vertex).head.node.key_selectors
    return edge.input_index < len(selectors) and selectors[edge.input_index] is not None


def _is_read_first(job_graph: JobGraph, edge: JobEdge) -> bool:
    inputs = {other.input_index for other in job_graph.vertex(edge.target_vertex).input_edges}
    return isinstance(edge.partitioner, BroadcastPartitioner) and len(inputs) > 1
