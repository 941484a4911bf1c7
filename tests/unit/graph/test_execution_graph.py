from __future__ import annotations

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.graph.execution_graph import (
    ATTEMPTS_HISTORY_SIZE,
    ExecutionGraph,
    ExecutionState,
    InvalidTransitionError,
    aggregate_state,
)

S = ExecutionState
ORDER = [S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING, S.FINISHED]


@pytest.fixture
def graph(program) -> ExecutionGraph:
    program.sink(program.keyed(program.source(parallelism=1), parallelism=2), parallelism=2)
    return ExecutionGraph(program.job_graph(), timestamp=10)


def test_one_execution_per_subtask_in_topological_order(graph) -> None:
    assert [vertex.task_name for vertex in graph.vertices()] == [
        "Source: in (1/1)",
        "Window -> Sink: out (1/2)",
        "Window -> Sink: out (2/2)",
    ]
    assert [vertex.slot for vertex in graph.vertices()] == [0, 0, 1]
    assert graph.state_counts() == {S.CREATED: 3}


def test_a_normal_life_leaves_its_timestamps(graph) -> None:
    execution = next(graph.vertices()).current
    for at, state in enumerate(ORDER, 11):
        assert execution.transition_to(state, at)
    assert execution.state.is_terminal
    assert list(execution.state_timestamps.items()) == list(zip([S.CREATED, *ORDER], range(10, 16), strict=True))


def test_repeated_news_is_no_news(graph) -> None:
    execution = next(graph.vertices()).current
    execution.transition_to(S.SCHEDULED, 11)
    assert not execution.transition_to(S.SCHEDULED, 12)
    assert execution.state_timestamps[S.SCHEDULED] == 11


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ([], S.FINISHED),
        ([S.SCHEDULED, S.DEPLOYING], S.SCHEDULED),
        ([S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING], S.CANCELED),
        ([S.SCHEDULED, S.CANCELING], S.RUNNING),
        ([S.CANCELED], S.FAILED),
        ([S.FAILED], S.CANCELING),
        ([S.SCHEDULED, S.FINISHED], S.FAILED),
    ],
)
def test_impossible_transitions_tell_the_story(graph, path, wrong) -> None:
    execution = next(graph.vertices()).current
    for state in path:
        execution.transition_to(state, 20)
    assert not execution.can_transition_to(wrong)
    with pytest.raises(InvalidTransitionError) as info:
        execution.transition_to(wrong, 21)
    assert info.value.new is wrong
    assert "CREATED@10" in str(info.value)


@pytest.mark.parametrize("reached", range(len(ORDER)))
def test_cancelling_and_failing_are_possible_from_every_active_state(program, reached: int) -> None:
    program.op(program.source(parallelism=2), parallelism=2)
    first, second = ExecutionGraph(program.job_graph()).vertices()
    for state in ORDER[:reached]:
        first.current.transition_to(state, 1)
        second.current.transition_to(state, 1)
    first.current.transition_to(S.CANCELING, 2)
    first.current.transition_to(S.CANCELED, 3)
    failure = TaskFailure("boom")
    second.current.transition_to(S.FAILED, 2, failure)
    assert second.current.failure is failure


def test_a_new_attempt_starts_over_and_old_news_is_ignored(graph) -> None:
    vertex = next(graph.vertices())
    with pytest.raises(InvalidTransitionError):
        vertex.reset_for_new_execution(20)
    vertex.current.transition_to(S.FAILED, 20)
    second = vertex.reset_for_new_execution(21)
    assert (second.attempt_number, second.state) == (1, S.CREATED)
    assert [execution.state for execution in vertex.previous] == [S.FAILED]
    assert graph.execution(vertex.vertex_id, 0, 0) is None
    assert graph.execution(*second.attempt_id) is second


def test_a_job_that_restarts_without_end_keeps_its_last_attempts_only(graph) -> None:
    vertex = next(graph.vertices())
    for _ in range(3 * ATTEMPTS_HISTORY_SIZE):
        vertex.current.transition_to(S.FAILED, 20)
        vertex.reset_for_new_execution(21)
    numbers = [execution.attempt_number for execution in vertex.previous]
    assert numbers == list(range(2 * ATTEMPTS_HISTORY_SIZE, 3 * ATTEMPTS_HISTORY_SIZE))


def test_progress_of_the_whole_job(graph) -> None:
    for vertex in graph.vertices():
        vertex.current.transition_to(S.RUNNING, 20)
    assert graph.all_running
    for vertex in graph.vertices():
        assert not graph.all_finished
        vertex.current.transition_to(S.FINISHED, 21)
    assert graph.all_finished
    assert graph.all_terminal
    graph.reset(22)
    assert graph.state_counts() == {S.CREATED: 3}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([S.RUNNING, S.FAILED, S.CANCELING], S.FAILED),
        ([S.CANCELED, S.CANCELING], S.CANCELING),
        ([S.CANCELED, S.FINISHED], S.CANCELED),
        ([S.INITIALIZING, S.RUNNING], S.INITIALIZING),
        ([S.RUNNING, S.FINISHED], S.RUNNING),
        ([S.FINISHED, S.FINISHED], S.FINISHED),
        ([S.FINISHED, S.DEPLOYING], S.RUNNING),
        ([S.CREATED, S.SCHEDULED, S.DEPLOYING], S.CREATED),
    ],
)
def test_one_state_for_a_vertex(states, expected) -> None:
    assert aggregate_state(states) is expected
