"""Bounded queries on Firesteel's operators, which run them where Spark SQL does not, have Flink's rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.datastream.executor import execution_context
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor

RECORDED = json.loads((Path(__file__).parent / "recorded/bounded_operators.json").read_text("utf-8"))


@pytest.fixture
def environment() -> Iterator[TableEnvironment]:
    with execution_context(None, InProcessExecutor()):
        environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        environment.get_config().set("parallelism.default", "2")
        for view in RECORDED["views"]:
            environment.execute_sql(view)
        yield environment


@pytest.mark.parametrize("query", RECORDED["queries"], ids=lambda query: query["sql"])
def test_rows_are_those_of_flink(environment: TableEnvironment, query: dict[str, object]) -> None:
    assert "Operators of Firesteel" in environment.explain_sql(str(query["sql"]))
    with environment.execute_sql(str(query["sql"])).collect() as rows:
        assert sorted([str(value) for value in row] for row in rows) == query["rows"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # Flink 2.3 fails on a RANGE of time
        (
            "COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW)",
            [1, 2, 2, 2, 1, 1, 2, 1],
        ),
        (
            (
                "SUM(v) OVER (PARTITION BY k ORDER BY ts "
                "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '40' SECOND FOLLOWING)"
            ),
            [10, 20, 20, 27, 3, 12, 12, 1],
        ),
        # and has -1 where the row is there and its value is NULL
        ("LEAD(v, 2, -1) OVER (PARTITION BY k ORDER BY id)", [10, 7, -1, -1, None, -1, -1, -1]),
        ("LAG(v, 1, 99) OVER (ORDER BY id)", [99, 10, None, 10, 7, 3, 9, None]),
    ],
)
def test_windows_on_which_flink_fails(environment: TableEnvironment, call: str, expected: list[int | None]) -> None:
    with environment.execute_sql(f"SELECT id, {call} FROM o").collect() as rows:
        assert [result for _, result in sorted(tuple(row) for row in rows)] == expected


def test_results_that_change_on_the_way_are_written_to_files(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.execute_sql(
        "CREATE TABLE counts (k STRING, n BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path / 'counts'}', 'format' = 'csv')"
    )
    insert = "INSERT INTO counts SELECT k, COUNT(*) FROM o GROUP BY k"
    assert "FinalRows" in environment.explain_sql(insert)
    environment.execute_sql(insert).wait()
    lines = [line for file in (tmp_path / "counts").iterdir() for line in file.read_text().splitlines()]
    assert sorted(lines) == ["a,4", "b,3", "c,1"]
