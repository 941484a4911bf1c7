"""Rescales a JobGraph to the available slots."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from firesteel.common.errors import InvalidProgramError
from firesteel.graph.execution_graph import ExecutionAttempt, ExecutionGraph
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.slots import slot_counts
from firesteel.runtime.model.partitioner import ForwardPartitioner

__all__ = [
    "has_same_parallelism",
    "limit_parallelism",
    "parallelism_limit",
    "rescale_execution_graph",
    "slots_at",
    "with_parallelism",
]


def parallelism_limit(groups: Collection[int], slots: int) -> int | None:
    """The largest parallelism at which slot sharing groups of the given widths fit into the slots; None if none is.

    A group never gets more than it requests, nor less than one slot. What the limit leaves over stays unused: every
    group has the same limit, so that vertices joined by a forward edge keep the same parallelism.

    >>> parallelism_limit([4], 3)
    3
    >>> parallelism_limit([4, 1], 3)
    2
    >>> parallelism_limit([4, 4], 5)
    2
    >>> parallelism_limit([4, 4], 1) is None
    True
    """
    limits = range(max(groups), 0, -1)
    return next((limit for limit in limits if slots_at(groups, limit) <= slots), None)


def slots_at(groups: Collection[int], limit: int) -> int:
    """How many slots the groups take at that limit."""
    return sum(min(group, limit) for group in groups)


def limit_parallelism(job_graph: JobGraph, slots: int) -> JobGraph:
    """The job with no vertex wider than the largest limit that fits into the slots; the job itself if all of it fits.

    The same number of slots gives the same graph wherever it is computed, also the number that the limited graph
    itself takes.

    >>> from firesteel.config.configuration import Configuration
    >>> from firesteel.graph.execution import Execution, JobExecution
    >>> vertices = [JobVertex(name, name, (), wide, 128, "default") for name, wide in [("Source", 1), ("Map", 4)]]
    >>> execution = Execution(JobExecution.PIPELINED, "it is the default")
    >>> job = JobGraph("id", "job", Configuration(), tuple(vertices), (), execution)
    >>> [vertex.parallelism for vertex in limit_parallelism(job, 3).vertices]
    [1, 3]
    >>> limit_parallelism(job, 4) is job
    True
    """
    groups = slot_counts(job_graph).values()
    limit = parallelism_limit(groups, slots)
    if limit is None:
        raise ValueError(f"the job has {len(groups)} slot sharing groups, which do not fit into {slots} slots")
    if limit >= max(groups):
        return job_graph
    return replace(job_graph, vertices=tuple(_limited(vertex, limit) for vertex in job_graph.vertices))


def _limited(vertex: JobVertex, limit: int) -> JobVertex:
    return vertex if vertex.parallelism <= limit else _at(vertex, limit)


def _at(vertex: JobVertex, parallelism: int) -> JobVertex:
    operators = tuple(
        replace(operator, node=replace(operator.node, parallelism=parallelism)) for operator in vertex.operators
    )
    return replace(vertex, operators=operators, parallelism=parallelism)


def with_parallelism(job_graph: JobGraph, parallelism: Mapping[str, int]) -> JobGraph:
    """The job with vertices, given by id, at another parallelism; InvalidProgramError where that cannot be."""
    vertices = {vertex.id: vertex for vertex in job_graph.vertices}
    for vertex_id, wanted in parallelism.items():
        vertex = vertices.get(vertex_id)
        if vertex is None:
            raise InvalidProgramError(f"Job '{job_graph.job_name}' has no vertex {vertex_id}.")
        if not 1 <= wanted <= vertex.max_parallelism:
            raise InvalidProgramError(
                f"'{vertex.name}' cannot run with parallelism {wanted}: at least 1 and, because of its maximum "
                f"parallelism, at most {vertex.max_parallelism} are possible.",
                hint="The maximum is fixed when a job first runs: see pipeline.max-parallelism.",
            )
        vertices[vertex_id] = _at(vertex, wanted)
    for edge in job_graph.edges:
        source, target = vertices[edge.source_vertex], vertices[edge.target_vertex]
        if isinstance(edge.partitioner, ForwardPartitioner) and source.parallelism != target.parallelism:
            raise InvalidProgramError(
                f"'{source.name}' forwards its records to '{target.name}', so both need the same parallelism, "
                f"not {source.parallelism} and {target.parallelism}."
            )
    return replace(job_graph, vertices=tuple(vertices.values()))


def has_same_parallelism(one: JobGraph, other: JobGraph) -> bool:
    """Whether every vertex of a job has the same parallelism in two of its graphs."""
    return [vertex.parallelism for vertex in one.vertices] == [vertex.parallelism for vertex in other.vertices]


def rescale_execution_graph(graph: ExecutionGraph, job_graph: JobGraph, timestamp: int) -> ExecutionGraph:
    """The next attempt of every subtask, at another parallelism; a subtask that was there before keeps its attempts.

    The current attempts must have ended, or never have begun.
    """
    rescaled = ExecutionGraph(job_graph, timestamp)
    for vertex in rescaled.vertices():
        before = graph.job_vertices[vertex.vertex_id].task_vertices
        if vertex.subtask_index < len(before):
            old = before[vertex.subtask_index]
            vertex.previous.extend(old.previous)
            number = old.current.attempt_number
            if old.current.state.is_terminal:
                vertex.previous.append(old.current)
                number += 1
            vertex.current = ExecutionAttempt(vertex, number, vertex.slot, timestamp)
            vertex.has_changed()
    return rescaled
