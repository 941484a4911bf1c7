"""ORDER BY and aggregates in batch mode, in queries that Spark SQL does not run."""

from __future__ import annotations

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor

ROWS = "(VALUES (2, 'b'), (1, 'a'), (CAST(NULL AS INT), 'c'), (2, 'd'), (1, 'e')) AS t (k, v)"


@pytest.fixture
def batch_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "2")
    environment._session.environment._executor = InProcessExecutor()
    return environment


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT k, COLLECT(v) FROM {ROWS} GROUP BY k ORDER BY k DESC", [2, 1, None]),
        (f"SELECT k, COLLECT(v) FROM {ROWS} GROUP BY k ORDER BY k", [None, 1, 2]),
        (f"SELECT k, COLLECT(v) FROM {ROWS} GROUP BY k ORDER BY k OFFSET 1", [1, 2]),
        (f"SELECT k, COLLECT(v) FROM {ROWS} WHERE k > 2 GROUP BY k ORDER BY k", []),
        (f"SELECT k, c FROM (SELECT k, COLLECT(v) AS c FROM {ROWS} GROUP BY k ORDER BY k) WHERE k > 1", [2]),
    ],
)
def test_rows_are_sorted_when_the_input_has_ended(batch_env: TableEnvironment, query: str, expected: list[int]) -> None:
    assert "Operators of Firesteel" in batch_env.explain_sql(query)
    with batch_env.execute_sql(query).collect() as rows:
        assert [row[0] for row in rows] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT COUNT(*), SUM(k), MAX(v), COUNT(DISTINCT v) FROM {ROWS} WHERE v > 'x'", [(0, None, None, 0)]),
        (f"SELECT COUNT(*), SUM(k), MAX(v), COUNT(DISTINCT v) FROM {ROWS}", [(5, 6, "e", 5)]),
        (f"SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM {ROWS} WHERE v > 'x') WHERE n = 0", [(1,)]),
        (f"SELECT COLLECT(v), COUNT(*), MAX(k) FROM {ROWS} WHERE v > 'x'", [({}, 0, None)]),
        (f"SELECT COUNT(*), COLLECT(k) FROM {ROWS} WHERE v = 'e'", [(1, {1: 1})]),
        (f"SELECT CARDINALITY(c) FROM (SELECT COLLECT(v) AS c, SUM(k) AS s FROM {ROWS} WHERE v > 'x')", [(0,)]),
        (f"SELECT COLLECT(n) FROM (SELECT k, COUNT(*) AS n FROM {ROWS} GROUP BY k HAVING COUNT(*) > 9)", [({},)]),
        (f"SELECT 7, JSON_ARRAYAGG(v) FROM {ROWS} WHERE v > 'x'", [(7, "[]")]),
        (f"SELECT k, COUNT(*) FROM {ROWS} WHERE v > 'x' GROUP BY k", []),
    ],
)
def test_an_aggregate_of_no_rows_has_one_row(batch_env: TableEnvironment, query: str, expected: list[object]) -> None:
    with batch_env.execute_sql(query).collect() as rows:
        assert [tuple(row) for row in rows] == expected
