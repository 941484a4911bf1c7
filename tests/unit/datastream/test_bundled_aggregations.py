"""``KeyedStream.pre_aggregate`` and ``mini_batch_aggregate`` in the graph of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import KeyedStream, StreamExecutionEnvironment
from firesteel.graph.job_graph import JobVertex
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.runtime.operators.aggregation.global_aggregate import GlobalAggregateSpec
from firesteel.runtime.operators.aggregation.mini_batch import MiniBatchAggregateSpec
from firesteel.runtime.operators.reduce import ReduceSpec
from firesteel.testing import OneInputHarness


def _keyed(**settings: str) -> tuple[StreamExecutionEnvironment, KeyedStream[Any, Any]]:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    stream = env.from_collection([("a", 1)]).uid("source").map(lambda record: record).set_parallelism(3).uid("map")
    return env, stream.key_by(lambda record: record[0])


def _vertices(env: StreamExecutionEnvironment) -> Sequence[JobVertex]:
    return create_job_graph(env._generate_stream_graph("job", clear=False)).vertices


def _add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


def test_the_local_part_is_in_the_task_of_its_input() -> None:
    env, keyed = _keyed()
    keyed.pre_aggregate(_add).set_parallelism(2).print()
    chains = [[node.node.name for node in vertex.operators] for vertex in _vertices(env)]
    assert chains[1:] == [["Map", "LocalAggregate"], ["GlobalAggregate"], ["Sink: Print to Std. Out"]]


def test_salts_are_added_in_the_task_of_the_input() -> None:
    env, keyed = _keyed()
    keyed.salted_aggregate(_add).print()
    chains = [[node.node.name for node in vertex.operators] for vertex in _vertices(env)]
    assert chains[1:4] == [["Map", "Salt"], ["LocalAggregate"], ["GlobalAggregate", "Sink: Print to Std. Out"]]


def test_a_uid_is_needed_for_the_result_only() -> None:
    env, keyed = _keyed(**{"pipeline.auto-generate-uids": "false"})
    keyed.pre_aggregate(_add).uid("sums").print().uid("sink")
    keyed.salted_aggregate(_add).uid("salted").print().uid("other sink")
    uids = {node.node.uid for vertex in _vertices(env) for node in vertex.operators}
    sums = {"sums-LocalAggregate", "sums", "salted-Salt", "salted-LocalAggregate", "salted"}
    assert uids == {"source", "map", "sink", "other sink", *sums}


@pytest.mark.parametrize("arguments", [{"max_records": 0}, {"max_keys": 0}, {"max_delay": 0}, {"max_records": True}])
def test_limits_must_be_positive(arguments: dict[str, Any]) -> None:
    _, keyed = _keyed()
    with pytest.raises(InvalidProgramError, match="at least 1"):
        keyed.pre_aggregate(_add, **arguments)


def test_there_must_be_a_salt() -> None:
    _, keyed = _keyed()
    with pytest.raises(InvalidProgramError, match="salts must be an integer of at least 1"):
        keyed.salted_aggregate(_add, 0)


@pytest.mark.parametrize("function", [None, 1, "sum"])
def test_something_else_than_a_function_is_refused(function: Any) -> None:
    _, keyed = _keyed()
    with pytest.raises(TypeError, match="mini_batch_aggregate needs a ReduceFunction or a callable"):
        keyed.mini_batch_aggregate(function)


def test_each_restores_the_state_of_reduce() -> None:
    with OneInputHarness(ReduceSpec(_add), [lambda record: record[0]]) as plain:
        plain.process_elements([("a", 1), ("a", 2)])
        snapshot = plain.snapshot()
    merged = OneInputHarness(GlobalAggregateSpec(_add), [lambda pair: pair[0]]).initialize_state(snapshot)
    with merged:
        merged.process_element(("a", ("a", 3)))
        assert merged.output == [("a", 6)]
    batched = OneInputHarness(MiniBatchAggregateSpec(_add, 1, 1, 1), [lambda record: record[0]])
    with batched.initialize_state(snapshot):
        batched.process_element(("a", 4))
        assert batched.output == [("a", 7)]
