"""Regular joins, run in process."""

from __future__ import annotations

import pytest

from firesteel.common.types import RowKind
from firesteel.table import DataTypes
from tests.support.sql_streams import Tables

INSERT, BEFORE, AFTER, DELETE = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE


@pytest.fixture
def tables() -> Tables:
    found = Tables()
    left, right = ({"a": DataTypes.INT(), "b": DataTypes.INT()}, {"c": DataTypes.INT(), "d": DataTypes.INT()})
    found.add("l", left, [(1, 1), (2, 2), (None, 3), (1, 4), (1, 4)])
    found.add("r", right, [(1, 10), (1, 11), (3, 30), (None, 40)])
    changes = [((1, 5), INSERT), ((2, 6), INSERT), ((1, 5), BEFORE), ((1, 7), AFTER), ((2, 6), DELETE)]
    found.add("u", right, [row for row, _ in changes], [kind for _, kind in changes])
    return found


INNER = [(1, 1, 10), (1, 1, 11), (1, 4, 10), (1, 4, 10), (1, 4, 11), (1, 4, 11)]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a, b, d FROM l JOIN r ON a = c", INNER),
        ("SELECT a, b, d FROM l, r WHERE a = c", INNER),
        ("SELECT b, d FROM l JOIN r ON a = c AND b + 7 < d", [(1, 10), (1, 11)]),
        ("SELECT b, d FROM l JOIN r ON a IS NOT DISTINCT FROM c AND a IS NULL", [(3, 40)]),
        ("SELECT b, d FROM l LEFT JOIN r ON a + 1 = c - 1", [(1, 30), (2, None), (3, None), (4, 30), (4, 30)]),
        ("SELECT b, d FROM l RIGHT JOIN r ON a = c AND b > 3",
         [(4, 10), (4, 10), (4, 11), (4, 11), (None, 30), (None, 40)]),
        ("SELECT b, d FROM l FULL JOIN r ON a = c AND b = 1 AND d = 10",
         [(1, 10), (2, None), (3, None), (4, None), (4, None), (None, 11), (None, 30), (None, 40)]),
        ("SELECT b, d FROM l, r WHERE b = 1", [(1, 10), (1, 11), (1, 30), (1, 40)]),
        ("SELECT b, d FROM l LEFT JOIN u ON a = c", [(1, 7), (2, None), (3, None), (4, 7), (4, 7)]),
        ("SELECT l.b, r.d, u.d FROM l JOIN r ON a = r.c LEFT JOIN u ON u.d = r.d - 3",
         [(1, 10, 7), (1, 11, None), (4, 10, 7), (4, 10, 7), (4, 11, None), (4, 11, None)]),
    ],
)  # fmt: skip
def test_results(tables: Tables, query: str, rows: list[tuple[object, ...]], parallelism: int) -> None:
    assert tables.result(query, parallelism) == sorted(rows, key=repr)


def test_an_outer_join_above_which_nulls_are_removed_is_an_inner_join(tables: Tables) -> None:
    assert {kind for kind, _ in tables.run("SELECT * FROM l LEFT JOIN r ON a = c WHERE d > 0")} == {"+I"}


def test_columns_that_are_not_read_are_not_joined(tables: Tables) -> None:
    plan = tables.plan("SELECT b FROM l JOIN r ON a = c")
    (join,) = plan.inputs()
    assert [side.row_type.field_names for side in join.inputs()] == [("a", "b"), ("c",)]
