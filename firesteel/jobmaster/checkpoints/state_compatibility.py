"""Compatibility check of a job with a checkpoint, made before anything is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from firesteel.common.errors import StateIncompatibleError
from firesteel.graph.channels import edge_name
from firesteel.graph.job_graph import ChainedOperator, JobGraph, JobVertex
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.checkpoints.finished_operators import finished_operators
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.key_groups import KeyGroupRange

__all__ = ["adopt_max_parallelism", "check_compatibility", "has_state"]


def check_compatibility(metadata: CheckpointMetadata, job_graph: JobGraph, allow_non_restored: bool) -> None:
    """Raises StateIncompatibleError, with the operator and a remedy, if the state does not match the program.

    With ``allow_non_restored`` state that belongs to no operator of the program is dropped. A job should go through
    :func:`adopt_max_parallelism` and :func:`separate_finished` first.
    """
    placed = {operator.node.operator_id: (vertex, operator.node) for vertex, operator in _operators(job_graph)}
    for state in metadata.operators:
        if state.operator_id in placed:
            vertex, node = placed[state.operator_id]
            _check_parallelism(state, vertex, node)
            _check_complete(state)
        elif has_state(state) and not allow_non_restored:
            raise _without_operator(state, job_graph)
    _check_channels(metadata, job_graph, allow_non_restored)
    _check_finished(metadata, job_graph)


def adopt_max_parallelism(job_graph: JobGraph, metadata: CheckpointMetadata) -> JobGraph:
    """The job with the max parallelism of its state, wherever the program did not set one itself.

    Not where that would be lower than the parallelism: :func:`check_compatibility` then raises an error.
    """
    states = {state.operator_id: state for state in metadata.operators}
    vertices: list[JobVertex] = []
    for vertex in job_graph.vertices:
        wanted = next((w for w in (_adopted(vertex, states.get(id)) for id in _ids(vertex)) if w is not None), None)
        if wanted is not None:
            operators = tuple(
                replace(operator, node=replace(operator.node, max_parallelism=wanted)) for operator in vertex.operators
            )
            vertex = replace(vertex, operators=operators, max_parallelism=wanted)
        vertices.append(vertex)
    return replace(job_graph, vertices=tuple(vertices))


def has_state(state: OperatorState) -> bool:
    """Whether something would be lost without the state."""
    return state.coordinator is not None or any(not subtask.is_empty for subtask in state.subtasks.values())


def _operators(job_graph: JobGraph) -> Iterator[tuple[JobVertex, ChainedOperator]]:
    return ((vertex, operator) for vertex in job_graph.vertices for operator in vertex.operators)


def _ids(vertex: JobVertex) -> list[str]:
    return [operator.node.operator_id for operator in vertex.operators]


def _adopted(vertex: JobVertex, state: OperatorState | None) -> int | None:
    if state is None or vertex.head.node.max_parallelism_configured or not _has_keyed_state(state):
        return None
    return state.max_parallelism if state.max_parallelism >= vertex.parallelism else None


def _has_keyed_state(state: OperatorState) -> bool:
    return any(subtask.keyed is not None for subtask in state.subtasks.values())


def _check_parallelism(state: OperatorState, vertex: JobVertex, node: StreamNode) -> None:
    if not _has_keyed_state(state):
        return
    stored = state.max_parallelism
    if vertex.parallelism > stored:
        raise StateIncompatibleError(
            f"Operator {_describe(node)} has parallelism {vertex.parallelism}, but its state was written with max "
            f"parallelism {stored}: there are only {stored} key groups to share out.",
            operator=node.name,
            hint=f"Lower the parallelism to {stored} or less. The max parallelism of state cannot be changed.",
        )
    if vertex.max_parallelism != stored:
        raise StateIncompatibleError(
            f"Operator {_describe(node)} has max parallelism {vertex.max_parallelism}, but its state was written with "
            f"{stored}: its keys belong to other key groups.",
            operator=node.name,
            hint=f"Set the max parallelism to {stored} with set_max_parallelism() or pipeline.max-parallelism, or do "
            "not set it: then that of the state is taken over.",
        )


def _check_complete(state: OperatorState) -> None:
    if not has_state(state):
        return
    missing = sorted(set(range(state.parallelism)) - set(state.subtasks) - state.finished)
    if missing:
        raise StateIncompatibleError(
            f"The state of operator {_describe(state)} is not complete: of its {state.parallelism} subtasks, "
            f"{_some(map(str, missing))} are missing.",
            operator=state.name,
            hint="The checkpoint cannot be used. Start from another one.",
        )
    if not _has_keyed_state(state):
        return
    owners: dict[int, int] = {}
    for subtask in range(state.parallelism):
        stored = state.subtasks.get(subtask)
        nominal = KeyGroupRange.of(subtask, state.max_parallelism, state.parallelism)
        for group in nominal if stored is None or stored.keyed is None else stored.keyed.key_groups:
            if stored is not None and stored.keyed is not None and owners.get(group) is not None:
                raise StateIncompatibleError(
                    f"The state of operator {_describe(state)} is contradictory: key group {group} is in subtask "
                    f"{owners[group]} and in subtask {subtask}.",
                    operator=state.name,
                )
            owners.setdefault(group, subtask)
    lost = sorted(set(range(state.max_parallelism)) - set(owners))
    if lost:
        raise StateIncompatibleError(
            f"The state of operator {_describe(state)} is not complete: of its {state.max_parallelism} key groups, "
            f"{_some(map(str, lost))} are missing.",
            operator=state.name,
            hint="The checkpoint cannot be used. Start from another one.",
        )


def _check_channels(metadata: CheckpointMetadata, job_graph: JobGraph, allow_non_restored: bool) -> None:
    edges = {edge_name(job_graph, edge) for edge in job_graph.edges}
    placed = {operator.node.operator_id: operator.node for _, operator in _operators(job_graph)}
    states = {state.operator_id: state for state in metadata.operators}
    for channel in metadata.channels:
        if channel.edge in edges:
            continue
        writer, reader = (end.partition(mark)[0] for end, mark in zip(channel.edge.split("->"), "[#", strict=True))
        if reader not in placed and allow_non_restored:
            continue
        source, target = (_describe(placed.get(id) or states.get(id)) for id in (writer, reader))
        raise StateIncompatibleError(
            f"The checkpoint holds records that were on their way from operator {source} to operator {target}, which "
            "the program does not connect any more.",
            operator=None if reader not in states else states[reader].name,
            hint="The checkpoint is an unaligned one. Take a savepoint of the old program and start from that.",
        )


def _check_finished(metadata: CheckpointMetadata, job_graph: JobGraph) -> None:
    """A source that has been read to its end must not be read again because the operators behind it go on.

    No job that went through :func:`separate_finished` is refused.
    """
    ended = finished_operators(job_graph, {state.operator_id: state for state in metadata.operators})
    for vertex in job_graph.vertices:
        nodes = [operator.node for operator in vertex.operators]
        finished = [node for node in nodes if node.id in ended]
        others = [node for node in nodes if node.id not in ended]
        if finished and others:
            raise StateIncompatibleError(
                f"Operator {_describe(finished[0])} had finished, but {_describe(others[0])}, which is chained to it, "
                "had not: one task cannot do both.",
                operator=others[0].name,
                hint="Keep new operators apart from finished ones with start_new_chain() or disable_chaining().",
            )


def _without_operator(state: OperatorState, job_graph: JobGraph) -> StateIncompatibleError:
    nodes = [operator.node for _, operator in _operators(job_graph)]
    namesakes = [node for node in nodes if node.name == state.name]
    hint = "To start without this state, set execution.state-recovery.ignore-unclaimed-state (--allowNonRestoredState)."
    if namesakes:
        hint = (
            f"The program has an operator {_describe(namesakes[0])}, which is a different operator: operators are "
            "identified by their uid, and without a uid by their position in the program, in SQL by what they "
            f"compute. Set .uid(...), or the hint UID of SQL, as before. {hint}"
        )
    else:
        hint = f"The program has {_some(_describe(node) for node in nodes)}. {hint}"
    return StateIncompatibleError(
        f"There is state of operator {_describe(state)}, but no such operator in the program.",
        operator=state.name,
        hint=hint,
    )


def _describe(what: StreamNode | OperatorState | None) -> str:
    if what is None:
        return "(unknown)"
    return f"'{what.name}'" + (f" (uid '{what.uid}')" if what.uid else " (without uid)")


def _some(texts: Iterable[str]) -> str:
    texts = list(texts)
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
