"""Process table functions: rows and partitions, state, timers and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.errors import FiresteelError
from firesteel.table import ListView, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.udf import ArgumentTrait, ProcessContext, ProcessTableFunction, udptf


class Numbered(ProcessTableFunction):
    """Rows of a partition with their numbers, as long as these are not too large."""

    def eval(self, ctx: ProcessContext, *args: Any) -> Iterator[Any]:
        memory, seen, row, most = args
        memory["count"] = memory.get("count", 0) + 1
        seen.add(row.n)
        if most is not None and memory["count"] == most:
            ctx.clear_all_state()
        yield row.n, memory["count"], len(list(seen))


class Reminder(ProcessTableFunction):
    """A row when a partition has had none for five seconds."""

    def eval(self, ctx: ProcessContext, *args: Any) -> None:
        memory, row = args
        time = ctx.time_context()
        memory["last"] = row["n"]
        time.register_on_time(time.time() + dt.timedelta(seconds=5), "idle")

    def on_timer(self, ctx: ProcessContext, *states: Any) -> Any:
        ctx.clear_all()
        return f"{ctx.current_timer()} after {states[0]['last']}"


class Doubled(ProcessTableFunction):
    def eval(self, ctx: ProcessContext, *args: Any) -> list[int]:
        row, factor = args
        return [row.n, row.n * factor]


SET, ROW = ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.ROW_SEMANTIC_TABLE
numbered = udptf(
    Numbered(), {"input": SET, "most": "INT"}, "ROW<n BIGINT, c INT, s INT>", {"memory": dict, "seen": ListView}
)
reminder = udptf(Reminder(), {"input": SET}, "ROW<said STRING>", {"memory": dict})
doubled = udptf(Doubled(), {"input": ROW, "factor": "INT NOT NULL"}, "ROW<d BIGINT>")


@pytest.fixture
def environment(table_env: TableEnvironment) -> TableEnvironment:
    table_env.create_temporary_function("numbered", numbered)
    table_env.create_temporary_function("reminder", reminder)
    table_env.create_temporary_function("doubled", doubled)
    table_env.get_config().set("parallelism.default", "1")
    table_env.execute_sql(
        "CREATE TABLE numbers (n BIGINT, k AS MOD(n, 2), ts AS TO_TIMESTAMP_LTZ(n * n * 1000, 3), "
        "WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '6', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '1', 'fields.n.end' = '6')"
    )
    return table_env


def query(environment: TableEnvironment, sql: str) -> list[Row]:
    with environment.execute_sql(sql).collect() as rows:
        return list(rows)


def test_partitions_have_state_of_their_own(environment: TableEnvironment) -> None:
    found = query(environment, "SELECT * FROM numbered(input => TABLE numbers PARTITION BY k)")
    expected = [(1, 1, 1, 1), (0, 2, 1, 1), (1, 3, 2, 2), (0, 4, 2, 2), (1, 5, 3, 3), (0, 6, 3, 3)]
    assert sorted(map(tuple, found)) == sorted(expected)
    environment.get_config().set("parallelism.default", "3")
    found = query(environment, "SELECT n, c FROM TABLE(numbered(TABLE numbers PARTITION BY k, 2)) WHERE c = 1")
    assert sorted(map(tuple, found)) == [(1, 1), (2, 1), (5, 1), (6, 1)]


def test_rows_are_processed_one_by_one(environment: TableEnvironment) -> None:
    found = query(environment, "SELECT d FROM doubled(TABLE numbers, factor => 10) AS T(d) WHERE d < 30")
    assert sorted(row[0] for row in found) == [1, 2, 3, 4, 5, 6, 10, 20]


def test_timers_fire_as_watermarks_pass(environment: TableEnvironment) -> None:
    sql = "SELECT * FROM reminder(input => TABLE numbers PARTITION BY k, on_time => DESCRIPTOR(ts))"
    found = [(row[0], row[1]) for row in query(environment, sql)]
    # a row replaces the timer of its partition if the watermark has not passed it
    assert found[-2:] == [(1, "idle after 5"), (0, "idle after 6")]
    assert environment.sql_query(sql).get_resolved_schema().get_column_names() == ["k", "said", "rowtime"]


def test_calls_that_do_not_fit(environment: TableEnvironment) -> None:
    for sql, message in {
        "SELECT * FROM doubled(TABLE numbers PARTITION BY k, 2)": "Only tables with set semantics may be partitioned",
        "SELECT * FROM doubled(TABLE numbers)": "'factor' must not be left out",
        "SELECT * FROM doubled(TABLE numbers, 'x')": "'factor' expects INT",
        "SELECT * FROM numbered(inputs => TABLE numbers)": "no parameter 'inputs'",
        "SELECT doubled(n, 1) FROM numbers": "cannot be called here",
    }.items():
        with pytest.raises(ValidationError, match=message):
            environment.sql_query(sql)
    counts = "(SELECT k, COUNT(*) AS n FROM numbers GROUP BY k)"
    with pytest.raises(ValidationError, match="doesn't support consuming update"):
        query(environment, f"SELECT * FROM numbered({counts} PARTITION BY k)")
    with pytest.raises(FiresteelError, match="on_time => DESCRIPTOR"):
        query(environment, "SELECT * FROM reminder(TABLE numbers PARTITION BY k)")
    with pytest.raises(ValueError, match="set semantics"):
        udptf(Doubled(), {"input": ROW}, "INT", {"memory": dict})
