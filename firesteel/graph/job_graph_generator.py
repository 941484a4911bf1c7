"""Turns a StreamGraph into a JobGraph: chainable operators become one vertex."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from firesteel.config.pipeline_options import INLINE_FUNCTIONS
from firesteel.graph.chaining import is_chainable
from firesteel.graph.job_graph import ChainedOperator, JobEdge, JobGraph, JobVertex
from firesteel.graph.stream_graph import StreamEdge, StreamGraph
from firesteel.runtime.codegen.functions import program_function
from firesteel.runtime.codegen.inlining import InlineTable, find_inline_expressions

__all__ = ["chain_name", "create_job_graph"]


def create_job_graph(stream_graph: StreamGraph, job_id: str | None = None) -> JobGraph:
    """Chains operators into vertices; without a job id a new one is made.

    A node whose only input edge is chainable joins the vertex of its producer, any other node starts a
    vertex. So a chain is a tree, edges between vertices end at heads, and since nodes come in topological
    order, so do the operators of a chain and the vertices.
    """
    chained = {edge.index for edge in stream_graph.edges if is_chainable(edge, stream_graph)}
    head_of: dict[int, int] = {}
    chains: dict[int, list[ChainedOperator]] = {}
    for node in stream_graph.nodes:
        inputs = tuple(edge for edge in stream_graph.in_edges(node.id) if edge.index in chained)
        head_of[node.id] = head_of[inputs[0].source_id] if inputs else node.id
        chains.setdefault(head_of[node.id], []).append(ChainedOperator(node, inputs))

    vertex_ids = {head: operators[0].node.operator_id for head, operators in chains.items()}
    edges = tuple(
        _job_edge(index, edge, stream_graph, vertex_ids[head_of[edge.source_id]], vertex_ids[edge.target_id])
        for index, edge in enumerate(e for e in stream_graph.edges if e.index not in chained)
    )
    return JobGraph(
        job_id=job_id or uuid.uuid4().hex,
        job_name=stream_graph.job_name,
        configuration=stream_graph.configuration,
        vertices=tuple(_job_vertex(operators, edges) for operators in chains.values()),
        edges=edges,
        execution=stream_graph.execution,
        slot_resources=dict(stream_graph.slot_resources),
        inline_expressions=_inline_expressions(stream_graph),
    )


def _inline_expressions(stream_graph: StreamGraph) -> InlineTable:
    if not stream_graph.configuration.get(INLINE_FUNCTIONS):
        return {}
    functions: list[Any] = []
    for node in stream_graph.nodes:
        spec = node.spec
        functions += [getattr(spec, "function", None), getattr(spec, "key_selector", None), *node.key_selectors]
    functions += [getattr(edge.partitioner, "key_selector", None) for edge in stream_graph.edges]
    return find_inline_expressions(map(program_function, functions))


def chain_name(operators: Sequence[ChainedOperator]) -> str:
    """The chain as Flink prints it: ``Source: a -> Map -> (Filter, Sink: b)``."""
    parts: dict[int, str] = {}
    consumers: dict[int, list[int]] = {operator.node.id: [] for operator in operators}
    for operator in operators:
        for edge in operator.inputs:
            consumers[edge.source_id].append(operator.node.id)
    for operator in reversed(operators):
        names = [parts[node_id] for node_id in consumers[operator.node.id]]
        if not names:
            parts[operator.node.id] = operator.node.name
        else:
            rest = names[0] if len(names) == 1 else f"({', '.join(names)})"
            parts[operator.node.id] = f"{operator.node.name} -> {rest}"
    return parts[operators[0].node.id]


def _job_edge(index: int, edge: StreamEdge, graph: StreamGraph, source: str, target: str) -> JobEdge:
    return JobEdge(
        id=index,
        source_vertex=source,
        source_node_id=edge.source_id,
        target_vertex=target,
        target_node_id=edge.target_id,
        input_index=edge.input_index,
        partitioner=edge.partitioner,
        output_tag=edge.output_tag,
        buffer_timeout=graph.node(edge.source_id).buffer_timeout,
    )


def _job_vertex(operators: list[ChainedOperator], edges: Sequence[JobEdge]) -> JobVertex:
    head = operators[0].node
    return JobVertex(
        id=head.operator_id,
        name=chain_name(operators),
        operators=tuple(operators),
        parallelism=head.parallelism,
        max_parallelism=head.max_parallelism,
        slot_sharing_group=head.slot_sharing_group,
        input_edges=tuple(edge for edge in edges if edge.target_vertex == head.operator_id),
        output_edges=tuple(edge for edge in edges if edge.source_vertex == head.operator_id),
    )
