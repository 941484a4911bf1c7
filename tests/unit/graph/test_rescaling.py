"""The job at the parallelism that the slots allow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import TaskFailure
from firesteel.graph.execution_graph import ExecutionGraph, ExecutionState
from firesteel.graph.rescaling import limit_parallelism, parallelism_limit, rescale_execution_graph, slots_at
from firesteel.graph.slots import assign_slots
from firesteel.graph.transformation import ChainingStrategy
from firesteel.runtime.model.partitioner import ForwardPartitioner


@pytest.fixture
def job(program: Any) -> Any:
    """A source of parallelism 2, two maps joined by a forward edge with 4, and a sink in a group of its own with 3."""
    first = program.op(program.source(parallelism=2), "First", parallelism=4)
    second = program.op(program.forward(first), "Second", parallelism=4, chaining=ChainingStrategy.NEVER)
    program.sink(second, parallelism=3, slot_sharing_group="sinks")
    return program.job_graph()


@given(groups=st.lists(st.integers(1, 9), min_size=1, max_size=5), slots=st.integers(0, 50))
def test_the_limit_fits_and_no_greater_one_does(groups: list[int], slots: int) -> None:
    limit = parallelism_limit(groups, slots)
    if limit is None:
        assert len(groups) > slots
        return
    assert 1 <= limit <= max(groups)
    assert slots_at(groups, limit) <= slots
    assert limit == max(groups) or slots_at(groups, limit + 1) > slots
    # what a graph takes tells the limit as well as what there is
    assert parallelism_limit(groups, slots_at(groups, limit)) == limit


def test_no_vertex_and_no_operator_is_wider_than_the_limit(job: Any) -> None:
    limited = limit_parallelism(job, 6)
    assert [vertex.parallelism for vertex in limited.vertices] == [2, 3, 3, 3]
    for vertex in limited.vertices:
        assert {operator.node.parallelism for operator in vertex.operators} == {vertex.parallelism}
    assert assign_slots(limited).total == 6
    assert [vertex.max_parallelism for vertex in limited.vertices] == [
        vertex.max_parallelism for vertex in job.vertices
    ]


@pytest.mark.parametrize("slots", range(2, 9))
def test_forward_edges_keep_equal_parallelism_on_both_sides(job: Any, slots: int) -> None:
    limited = limit_parallelism(job, slots)
    assert assign_slots(limited).total <= slots
    forward = [edge for edge in limited.edges if isinstance(edge.partitioner, ForwardPartitioner)]
    assert forward
    for edge in forward:
        assert limited.vertex(edge.source_vertex).parallelism == limited.vertex(edge.target_vertex).parallelism


def test_with_slots_enough_it_is_the_job_itself(job: Any) -> None:
    assert limit_parallelism(job, 7) is job
    assert limit_parallelism(job, 100) is job


def test_each_group_needs_a_slot(job: Any) -> None:
    with pytest.raises(ValueError, match="2 slot sharing groups"):
        limit_parallelism(job, 1)


def test_subtasks_that_remain_keep_their_attempts(job: Any) -> None:
    graph = ExecutionGraph(job, 1)
    for vertex in graph.vertices():
        vertex.current.transition_to(ExecutionState.FAILED, 2, TaskFailure("lost"))
    smaller = rescale_execution_graph(graph, limit_parallelism(job, 2), 3)
    assert all(len(vertex.task_vertices) == 1 for vertex in smaller.job_vertices.values())
    for subtask in smaller.vertices():
        assert subtask.current.attempt_number == 1
        assert subtask.current.state is ExecutionState.CREATED
        assert [execution.state for execution in subtask.previous] == [ExecutionState.FAILED]
        subtask.current.transition_to(ExecutionState.CANCELED, 4)
    larger = rescale_execution_graph(smaller, job, 5)
    numbers = {
        vertex.id: [each.current.attempt_number for each in larger.job_vertices[vertex.id].task_vertices]
        for vertex in job.vertices
    }
    assert list(numbers.values()) == [[2, 0], [2, 0, 0, 0], [2, 0, 0, 0], [2, 0, 0]]


def test_an_attempt_that_never_began_is_not_one(job: Any) -> None:
    smaller = rescale_execution_graph(ExecutionGraph(job, 1), limit_parallelism(job, 2), 3)
    assert all(subtask.current.attempt_number == 0 and not subtask.previous for subtask in smaller.vertices())
