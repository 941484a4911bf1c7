"""Streaming plans run in process: their rows, and the changelogs that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.common import Row
from firesteel.common.types import RowKind
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table import DataTypes
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from firesteel.testing.in_process import InProcessExecutor
from firesteel.types.logical import RowType

TYPE = RowType.of(["k", "s", "n"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.BIGINT()], nullable=False)
ROWS = [(1, "a", 10), (2, "b", None), (1, None, 30), (3, "c", 40)]
KINDS = [RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER]
SOURCES = {
    "t": InMemorySource(TYPE, batch_of(ROWS, TYPE), "t"),
    "changes": InMemorySource(TYPE, batch_of(ROWS, TYPE, KINDS), "changes", ChangelogMode.all()),
}


def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
    """A table of the test."""
    source = SOURCES[path[-1]]
    return TableScan(ObjectIdentifier("default_catalog", "default_database", path[-1]), source.type, options, source)


def plan(sql: str) -> LogicalNode:
    """The optimized plan of a query."""
    return optimize(QueryBinder(resolve, sql).bind(parse_query(sql)))


def run(sql: str) -> list[Any]:
    """The rows of a query, as a stream in process."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env._executor = InProcessExecutor()
    root = plan(sql)
    translator = Translator(env, [root])
    stream = translator.translate(root)
    rows = translator.apply(stream, "ColumnsToRows", ColumnsToRowsSpec())
    return list(rows.execute_and_collect())


def test_projection_and_filter() -> None:
    assert run("SELECT n + 1 AS m, s FROM t WHERE k = 1 OR n > 35") == [
        Row(m=11, s="a"),
        Row(m=31, s=None),
        Row(m=41, s="c"),
    ]


def test_unused_columns_are_not_read() -> None:
    assert plan("SELECT n FROM (SELECT k, n FROM t) WHERE n > 3").inputs()[0].row_type.field_names == ("n",)


def test_values_and_union() -> None:
    rows = run("SELECT k, n FROM t WHERE k > 1 UNION ALL VALUES (7, 8), (9, NULLIF(1, 1))")
    assert sorted(map(tuple, rows), key=str) == [(2, None), (3, 40), (7, 8), (9, None)]


def test_row_kinds_pass_through() -> None:
    rows = run("SELECT k, s FROM changes WHERE k <> 2")
    assert [(row.get_row_kind(), *row) for row in rows] == [
        (RowKind.INSERT, 1, "a"),
        (RowKind.UPDATE_BEFORE, 1, None),
        (RowKind.UPDATE_AFTER, 3, "c"),
    ]
