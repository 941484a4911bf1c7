"""State assignment: distributes the state of a checkpoint among the tasks of a job, also after rescaling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from firesteel.graph.channels import edge_name
from firesteel.graph.job_graph import JobEdge, JobGraph, JobVertex
from firesteel.jobmaster.checkpoints.finished_operators import finished_operators, separate_finished
from firesteel.jobmaster.checkpoints.operator_state_repartitioner import repartition
from firesteel.jobmaster.checkpoints.state_compatibility import adopt_max_parallelism, check_compatibility
from firesteel.jobmaster.model.task_key import TaskKey
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.assigned_state import RestoredOperator, TaskRestore
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.partitioner import (
    CustomPartitioner,
    GlobalPartitioner,
    KeyGroupPartitioner,
)
from firesteel.runtime.model.state_handles import ChannelStateHandle, KeyedStateHandle

__all__ = ["adopt_max_parallelism", "assign_state", "check_compatibility", "separate_finished"]


def assign_state(
    metadata: CheckpointMetadata, job_graph: JobGraph, *, allow_non_restored: bool, reusable: bool
) -> dict[TaskKey, TaskRestore]:
    """What every task of the job starts with; ``reusable`` if the checkpoint belongs to the job.

    Refuses what :func:`check_compatibility` refuses.
    """
    check_compatibility(metadata, job_graph, allow_non_restored)
    states = {state.operator_id: state for state in metadata.operators}
    channels = _assign_channels(metadata, job_graph, states)
    ended = finished_operators(job_graph, states)
    finished = {vertex.id for vertex in job_graph.vertices if vertex.head.node.id in ended}
    known = _known_vertices(job_graph, states)
    assigned: dict[TaskKey, TaskRestore] = {}
    for vertex in job_graph.vertices:
        restored = {
            operator.node.operator_id: _assign_operator(states[operator.node.operator_id], vertex)
            for operator in vertex.operators
            if operator.node.operator_id in states
        }
        rescaled = _is_rescaled(vertex, job_graph, states)
        head = states.get(vertex.head.node.operator_id) if vertex.id in known else None
        for subtask in range(vertex.parallelism):
            assigned[vertex.id, subtask] = TaskRestore(
                metadata.checkpoint_id,
                {id: each[subtask] for id, each in restored.items() if not each[subtask].is_empty},
                tuple(channels[vertex.id, subtask]),
                finished=vertex.id in finished,
                watermark=None if head is None else _watermark(head, subtask, vertex.parallelism),
                reusable=reusable,
                rescaled=rescaled,
            )
    return assigned


def _assign_operator(state: OperatorState, vertex: JobVertex) -> list[RestoredOperator]:
    lists = {subtask: each.operator for subtask, each in state.subtasks.items()}
    operator = repartition(lists, state.parallelism, vertex.parallelism)
    keyed = [each.keyed for _, each in sorted(state.subtasks.items()) if each.keyed is not None]
    return [
        RestoredOperator(tuple(_intersecting(keyed, subtask, vertex)), operator[subtask])
        for subtask in range(vertex.parallelism)
    ]


def _intersecting(handles: list[KeyedStateHandle], subtask: int, vertex: JobVertex) -> Iterator[KeyedStateHandle]:
    own = KeyGroupRange.of(subtask, vertex.max_parallelism, vertex.parallelism)
    for handle in handles:
        groups = handle.key_groups
        if groups.start <= own.end and own.start <= groups.end and (handle.parts or handle.states):
            yield handle


def _known_vertices(job_graph: JobGraph, states: Mapping[str, OperatorState]) -> set[str]:
    """Vertices that the checkpoint has, with all their inputs: only their event time continues where it was."""
    known: set[str] = set()
    for vertex in job_graph.vertices:
        if all(operator.node.operator_id in states for operator in vertex.operators) and all(
            edge.source_vertex in known for edge in vertex.input_edges
        ):
            known.add(vertex.id)
    return known


def _watermark(state: OperatorState, subtask: int, parallelism: int) -> int | None:
    """The subtask's own watermark; with another parallelism the lowest, which is true of all records."""
    if parallelism == state.parallelism:
        return state.subtasks[subtask].watermark if subtask in state.subtasks else None
    watermarks = [each.watermark for each in state.subtasks.values()]
    return min((each for each in watermarks if each is not None), default=None) if None not in watermarks else None


def _old_parallelism(vertex: JobVertex, states: Mapping[str, OperatorState]) -> int | None:
    known = (states.get(operator.node.operator_id) for operator in vertex.operators)
    return next((state.parallelism for state in known if state is not None), None)


def _is_rescaled(vertex: JobVertex, job_graph: JobGraph, states: Mapping[str, OperatorState]) -> bool:
    vertices = [vertex, *(job_graph.vertex(edge.source_vertex) for edge in vertex.input_edges)]
    return any(_old_parallelism(each, states) not in (None, each.parallelism) for each in vertices)


def _assign_channels(
    metadata: CheckpointMetadata, job_graph: JobGraph, states: Mapping[str, OperatorState]
) -> dict[TaskKey, list[ChannelStateHandle]]:
    """Records in flight go to the subtask they were on their way to, or where that does not exist any more, to others.

    Where the key decides, to all subtasks that own some of the old one's key groups, or to all if the user's own
    partitioner chooses; each takes its own records. Where it does not, to one.
    """
    assigned: dict[TaskKey, list[ChannelStateHandle]] = defaultdict(list)
    edges = {edge_name(job_graph, edge): edge for edge in job_graph.edges}
    # by edge and old subtask: every channel may have a handle, and most have their subtask in common
    takers: dict[tuple[str, int], list[int]] = {}
    order = sorted(metadata.channels, key=lambda each: (each.edge, each.producer, each.consumer, each.at_producer))
    for handle in order:
        edge = edges.get(handle.edge)
        if edge is not None:
            consumer = job_graph.vertex(edge.target_vertex)
            if (handle.edge, handle.consumer) not in takers:
                old = _old_parallelism(consumer, states) or consumer.parallelism
                takers[handle.edge, handle.consumer] = _takers(handle.consumer, edge, old, consumer)
            for subtask in takers[handle.edge, handle.consumer]:
                assigned[consumer.id, subtask].append(handle)
    return assigned


def _takers(old_subtask: int, edge: JobEdge, old_parallelism: int, vertex: JobVertex) -> list[int]:
    parallelism = vertex.parallelism
    if parallelism == old_parallelism:
        return [old_subtask]
    if isinstance(edge.partitioner, KeyGroupPartitioner):
        old = KeyGroupRange.of(old_subtask, vertex.max_parallelism, old_parallelism)
        ranges = (KeyGroupRange.of(each, vertex.max_parallelism, parallelism) for each in range(parallelism))
        return [each for each, own in enumerate(ranges) if own.start <= old.end and old.start <= own.end]
    if isinstance(edge.partitioner, GlobalPartitioner):
        return [0]
    if isinstance(edge.partitioner, CustomPartitioner):
        return list(range(parallelism))
    return [old_subtask % parallelism]
