"""Windows in batch mode: any timestamp is a time, and rows are those of Flink, on the operators of Firesteel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.datastream.executor import execution_context
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor

RECORDED = json.loads(Path(__file__).with_name("batch.json").read_text("utf-8"))


@pytest.fixture
def environment() -> Iterator[TableEnvironment]:
    with execution_context(None, InProcessExecutor()):
        environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        environment.get_config().set("table.local-time-zone", RECORDED["zone"])
        for view in RECORDED["views"]:
            environment.execute_sql(view)
        yield environment


@pytest.mark.parametrize("query", RECORDED["queries"], ids=lambda query: query["sql"])
def test_rows_are_those_of_flink(environment: TableEnvironment, query: dict[str, object]) -> None:
    with environment.execute_sql(str(query["sql"])).collect() as rows:
        assert sorted([str(value) for value in row] for row in rows) == query["rows"]


@pytest.mark.parametrize(
    ("column", "message"),
    [("k", "requires the timecol to be TIMESTAMP or TIMESTAMP_LTZ, but is INT"), ("p", "Processing time")],
)
def test_other_columns_are_refused(environment: TableEnvironment, column: str, message: str) -> None:
    environment.execute_sql("CREATE TEMPORARY VIEW w AS SELECT *, PROCTIME() AS p FROM v")
    function = f"TUMBLE(TABLE w, DESCRIPTOR({column}), INTERVAL '1' DAY)"
    with pytest.raises(ValidationError, match=message):
        environment.execute_sql(f"SELECT window_start FROM TABLE({function})")


def test_a_watermark_does_not_drop_rows(environment: TableEnvironment) -> None:
    environment.execute_sql("""
        CREATE TABLE ticks (n BIGINT, ts AS TO_TIMESTAMP_LTZ(100000 - n * 1000, 3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'datagen', 'number-of-rows' = '100',
          'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100')
    """)
    function = "TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '50' SECOND)"
    query = f"SELECT COUNT(*) FROM TABLE({function}) GROUP BY window_start, window_end"
    with environment.execute_sql(query).collect() as rows:
        assert sorted(row[0] for row in rows) == [50, 50]
