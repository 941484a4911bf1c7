"""Which execution a job gets, which exchange its edges use, and why."""

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.graph.exchange import ExchangeKind, exchange_of
from firesteel.graph.execution import JobExecution
from firesteel.graph.transformation import PartitionTransformation
from firesteel.runtime.model.partitioner import BroadcastPartitioner, KeyGroupPartitioner

MODE, EXCHANGE = "execution.runtime-mode", "execution.exchange"


@pytest.mark.parametrize(
    ("settings", "kind", "reason"),
    [
        ({}, "pipelined", "it is the default"),
        ({MODE: "STREAMING"}, "pipelined", "execution.runtime-mode is STREAMING"),
        ({EXCHANGE: "pipelined"}, "pipelined", "execution.exchange is pipelined"),
        ({EXCHANGE: "spark"}, "epochs", "execution.exchange is spark"),
        ({EXCHANGE: "spark", MODE: "STREAMING"}, "epochs", "execution.exchange is spark"),
        ({MODE: "BATCH"}, "batch", "execution.runtime-mode is BATCH"),
        ({MODE: "BATCH", EXCHANGE: "spark"}, "batch", "execution.runtime-mode is BATCH"),
        (
            {MODE: "AUTOMATIC"},
            "batch",
            "execution.runtime-mode is AUTOMATIC and all sources are bounded: 'Source: in', 'Source: other'",
        ),
    ],
)
def test_execution_of_a_program_with_bounded_sources(program, settings, kind, reason) -> None:
    program.sink(program.union(program.source("in"), program.source("other")))
    for graph in (program.job_graph(**settings), program.stream_graph(**settings)):
        assert (graph.execution.kind, graph.execution.reason) == (JobExecution(kind), reason)


def test_automatic_with_an_unbounded_source_names_it(program) -> None:
    program.sink(program.union(program.source("history"), program.source("live", unbounded=True)))
    execution = program.job_graph(**{MODE: "AUTOMATIC"}).execution
    assert execution.kind is JobExecution.PIPELINED
    assert "not all sources are bounded: 'Source: live'" in execution.reason
    assert program.job_graph(**{MODE: "AUTOMATIC", EXCHANGE: "spark"}).execution.kind is JobExecution.EPOCHS


@pytest.mark.parametrize("mode", ["BATCH", "AUTOMATIC"])
def test_a_batch_cannot_be_pipelined(program, mode: str) -> None:
    program.sink(program.source("in"))
    with pytest.raises(InvalidProgramError) as raised:
        program.stream_graph(**{MODE: mode, EXCHANGE: "pipelined"})
    assert f"execution.runtime-mode is {mode}" in raised.value.message
    assert "execution.exchange is pipelined" in raised.value.message
    assert "STREAMING" in (raised.value.hint or "")


def test_a_batch_refuses_unbounded_sources_by_name_and_place(program) -> None:
    live = program.source("live", unbounded=True, defined_at="job.py:7")
    also = program.source("also live", unbounded=True)
    program.sink(program.union(program.source("history"), live, also))
    with pytest.raises(InvalidProgramError) as raised:
        program.stream_graph(**{MODE: "BATCH"})
    assert "'Source: live' defined at job.py:7, 'Source: also live' defined at an unknown place" in str(raised.value)
    assert "history" not in str(raised.value)


def keyed_and_not(program):
    """A keyed operator behind a source, and a sink of another parallelism behind that."""
    program.sink(program.keyed(program.source("in", parallelism=2), parallelism=2), parallelism=1)
    return program


def test_pipelined_edges(program) -> None:
    graph = keyed_and_not(program).job_graph()
    for edge in graph.edges:
        exchange = exchange_of(graph, edge)
        assert (exchange.kind, exchange.type) == (ExchangeKind.PIPELINED, "pipelined_bounded")
        assert exchange.describe() == "pipelined"
        assert exchange.reason


def test_edges_of_epochs_are_blocking_and_not_sorted(program) -> None:
    graph = keyed_and_not(program).job_graph(**{EXCHANGE: "spark"})
    for edge in graph.edges:
        exchange = exchange_of(graph, edge)
        assert (exchange.kind, exchange.type) == (ExchangeKind.BLOCKING, "blocking")
        assert not exchange.is_grouped_by_key
        assert "epoch" in exchange.reason


def test_edges_of_a_batch_are_blocking_and_the_keyed_ones_grouped(program) -> None:
    graph = keyed_and_not(program).job_graph(**{MODE: "BATCH"})
    keyed, other = (exchange_of(graph, edge) for edge in graph.edges)
    assert (keyed.type, other.type) == ("blocking", "blocking")
    assert keyed.describe() == "blocking (Spark shuffle), grouped by key"
    assert other.describe() == "blocking (Spark shuffle)"


def test_a_key_without_keyed_state_only_says_where_records_go(program) -> None:
    by_key = PartitionTransformation(program.source("in"), KeyGroupPartitioner(abs))
    program.op(by_key, "Map")
    graph = program.job_graph(**{MODE: "BATCH"})
    assert not exchange_of(graph, graph.edges[0]).is_grouped_by_key


def test_only_the_keyed_input_of_two_is_grouped_and_the_broadcast_side_is_first(program) -> None:
    by_key = PartitionTransformation(program.source("orders"), KeyGroupPartitioner(abs))
    rules = PartitionTransformation(program.source("rules"), BroadcastPartitioner())
    program.connect(by_key, rules, key_selectors=(abs, None))
    graph = program.job_graph(**{MODE: "BATCH"})
    first, second = (exchange_of(graph, edge) for edge in graph.edges)
    assert (first.is_grouped_by_key, second.is_grouped_by_key) == (True, False)
    assert "broadcast side is read first" in second.reason


def test_a_broadcast_stream_alone_is_like_any_other(program) -> None:
    program.op(PartitionTransformation(program.source("rules"), BroadcastPartitioner()))
    graph = program.job_graph(**{MODE: "BATCH"})
    assert "first" not in exchange_of(graph, graph.edges[0]).reason
