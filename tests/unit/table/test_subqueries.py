"""Subqueries, LATERAL, grouping functions and OVER: what is refused, and where; what plans are made."""

from __future__ import annotations

import pytest

from firesteel.common.types import RowKind
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from tests.support.sql.running import bound

REFUSED = [
    ("SELECT id FROM o\nWHERE k IN (SELECT k, points FROM c)", "Values passed to IN", (2, 7)),
    ("SELECT id, (SELECT k, points FROM c) AS v FROM o", "A query in an expression must have one column", (1, 12)),
    ("SELECT id, (SELECT n + MAX(points) FROM c) AS v FROM o", "Expression 'n' is not being grouped.", (1, 20)),
    ("SELECT k FROM o WHERE n > ALL (SELECT k, points FROM c)", "Values passed to SOME and ALL", (1, 23)),
    ("SELECT k FROM o WHERE k IN (SELECT zz FROM c)", "Column 'zz' not found.", (1, 36)),
    (
        "SELECT id FROM o WHERE EXISTS (SELECT k FROM p WHERE p.k = o.k UNION ALL SELECT k FROM c)",
        "Unexpected correlation or subquery: a column of the outer query below SetOperation",
        (1, 24),
    ),
    ("SELECT t.x FROM c, LATERAL (VALUES (c.points)) AS t (x)", "Unexpected correlation or subquery", (1, 20)),
    ("SELECT 1 FROM c RIGHT JOIN LATERAL (SELECT k FROM p) t ON TRUE", "LATERAL is not supported in a RIGHT", (1, 28)),
    ("SELECT GROUPING(k) FROM o", "GROUPING operator may only occur in an aggregate query", (1, 8)),
    ("SELECT GROUPING(k), COUNT(*) FROM o", "Argument to GROUPING operator must be a grouped expression", (1, 8)),
    ("SELECT k, GROUPING() FROM o GROUP BY k", "Invalid number of arguments to function 'GROUPING'", (1, 11)),
    ("SELECT SUM(n) OVER (ORDER BY id DESC) FROM o", "The window can only be ordered in ASCENDING mode.", (1, 8)),
    ("SELECT SUM(n) OVER (ORDER BY k, id) FROM o", "The window can only be ordered by a single time column.", (1, 8)),
    (
        "SELECT SUM(n) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM o",
        "Non-time attribute sort is not supported for bounded OVER window.",
        (1, 8),
    ),
    ("SELECT id,\n NTILE(2) OVER (ORDER BY id) FROM o", "NTILE Function is not supported in stream mode.", (2, 2)),
]


def translate(sql: str) -> None:
    root = optimize(bound(sql))
    Translator(StreamExecutionEnvironment.get_execution_environment(), [root]).translate(root)


@pytest.mark.parametrize(("sql", "reason", "place"), REFUSED)
def test_refusal_has_a_reason_and_a_place(sql: str, reason: str, place: tuple[int, int]) -> None:
    with pytest.raises(ValidationError) as refused:
        translate(sql)
    assert refused.value.reason.startswith(reason)
    position = refused.value.position
    assert position is not None
    assert (position.line, position.column) == place


def test_a_condition_that_is_true_or_unknown_needs_no_counts() -> None:
    assert "COUNT" not in optimize(bound("SELECT id FROM o WHERE k IN (SELECT k FROM p) OR n > 3")).explain()
    assert "COUNT" in optimize(bound("SELECT id FROM o WHERE NOT (k IN (SELECT k FROM p) AND n > 3)")).explain()


def test_comparisons_with_all_rows_are_one_join() -> None:
    assert optimize(bound("SELECT id FROM o WHERE n > ALL (SELECT amount FROM p)")).explain().count("Join") == 1


def test_lateral_with_limit_is_a_top_n() -> None:
    sql = "SELECT c.k, id FROM c, LATERAL (SELECT id FROM o WHERE o.k = c.k ORDER BY n DESC LIMIT 3)"
    assert "Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=3]" in optimize(bound(sql)).explain()


def test_over_by_a_column_updates_results() -> None:
    node = optimize(bound("SELECT id, SUM(n) OVER (ORDER BY id) AS t FROM o"))
    translator = Translator(StreamExecutionEnvironment.get_execution_environment(), [node])
    assert translator.traits(node).mode.kinds == {RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER}
