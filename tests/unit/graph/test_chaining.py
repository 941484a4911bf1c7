from __future__ import annotations

import pytest

from firesteel.graph.chaining import is_chainable
from firesteel.graph.transformation import ChainingStrategy, PartitionTransformation
from firesteel.runtime.model.partitioner import RebalancePartitioner


def chained(graph):
    return [is_chainable(edge, graph) for edge in graph.edges]


def test_forward_with_equal_settings_chains(program) -> None:
    program.op(program.source())
    assert chained(program.stream_graph()) == [True]


def test_disabled_in_configuration(program) -> None:
    program.op(program.source())
    assert chained(program.stream_graph(**{"pipeline.operator-chaining.enabled": "false"})) == [False]


def test_other_partitioners_break_the_chain(program) -> None:
    program.op(PartitionTransformation(program.source(), RebalancePartitioner()))
    program.keyed(program.source())
    assert chained(program.stream_graph()) == [False, False]


def test_different_parallelism_breaks_the_chain(program) -> None:
    program.op(program.source(parallelism=1), parallelism=2)
    assert chained(program.stream_graph()) == [False]


def test_different_slot_sharing_groups_break_the_chain(program) -> None:
    program.op(program.source(), slot_sharing_group="other")
    assert chained(program.stream_graph()) == [False]


@pytest.mark.parametrize("build", ["union", "connect"])
def test_several_inputs_break_the_chain(program, build: str) -> None:
    a, b = program.source("a"), program.source("b")
    if build == "union":
        program.op(program.union(a, b))
    else:
        program.connect(a, b)
    assert chained(program.stream_graph()) == [False, False]


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"),
    [
        (ChainingStrategy.ALWAYS, ChainingStrategy.ALWAYS, True),
        (ChainingStrategy.HEAD, ChainingStrategy.ALWAYS, True),
        (ChainingStrategy.NEVER, ChainingStrategy.ALWAYS, False),
        (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD, False),
        (ChainingStrategy.ALWAYS, ChainingStrategy.NEVER, False),
    ],
)
def test_chaining_strategies(program, upstream, downstream, expected) -> None:
    program.op(program.source(chaining=upstream), chaining=downstream)
    assert chained(program.stream_graph()) == [expected]


def test_different_max_parallelism_chains_only_if_allowed(program) -> None:
    program.op(program.source(max_parallelism=10), max_parallelism=20)
    assert chained(program.stream_graph()) == [True]
    key = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
    assert chained(program.stream_graph(**{key: "false"})) == [False]


def test_side_output_edges_chain_too(program) -> None:
    program.op(program.side_output(program.op(program.source()), "late"), "Late")
    assert chained(program.stream_graph()) == [True, True]
