"""ORDER BY in batch mode, in queries that Spark SQL cannot run."""

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
