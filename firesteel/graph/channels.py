"""Channel assignment: which producer subtasks are connected to which consumer subtasks, and the channel ids."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.api.output_tag import OutputTag
from firesteel.graph.job_graph import JobEdge, JobGraph
from firesteel.runtime.model.partitioner import StreamPartitioner

__all__ = ["Connections", "connections", "edge_name"]


@dataclass(frozen=True)
class Connections:
    """The channels of an edge, numbered in ascending order of producer, then consumer.

    Every subtask has at least one. With ``is_pointwise`` they connect neighbours: with more producers than consumers
    each producer has one consumer, with fewer each consumer has one producer, and shares differ by at most one. Else
    they connect all producers with all consumers.

    >>> two_to_four = Connections(2, 4, is_pointwise=True)
    >>> [list(two_to_four.consumers_of(producer)) for producer in range(2)]
    [[0, 1], [2, 3]]
    >>> three_to_two = Connections(3, 2, is_pointwise=True)
    >>> [list(three_to_two.producers_of(consumer)) for consumer in range(2)]
    [[0], [1, 2]]
    """

    producers: int
    consumers: int
    is_pointwise: bool

    def __len__(self) -> int:
        """How many channels there are."""
        if self.is_pointwise:
            return max(self.producers, self.consumers)
        return self.producers * self.consumers

    def consumers_of(self, producer: int) -> range:
        """The subtasks that a producer sends to."""
        if not self.is_pointwise:
            return range(self.consumers)
        end = _ceil_div((producer + 1) * self.consumers, self.producers)
        if self.producers >= self.consumers:
            return range(end - 1, end)
        return range(_ceil_div(producer * self.consumers, self.producers), end)

    def producers_of(self, consumer: int) -> range:
        """The subtasks that a consumer receives from."""
        if not self.is_pointwise:
            return range(self.producers)
        start = consumer * self.producers // self.consumers
        if self.producers >= self.consumers:
            return range(start, (consumer + 1) * self.producers // self.consumers)
        return range(start, start + 1)

    def number(self, producer: int, consumer: int) -> int:
        """The number of the channel between two subtasks that are connected, counted from 0."""
        if not self.is_pointwise:
            return producer * self.consumers + consumer
        return producer if self.producers >= self.consumers else consumer


def connections(partitioner: StreamPartitioner, producers: int, consumers: int) -> Connections:
    """The channels of an edge: FORWARD and RESCALE connect neighbours, all others each with each."""
    if producers < 1 or consumers < 1:
        raise ValueError(f"parallelism must be at least 1, not {producers} and {consumers}")
    return Connections(producers, consumers, partitioner.is_pointwise)


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


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
