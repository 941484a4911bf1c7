"""Which producer subtasks are connected to which consumer subtasks, and what edges are called in checkpoints."""

from __future__ import annotations

from firesteel.api.output_tag import OutputTag
from firesteel.graph.job_graph import JobEdge, JobGraph
from firesteel.runtime.model.partitioner import Partitioner

__all__ = ["connections", "edge_name"]


def connections(partitioner: Partitioner, producers: int, consumers: int) -> list[tuple[int, int]]:
    """All channels of an edge as (producer subtask, consumer subtask), in ascending order.

    FORWARD and RESCALE connect neighbours: with more producers than consumers each producer has one
    consumer, with fewer each consumer has one producer, and shares differ by at most one. All others
    connect everybody.

    >>> from firesteel.runtime.model.partitioner import RescalePartitioner
    >>> connections(RescalePartitioner(), 2, 4)
    [(0, 0), (0, 1), (1, 2), (1, 3)]
    >>> connections(RescalePartitioner(), 3, 2)
    [(0, 0), (1, 1), (2, 1)]
    """
    if producers < 1 or consumers < 1:
        raise ValueError(f"parallelism must be at least 1, not {producers} and {consumers}")
    if not partitioner.is_pointwise:
        return [(producer, consumer) for producer in range(producers) for consumer in range(consumers)]
    if producers >= consumers:
        return [
            (producer, consumer)
            for consumer in range(consumers)
            for producer in range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
        ]
    return [
        (producer, consumer)
        for producer in range(producers)
        for consumer in range(
            _ceil_div(producer * consumers, producers), _ceil_div((producer + 1) * consumers, producers)
        )
    ]


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def edge_name(job_graph: JobGraph, edge: JobEdge) -> str:
    """The name by which the channels of an edge are known in checkpoints; no two edges of a graph have the same."""
    consumer = job_graph.vertex(edge.target_vertex)
    writer = job_graph.vertex(edge.source_vertex).operator(edge.source_node_id).node
    reader = consumer.operator(edge.target_node_id).node
    tag = "" if edge.output_tag is None else f"[{edge.output_tag.tag_id}]"
    # a stream that is united with itself has several edges between the same two operators
    twins = sorted(each.id for each in consumer.input_edges if _ends(each) == _ends(edge))
    number = f".{twins.index(edge.id)}" if edge.id != twins[0] else ""
    return f"{writer.operator_id}{tag}->{reader.operator_id}#{edge.input_index}{number}"


def _ends(edge: JobEdge) -> tuple[int, OutputTag | None, int, int]:
    return edge.source_node_id, edge.output_tag, edge.target_node_id, edge.input_index
