"""Functions of the clock in streaming queries."""

from __future__ import annotations

import time

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor


def environment() -> TableEnvironment:
    """An environment whose jobs run in this process."""
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env._session.environment._executor = InProcessExecutor()
    return table_env


def test_the_clock_is_read_when_a_row_is_evaluated() -> None:
    before = time.time()
    rows = list(environment().execute_sql("SELECT CURRENT_TIMESTAMP, UNIX_TIMESTAMP() FROM (VALUES 1, 2)").collect())
    assert len(rows) == 2
    for at, seconds in rows:
        assert before - 1 <= at.to_epoch_milli() / 1000 <= time.time()
        assert int(before) <= seconds <= time.time()


def test_proctime_in_a_query_is_a_time_attribute() -> None:
    table_env = environment()
    table_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT x, PROCTIME() AS p FROM (VALUES 1, 2) AS T (x)")
    (column,) = [c for c in table_env.from_path("v").get_resolved_schema().get_columns() if c.name == "p"]
    assert column.data_type.as_summary_string() == "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"
