"""Upserts at the borders of plans: sources with a key, sinks whose key is not that of the query."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.config.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table import DataTypes
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.translate.catalogue import Translator
from firesteel.testing.in_process import InProcessExecutor
from firesteel.types.logical import RowType

I, B, U, D = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE  # noqa: E741
TYPE = RowType.of(["id", "g", "n"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.BIGINT()], nullable=False)
UPSERTS = [
    (I, 1, "a", 1),
    (U, 2, "a", 2),
    (U, 1, "b", 3),
    (U, 1, "b", 3),
    (D, 2, None, None),
    (D, 7, None, None),
    (I, 2, "b", 4),
]
CHANGES = [(I, 1, "a", 1), (I, 2, "a", 2), (B, 2, "a", 2), (U, 2, "b", 5), (D, 1, "a", 1), (D, 2, "b", 5)]


def table(rows: list[Any], mode: ChangelogMode, key: tuple[int, ...]) -> TableScan:
    batch = batch_of([row[1:] for row in rows], TYPE, [row[0] for row in rows])
    identifier = ObjectIdentifier("c", "d", "t")
    return TableScan(identifier, TYPE, (), InMemorySource(TYPE, batch, "t", mode), key)


class Upserting(DynamicTableSink):
    """Takes upserts, and collects them."""

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.upsert()

    def consume(self, stream: Any, context: SinkContext) -> Any:
        return stream._transform("ColumnsToRows", ColumnsToRowsSpec(), None)

    def as_summary_string(self) -> str:
        return "upserting"


def plan(scan: TableScan, sql: str, sink_key: tuple[int, ...] = (), option: str = "AUTO") -> LogicalNode:
    query = QueryBinder(lambda path, options: scan, sql).bind(parse_query(sql))
    return optimize(Sink(query, None, Upserting(), sink_key), OptimizerOptions(option))


def run(root: LogicalNode, per_row: bool = True) -> list[tuple[str, tuple[Any, ...]]]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env._executor = InProcessExecutor()
    configuration = Configuration()
    configuration.set_string("table.exec.mini-batch.enabled", str(not per_row).lower())
    rows = Translator(env, [root], configuration).translate(root)
    return [(str(row.get_row_kind()), tuple(row)) for row in rows.execute_and_collect()]


def test_upserts_become_a_changelog() -> None:
    scan = table(UPSERTS, ChangelogMode.upsert(), (0,))
    assert run(plan(scan, "SELECT * FROM t")) == [
        ("+I", (1, "a", 1)),
        ("+I", (2, "a", 2)),
        ("+U", (1, "b", 3)),
        ("-D", (2, "a", 2)),
        ("+I", (2, "b", 4)),
    ]
    merged = run(plan(scan, "SELECT * FROM t"), per_row=False)
    assert {row[0]: row for kind, row in merged if kind != "-D"} == {1: (1, "b", 3), 2: (2, "b", 4)}


def test_what_needs_rows_before_updates_gets_them() -> None:
    scan = table(UPSERTS, ChangelogMode.upsert(), (0,))
    changes = run(plan(scan, "SELECT g, SUM(n) FROM t GROUP BY g"))
    assert changes[-1] == ("+U", ("b", 7))
    assert ("-D", ("a", 2)) in changes


def test_upserts_without_a_primary_key_are_refused() -> None:
    with pytest.raises(ValidationError, match="this requires defining primary key on the table"):
        plan(table(UPSERTS, ChangelogMode.upsert(), ()), "SELECT * FROM t")


def test_rows_with_the_same_key_of_a_sink_are_kept_apart() -> None:
    scan = table(CHANGES, ChangelogMode.all(), (0,))
    root = plan(scan, "SELECT g, n FROM t", (0,))
    assert "UpsertMaterialize(key=[g])" in root.explain()
    assert run(root) == [
        ("+I", ("a", 1)),
        ("+U", ("a", 2)),
        ("+U", ("a", 1)),
        ("+I", ("b", 5)),
        ("-D", ("a", 1)),
        ("-D", ("b", 5)),
    ]


def test_a_key_of_the_query_is_enough() -> None:
    scan = table(CHANGES, ChangelogMode.all(), (0,))
    root = plan(scan, "SELECT id, n FROM t", (0,))
    assert "UpsertMaterialize" not in root.explain()
    kinds = [kind for kind, _ in run(root)]
    assert kinds == ["+I", "+I", "+U", "-D", "-D"]
    assert "UpsertMaterialize" in plan(scan, "SELECT id, n FROM t", (0,), "FORCE").explain()
    assert "UpsertMaterialize" not in plan(scan, "SELECT g, n FROM t", (0,), "NONE").explain()
