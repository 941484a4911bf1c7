"""What a completed epoch commits: each committable once, in the order of checkpoints, and nothing before its time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.epochs.commits import CommitFailed, EpochCommits
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.runtime.model.messages import TaskKey
from firesteel.runtime.model.state_handles import (
    SPLIT,
    InlineBytes,
    OperatorStateHandle,
    OperatorSubtaskState,
    TaskStateSnapshot,
)
from firesteel.runtime.operators.sink import COMMITTABLES
from firesteel.spi.sink import Sink
from firesteel.testing import TestingSource
from tests.support.epochs.scripted import RecordingSink, committed

Prepared = tuple[int, str]
"""A checkpoint, and what a writer prepared for it."""


@pytest.fixture(autouse=True)
def nothing_committed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RecordingSink, "failures", 0)
    committed.clear()
    yield
    committed.clear()


@pytest.fixture
def graph() -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_source(TestingSource.with_splits([1]), WatermarkStrategy.no_watermarks(), "numbers")
    stream.rebalance().sink_to(RecordingSink()).name("out")
    return create_job_graph(env._generate_stream_graph("commits", clear=True))


def acknowledged(graph: JobGraph, *subtasks: Sequence[Prepared]) -> dict[TaskKey, TaskStateSnapshot]:
    """The state of a checkpoint, by what each subtask of the sink has prepared and not been told is committed."""
    [(vertex_id, operator_id)] = [
        (vertex.id, operator.node.operator_id)
        for vertex in graph.vertices
        for operator in vertex.operators
        if isinstance(operator.node.spec.get_sink(), Sink)
    ]
    states = {}
    for subtask, prepared in enumerate(subtasks):
        items = [pickle.dumps(pair) for pair in prepared]
        handle = OperatorStateHandle(COMMITTABLES, SPLIT, len(items), InlineBytes(pickle.dumps(items)))
        states[vertex_id, subtask] = TaskStateSnapshot({operator_id: OperatorSubtaskState(operator=(handle,))})
    return states


def test_a_committable_that_a_task_still_names_is_not_committed_again(graph: JobGraph) -> None:
    """A task that was not told of checkpoint 1 yet has its committables in the state of checkpoint 2, too."""
    commits = EpochCommits(graph)
    assert commits.commit(1, acknowledged(graph, [(1, "a")], [(1, "b")])) == 2
    assert commits.commit(2, acknowledged(graph, [(1, "a"), (2, "c")], [(1, "b")])) == 1
    assert commits.commit(3, acknowledged(graph, [(1, "a"), (2, "c")], [(1, "b")])) == 0
    assert committed == [["a", "b"], ["c"]]


def test_what_is_prepared_for_a_later_checkpoint_waits_for_it(graph: JobGraph) -> None:
    commits = EpochCommits(graph)
    assert commits.commit(2, acknowledged(graph, [(2, "a"), (3, "b")], [])) == 1
    assert commits.commit(3, acknowledged(graph, [(3, "b")], [])) == 1
    assert committed == [["a"], ["b"]]


def test_what_a_failed_checkpoint_prepared_is_committed_first(graph: JobGraph) -> None:
    commits = EpochCommits(graph)
    states = acknowledged(graph, [(2, "a"), (1, "b")], [(1, "c"), (2, "d")])
    assert commits.commit(2, dict(reversed(states.items()))) == 4
    assert committed == [["b", "c", "a", "d"]]


def test_what_could_not_be_committed_is_due_again(graph: JobGraph) -> None:
    RecordingSink.failures = 1
    commits = EpochCommits(graph)
    states: Any = acknowledged(graph, [(1, "a")], [])
    with pytest.raises(CommitFailed, match="the store is full"):
        commits.commit(1, states)
    assert commits.commit(1, states) == 1
    assert committed == [["a"]]


def test_the_next_attempt_commits_what_it_restores(graph: JobGraph) -> None:
    """It cannot tell whether the attempt before it got so far."""
    states = acknowledged(graph, [(1, "a")], [])
    assert EpochCommits(graph).commit(1, states) == 1
    assert EpochCommits(graph).commit(1, states) == 1
