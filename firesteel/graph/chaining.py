"""Operator chaining: the rule that decides which operators share a task."""

from __future__ import annotations

from firesteel.graph.stream_graph import StreamEdge, StreamGraph
from firesteel.graph.transformation import ChainingStrategy
from firesteel.runtime.model.partitioner import ForwardPartitioner

__all__ = ["is_chainable"]


def is_chainable(edge: StreamEdge, graph: StreamGraph) -> bool:
    """Whether the operators at both ends of an edge run as one task, with a plain call between them.

    All of these must hold: chaining is enabled; the edge is the target's only input; it is FORWARD; both
    ends have the same parallelism and slot sharing group; neither chaining strategy forbids it; and both
    have the same max parallelism unless
    ``pipeline.operator-chaining.chain-operators-with-different-max-parallelism`` allows otherwise.
    """
    upstream, downstream = graph.node(edge.source_id), graph.node(edge.target_id)
    return (
        graph.chaining_enabled
        and len(graph.in_edges(downstream.id)) == 1
        and isinstance(edge.partitioner, ForwardPartitioner)
        and upstream.parallelism == downstream.parallelism
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        and (graph.chain_different_max_parallelism or upstream.max_parallelism == downstream.max_parallelism)
    )
