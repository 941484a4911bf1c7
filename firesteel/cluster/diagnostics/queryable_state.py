"""Queryable state: finds the operator, subtask and slot of a key, and queries the slot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from firesteel.cluster.rest.request import RestError
from firesteel.common.errors import FiresteelError, InvalidKeyError
from firesteel.common.job_status import JobStatus
from firesteel.common.types import Row
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.rest.diagnostics import OperatorStates, QueriedState, QueryableState, QueryableStates
from firesteel.runtime.model.key_groups import key_group_of, subtask_of
from firesteel.runtime.slot.state_queries import ListStates, QueryState, StateAnswer, to_json

__all__ = ["candidate_keys", "list_states", "query_state"]

ANSWER_TIMEOUT_S = 10.0


def list_states(runner: JobMasterRunner) -> QueryableStates:
    """The keyed states of all operators, from their first subtasks."""
    job = _running(runner)
    job_graph = job.job_graph
    vertices = {vertex.id: vertex for vertex, _ in _keyed(job_graph)}
    answers = {
        vertex_id: runner.ask(_slot_of(job, vertex_id, 0), ListStates(vertex_id, 0), ANSWER_TIMEOUT_S)
        for vertex_id in vertices
    }
    kinds: dict[str, dict[str, str]] = {}
    for answer in answers.values():
        kinds.update(_result(answer))
    return QueryableStates(
        [
            OperatorStates(
                uid=node.uid,
                operator_id=node.operator_id,
                name=node.name,
                vertex_id=vertex.id,
                states=[QueryableState(name, kind) for name, kind in kinds.get(node.operator_id, {}).items()],
            )
            for vertex, node in _keyed(job_graph)
        ]
    )


def query_state(runner: JobMasterRunner, operator: str, name: str, key_text: str, namespace: str) -> QueriedState:
    """What a state holds of the key that a text stands for."""
    job = _running(runner)
    vertex, node = _find(job.job_graph, operator)
    subtask, windows = 0, []
    for key in candidate_keys(key_text):
        subtask = _subtask_of(key, vertex)
        question = QueryState(vertex.id, subtask, node.operator_id, name, key)
        answer: StateAnswer = _result(runner.ask(_slot_of(job, vertex.id, subtask), question, ANSWER_TIMEOUT_S))
        if answer.kind is None:
            raise RestError(
                404,
                f"Operator '{node.name}' has no state '{name}'. {_listing('Its states', answer.states)}",
            )
        if namespace in answer.values:
            return QueriedState(
                key=to_json(key),
                value=answer.values[namespace],
                type=answer.kind,
                operator=node.uid or node.operator_id,
                subtask=subtask,
                namespace=namespace,
            )
        windows += [each for each in answer.values if each]
    where = f" in namespace {namespace}" if namespace else ""
    message = f"State '{name}' of operator '{node.name}' has nothing for the key {key_text[:200]}{where}."
    if windows:
        raise RestError(404, f"{message} {_listing('It has something in the windows', windows[:20])}", hint=_WINDOW)
    raise RestError(404, message, hint='A key is JSON: 7 is a number, "7" a string, [7, "a"] a tuple or a Row.')


_WINDOW = "Select one with &namespace=start-end."


def candidate_keys(text: str) -> Iterator[Any]:
    """What keys a text may stand for, the most likely first: JSON, an array as a tuple or a Row, or the text itself.

    >>> list(candidate_keys("7"))
    [7, '7']
    >>> list(candidate_keys('[1, "a"]'))[:2]
    [(1, 'a'), Row(1, 'a')]
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield text
        return
    if isinstance(value, list):
        yield _as_key(value, tuple)
        yield _as_key(value, lambda items: Row(*items))
    elif isinstance(value, dict):
        yield Row(**{name: _as_key(item, tuple) for name, item in value.items()})
    elif value is not None:
        yield value
    if not isinstance(value, str):
        yield text


def _as_key(value: Any, make: Any) -> Any:
    if isinstance(value, list):
        return make([_as_key(item, make) for item in value])
    return value


def _subtask_of(key: Any, vertex: JobVertex) -> int:
    try:
        group = key_group_of(key, vertex.max_parallelism)
    except InvalidKeyError as error:
        raise RestError(400, f"Invalid key: {error.message}", hint=error.hint) from error
    return subtask_of(group, vertex.max_parallelism, vertex.parallelism)


def _running(runner: JobMasterRunner) -> JobSnapshot:
    job = runner.snapshot
    if job.status is not JobStatus.RUNNING:
        raise RestError(
            409,
            f"Job {runner.job_graph.job_id} is {job.status.name}; only the state of a running job can be queried.",
            hint="To read the state of a job that is not running, use firesteel savepoint inspect.",
        )
    return job


def _slot_of(job: JobSnapshot, vertex_id: str, subtask: int) -> int:
    return job.execution_graph.slots.slot_of(vertex_id, subtask)


def _keyed(job_graph: JobGraph) -> list[tuple[JobVertex, StreamNode]]:
    return [
        (vertex, chained.node)
        for vertex in job_graph.vertices
        for chained in vertex.operators
        if chained.node.key_selectors
    ]


def _find(job_graph: JobGraph, operator: str) -> tuple[JobVertex, StreamNode]:
    everything = [(vertex, chained.node) for vertex in job_graph.vertices for chained in vertex.operators]
    for attribute in ("uid", "operator_id", "name"):
        found = [(vertex, node) for vertex, node in everything if getattr(node, attribute) == operator]
        if len(found) > 1:
            raise RestError(
                404, f"{len(found)} operators are called '{operator[:200]}'.", hint="Use the uid of the operator."
            )
        if found:
            vertex, node = found[0]
            if not node.key_selectors:
                raise RestError(404, f"Operator '{node.name}' is not keyed, so it has no state by key.")
            return vertex, node
    known = [node.uid or node.operator_id for _, node in _keyed(job_graph)]
    raise RestError(404, f"There is no operator '{operator[:200]}'. {_listing('Keyed operators', known)}")


def _listing(what: str, names: Any) -> str:
    return f"{what}: {', '.join(names) or 'none'}."


def _result(answer: Future[Any]) -> Any:
    try:
        return answer.result(ANSWER_TIMEOUT_S + 5.0)
    except FiresteelError as error:
        raise RestError(503, error.message, hint=error.hint) from error
