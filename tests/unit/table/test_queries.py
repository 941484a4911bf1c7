"""Plans of queries: the types of their rows, or the refusal, are those recorded from Flink 2.3."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from firesteel.table import DataTypes
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan, walk
from firesteel.types.logical import RowType

RECORDED = json.loads((Path(__file__).parent / "recorded" / "queries.json").read_text("utf-8"))
TABLES = {
    "t": RowType.of(
        ["k", "i", "bi", "s", "inn"],
        [DataTypes.INT(), DataTypes.INT(), DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.INT(False)],
        nullable=False,
    ),
    "o": RowType.of(
        ["id", "k", "price"],
        [DataTypes.BIGINT(False), DataTypes.INT(), DataTypes.DECIMAL(10, 2)],
        nullable=False,
    ),
}


def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
    """A table of the test."""
    if path[-1] not in TABLES:
        raise ValidationError(f"Object '{path[-1]}' not found.")
    return TableScan(ObjectIdentifier("default_catalog", "default_database", path[-1]), TABLES[path[-1]], options)


def plan(sql: str) -> LogicalNode:
    """The plan of a query."""
    return QueryBinder(resolve, sql).bind(parse_query(sql))


@pytest.mark.parametrize("sql", [sql for sql, outcome in RECORDED.items() if "type" in outcome])
def test_rows_have_flinks_type(sql: str) -> None:
    fields = plan(sql).row_type.fields
    assert ", ".join(field.as_summary_string() for field in fields) == RECORDED[sql]["type"]


@pytest.mark.parametrize("sql", [sql for sql, outcome in RECORDED.items() if "error" in outcome])
def test_what_flink_refuses_is_refused(sql: str) -> None:
    with pytest.raises(ValidationError):
        plan(sql)


REASONS = [
    ("SELECT i, COUNT(*) FROM t", "Expression 'i' is not being grouped."),
    ("SELECT k FROM t WHERE SUM(i) > 1", "Aggregate expression is illegal in WHERE clause."),
    ("SELECT SUM(SUM(i)) FROM t", "Aggregate expressions cannot be nested."),
    ("SELECT DISTINCT i FROM t ORDER BY bi", "Expression 'bi' is not in the select clause."),
    ("SELECT i FROM t UNION SELECT i, k FROM t", "Column count mismatch in UNION"),
    ("SELECT i, 1 FROM t UNION SELECT bi, 'a' FROM t", "Type mismatch in column 2 of UNION."),
    ("SELECT a.k FROM t a, t a", "Duplicate relation name 'a' in FROM clause."),
    ("SELECT k FROM t JOIN o", "INNER, LEFT, RIGHT or FULL join requires a condition."),
    ("SELECT k FROM t ORDER BY 5", "Ordinal out of range."),
    ("VALUES (1), (2, 3)", "Values passed to VALUES operator must have compatible types."),
]


@pytest.mark.parametrize(("sql", "reason"), REASONS)
def test_refusal_gives_flinks_reason(sql: str, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        plan(sql)
    assert refused.value.reason.startswith(reason)


def test_error_has_a_place_and_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match=r"line 2, column 3") as refused:
        plan("SELECT\n  pric FROM o")
    assert refused.value.hint == "Did you mean 'price'?"


def test_hidden_sort_columns_are_left_out_of_the_result() -> None:
    assert plan("SELECT k FROM t ORDER BY bi LIMIT 2").explain() == (
        "Project(k=[k])\n"
        "  Sort(orderBy=[$sort0 ASC], fetch=[2])\n"
        "    Project(k=[k], $sort0=[bi])\n"
        "      TableScan(table=[default_catalog.default_database.t])"
    )


def test_same_aggregate_is_computed_once() -> None:
    node = plan("SELECT SUM(i), SUM(i) + 1 FROM t GROUP BY k HAVING SUM(i) > 0 ORDER BY SUM(i)")
    assert "Aggregate(groupBy=[k], EXPR$0=[SUM(i)])" in node.explain()


def test_options_of_a_hint_reach_the_table() -> None:
    (scan,) = [node for node in walk(plan("SELECT * FROM t /*+ OPTIONS('a'='b') */")) if isinstance(node, TableScan)]
    assert scan.options == (("a", "b"),)


def test_plans_are_equal_if_their_queries_are() -> None:
    sql = "SELECT t.k, MAX(price) FROM t JOIN o ON t.k = o.k GROUP BY t.k"
    assert plan(sql) == plan(sql)
    assert hash(plan(sql)) == hash(plan(sql))
