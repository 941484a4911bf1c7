"""Creates the task deployment descriptors of a JobGraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.config import checkpointing_options
from firesteel.graph.channels import Connections, connections, edge_name
from firesteel.graph.job_graph import JobEdge, JobGraph, JobVertex
from firesteel.graph.slots import SlotAssignment, assign_slots
from firesteel.runtime.model.deployment import (
    ChannelDescriptor,
    ChannelRange,
    InputDescriptor,
    OperatorDescriptor,
    OutputDescriptor,
    TaskDeploymentDescriptor,
)
from firesteel.runtime.model.partitioner import CustomPartitioner, StreamPartitioner

__all__ = ["Deployment"]


class Deployment:
    """The tasks of an attempt, each computed when it is asked for.

    Channel ids follow from the graph alone, so every slot computes its own tasks and agrees with all others on the
    channels between them. What that takes does not depend on the number of slots.
    """

    def __init__(self, job_graph: JobGraph, attempt: int):
        self._job_graph = job_graph
        self._attempt = attempt
        self._slots = assign_slots(job_graph)
        self._edges: dict[int, _DeployedEdge] = {}
        self._operators: dict[str, tuple[OperatorDescriptor, ...]] = {}
        first_channel = 0
        for edge in job_graph.edges:
            deployed = self._edges[edge.id] = _DeployedEdge.of(job_graph, edge, self._slots, first_channel)
            first_channel += len(deployed.connections)

    def tasks_in(self, slot: int) -> list[TaskDeploymentDescriptor]:
        """The tasks of a slot, upstream tasks first."""
        return [
            self.task(self._job_graph.vertex(vertex_id), subtask)
            for vertex_id, subtask in self._slots.subtasks_in(slot)
        ]

    def task(self, vertex: JobVertex, subtask: int) -> TaskDeploymentDescriptor:
        """One subtask of a vertex."""
        return TaskDeploymentDescriptor(
            vertex.id,
            vertex.name,
            subtask,
            vertex.parallelism,
            vertex.max_parallelism,
            self._attempt,
            self._slots.slot_of(vertex.id, subtask),
            self._operators_of(vertex),
            tuple(self._edges[edge.id].input_of(subtask) for edge in vertex.input_edges),
            tuple(self._edges[edge.id].output_of(subtask) for edge in vertex.output_edges),
            self._job_graph.configuration,
            self._job_graph.job_id,
            self._job_graph.execution.traits,
            self._job_graph.run_id,
        )

    def _operators_of(self, vertex: JobVertex) -> tuple[OperatorDescriptor, ...]:
        if vertex.id not in self._operators:
            self._operators[vertex.id] = _describe_operators(vertex)
        return self._operators[vertex.id]


@dataclass(frozen=True)
class _DeployedEdge:
    """A job edge whose channels have ids and whose ends have slots."""

    edge: JobEdge
    name: str
    connections: Connections
    first_channel: int
    """The id of the edge's channel with number 0."""
    producer_slot: int
    """The slot of the producer's subtask 0; the others follow."""
    consumer_slot: int
    consumer: JobVertex
    unaligned: bool

    @classmethod
    def of(cls, job_graph: JobGraph, edge: JobEdge, slots: SlotAssignment, first_channel: int) -> _DeployedEdge:
        producer, consumer = job_graph.vertex(edge.source_vertex), job_graph.vertex(edge.target_vertex)
        return cls(
            edge,
            edge_name(job_graph, edge),
            connections(edge.partitioner, producer.parallelism, consumer.parallelism),
            first_channel,
            slots.slot_of(producer.id, 0),
            slots.slot_of(consumer.id, 0),
            consumer,
            all(_can_be_overtaken(each.partitioner, job_graph) for each in consumer.input_edges),
        )

    def input_of(self, consumer: int) -> InputDescriptor:
        producers = self.connections.producers_of(consumer)
        channels = [self._channel(producer, consumer) for producer in producers[:2]]
        return InputDescriptor(
            self.edge.input_index,
            _range_of(channels, len(producers)),
            self.name,
            self.edge.partitioner,
            self.unaligned,
        )

    def output_of(self, producer: int) -> OutputDescriptor:
        reader = self.consumer.operator(self.edge.target_node_id).node
        consumers = self.connections.consumers_of(producer)
        channels = [self._channel(producer, consumer) for consumer in consumers[:2]]
        return OutputDescriptor(
            self.edge.source_node_id,
            self.edge.output_tag,
            self.edge.partitioner,
            self.consumer.max_parallelism,
            self.consumer.name,
            _range_of(channels, len(consumers)),
            self.edge.buffer_timeout,
            reader.name,
            reader.uid,
            reader.defined_at,
            self.name,
            reader.spec.associative_reduction(),
            self.unaligned,
        )

    def _channel(self, producer: int, consumer: int) -> ChannelDescriptor:
        return ChannelDescriptor(
            self.first_channel + self.connections.number(producer, consumer),
            producer,
            consumer,
            self.producer_slot + producer,
            self.consumer_slot + consumer,
        )


def _range_of(channels: Sequence[ChannelDescriptor], length: int) -> ChannelRange:
    """So many channels, which go on as the first ones do."""
    steps = (later - earlier for earlier, later in zip(channels[0], channels[-1], strict=True))
    return ChannelRange(channels[0], ChannelDescriptor(*steps), length)


def _can_be_overtaken(partitioner: StreamPartitioner, job_graph: JobGraph) -> bool:
    """Whether an unaligned barrier overtakes records that are sent so."""
    if isinstance(partitioner, CustomPartitioner):
        return job_graph.configuration.get(checkpointing_options.FORCE_UNALIGNED)
    return partitioner.can_be_overtaken


def _describe_operators(vertex: JobVertex) -> tuple[OperatorDescriptor, ...]:
    descriptors = []
    for chained in vertex.operators:
        node = chained.node
        parent = chained.inputs[0] if chained.inputs else None
        descriptors.append(
            OperatorDescriptor(
                node.id,
                node.operator_id,
                node.name,
                node.spec,
                node.uid,
                node.key_selectors,
                node.output_type,
                node.defined_at,
                None if parent is None else parent.source_id,
                None if parent is None else parent.output_tag,
            )
        )
    return tuple(descriptors)
