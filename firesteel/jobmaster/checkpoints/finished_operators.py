"""Operators that had finished when a checkpoint was taken, and job graphs in which they have vertices of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from firesteel.graph.job_graph import ChainedOperator, JobEdge, JobGraph, JobVertex
from firesteel.graph.job_graph_generator import chain_name
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState

__all__ = ["finished_operators", "is_fully_finished", "separate_finished"]


def is_fully_finished(state: OperatorState | None) -> bool:
    """Whether all subtasks of an operator had finished."""
    return state is not None and len(state.finished) == state.parallelism


def finished_operators(job_graph: JobGraph, states: Mapping[str, OperatorState]) -> set[int]:
    """The nodes that are not run any more: they had finished, and so had all that they read from.

    An operator that the checkpoint does not have is one of them if it stands between such operators: nothing can come
    to it, and nobody would read what it emits. The ids of operators without uid depend on how they are chained, so this
    happens when a program is restored at another parallelism.
    """
    inputs, consumers = _neighbours(job_graph)
    nodes = {node.id: node for node in job_graph.nodes()}
    reached: dict[int, bool] = {}
    """Nodes to which nothing can come, and whether the checkpoint has them."""
    for id, node in nodes.items():
        state = states.get(node.operator_id)
        is_left_out = state is None and not node.is_source
        if (is_left_out or is_fully_finished(state)) and all(source in reached for source in inputs[id]):
            reached[id] = not is_left_out
    for id in reversed(list(reached)):
        if not reached[id] and (not consumers[id] or any(consumer not in reached for consumer in consumers[id])):
            del reached[id]
    finished: set[int] = set()
    for id in nodes:
        if id in reached and all(source in finished for source in inputs[id]):
            finished.add(id)
    return finished


def separate_finished(job_graph: JobGraph, metadata: CheckpointMetadata) -> JobGraph:
    """The job with finished operators in vertices of their own, which are not run.

    Operators that are chained now may not have been when the checkpoint was taken: with another parallelism, or without
    chaining, a source has a task of its own, which can end before those behind it.
    """
    finished = finished_operators(job_graph, {state.operator_id: state for state in metadata.operators})
    if all(len({operator.node.id in finished for operator in vertex.operators}) == 1 for vertex in job_graph.vertices):
        return job_graph
    vertices: list[JobVertex] = []
    edges = list(job_graph.edges)
    home: dict[int, str] = {}
    for vertex in job_graph.vertices:
        chains: dict[int, list[ChainedOperator]] = {}
        head_of: dict[int, int] = {}
        for operator in vertex.operators:
            node = operator.node
            cut = [edge for edge in operator.inputs if edge.source_id in finished and node.id not in finished]
            for edge in cut:
                edges.append(
                    JobEdge(
                        id=len(edges),
                        source_vertex="",
                        source_node_id=edge.source_id,
                        target_vertex="",
                        target_node_id=node.id,
                        input_index=edge.input_index,
                        partitioner=edge.partitioner,
                        output_tag=edge.output_tag,
                        buffer_timeout=vertex.operator(edge.source_id).node.buffer_timeout,
                    )
                )
            is_head = operator.is_head or bool(cut)
            head_of[node.id] = node.id if is_head else head_of[operator.inputs[0].source_id]
            chains.setdefault(head_of[node.id], []).append(ChainedOperator(node) if cut else operator)
        for operators in chains.values():
            id = operators[0].node.operator_id
            home.update((operator.node.id, id) for operator in operators)
            vertices.append(replace(vertex, id=id, name=chain_name(operators), operators=tuple(operators)))
    placed = tuple(
        replace(edge, source_vertex=home[edge.source_node_id], target_vertex=home[edge.target_node_id])
        for edge in edges
    )
    return replace(job_graph, vertices=tuple(_connected(vertex, placed) for vertex in vertices), edges=placed)


def _connected(vertex: JobVertex, edges: tuple[JobEdge, ...]) -> JobVertex:
    return replace(
        vertex,
        input_edges=tuple(edge for edge in edges if edge.target_vertex == vertex.id),
        output_edges=tuple(edge for edge in edges if edge.source_vertex == vertex.id),
    )


def _neighbours(job_graph: JobGraph) -> tuple[Mapping[int, list[int]], Mapping[int, list[int]]]:
    """The nodes that each node reads from, and those that read from it."""
    pairs = [(edge.source_node_id, edge.target_node_id) for edge in job_graph.edges]
    pairs += [
        (edge.source_id, operator.node.id)
        for vertex in job_graph.vertices
        for operator in vertex.operators
        for edge in operator.inputs
    ]
    inputs: dict[int, list[int]] = defaultdict(list)
    consumers: dict[int, list[int]] = defaultdict(list)
    for source, target in pairs:
        inputs[target].append(source)
        consumers[source].append(target)
    return inputs, consumers
