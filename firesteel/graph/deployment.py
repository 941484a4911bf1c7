"""From a JobGraph to what each slot is told to run."""

from __future__ import annotations

from collections import defaultdict

from firesteel.config import options
from firesteel.graph.channels import connections, edge_name
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.slots import assign_slots
from firesteel.runtime.codegen.inlining import register_inline_expressions
from firesteel.runtime.model.deployment import (
    ChannelDescriptor,
    InputDescriptor,
    OperatorDescriptor,
    OutputDescriptor,
    TaskDeploymentDescriptor,
)
from firesteel.runtime.model.partitioner import CustomPartitioner, Partitioner

__all__ = ["create_deployment"]


def create_deployment(job_graph: JobGraph, attempt: int) -> list[list[TaskDeploymentDescriptor]]:
    """The tasks of every slot, upstream tasks first. Channel ids follow from the graph alone."""
    register_inline_expressions(job_graph.inline_expressions)
    slots = assign_slots(job_graph)
    outputs: dict[tuple[str, int], list[OutputDescriptor]] = defaultdict(list)
    inputs: dict[tuple[str, int], list[InputDescriptor]] = defaultdict(list)
    next_channel = 0
    for edge in job_graph.edges:
        producer, consumer = job_graph.vertex(edge.source_vertex), job_graph.vertex(edge.target_vertex)
        reader = consumer.operator(edge.target_node_id).node
        name = edge_name(job_graph, edge)
        unaligned = all(_can_be_overtaken(each.partitioner, job_graph) for each in consumer.input_edges)
        by_producer: dict[int, list[ChannelDescriptor]] = defaultdict(list)
        by_consumer: dict[int, list[ChannelDescriptor]] = defaultdict(list)
        for source, target in connections(edge.partitioner, producer.parallelism, consumer.parallelism):
            channel = ChannelDescriptor(
                next_channel,
                source,
                target,
                slots.slot_of(producer.id, source),
                slots.slot_of(consumer.id, target),
            )
            next_channel += 1
            by_producer[source].append(channel)
            by_consumer[target].append(channel)
        for subtask, channels in by_producer.items():
            outputs[producer.id, subtask].append(
                OutputDescriptor(
                    edge.source_node_id,
                    edge.output_tag,
                    edge.partitioner,
                    consumer.max_parallelism,
                    consumer.name,
                    tuple(channels),
                    edge.buffer_timeout,
                    reader.name,
                    reader.uid,
                    reader.defined_at,
                    name,
                    reader.spec.associative_reduction(),
                    unaligned,
                )
            )
        for subtask, channels in by_consumer.items():
            descriptor = InputDescriptor(edge.input_index, tuple(channels), name, edge.partitioner, unaligned)
            inputs[consumer.id, subtask].append(descriptor)
    deployment: list[list[TaskDeploymentDescriptor]] = [[] for _ in range(slots.total)]
    for vertex in job_graph.vertices:
        operators = _operators(vertex)
        for subtask in range(vertex.parallelism):
            slot = slots.slot_of(vertex.id, subtask)
            deployment[slot].append(
                TaskDeploymentDescriptor(
                    vertex.id,
                    vertex.name,
                    subtask,
                    vertex.parallelism,
                    vertex.max_parallelism,
                    attempt,
                    slot,
                    operators,
                    tuple(inputs[vertex.id, subtask]),
                    tuple(outputs[vertex.id, subtask]),
                    job_graph.configuration,
                    job_graph.job_id,
                    run_id=job_graph.run_id,
                )
            )
    return deployment


def _can_be_overtaken(partitioner: Partitioner, job_graph: JobGraph) -> bool:
    """Whether an unaligned barrier overtakes records that are sent so."""
    if isinstance(partitioner, CustomPartitioner):
        return job_graph.configuration.get(options.FORCE_UNALIGNED)
    return partitioner.can_be_overtaken


def _operators(vertex: JobVertex) -> tuple[OperatorDescriptor, ...]:
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
