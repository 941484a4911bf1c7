"""Queries that drawn programs found to be wrong."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.common.types import RowKind
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.table import DataTypes, Schema, StreamTableEnvironment
from firesteel.testing.in_process import InProcessExecutor

ADDED = (RowKind.INSERT, RowKind.UPDATE_AFTER)


@pytest.fixture
def t_env() -> StreamTableEnvironment:
    """An environment whose jobs run in this process, one row after the other."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env._executor = InProcessExecutor()
    created = StreamTableEnvironment.create(env)
    created.get_config().set_local_timezone("UTC")
    created.get_config().set("table.exec.mini-batch.enabled", "false")
    return created


def rows_of(t_env: StreamTableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    """The rows that are left of a query."""
    left: Counter[tuple[Any, ...]] = Counter()
    with t_env.execute_sql(query).collect() as changes:
        for row in changes:
            left[tuple(row)] += 1 if row.get_row_kind() in ADDED else -1
    return Counter({row: count for row, count in left.items() if count})


def test_top_n_of_groups_that_vanish(t_env: StreamTableEnvironment) -> None:
    """Groups are deleted, so their first rows cannot be found by the key alone."""
    kinds = [("+", 1, "a"), ("+", 1, "b"), ("+", 1, "c"), ("-", 1, "b"), ("-", 1, "a"), ("+", 2, "z"), ("-", 2, "z")]
    changes = [Row.of_kind(RowKind.INSERT if kind == "+" else RowKind.DELETE, k, s) for kind, k, s in kinds]
    type_ = Types.ROW_NAMED(["k", "s"], [Types.INT(), Types.STRING()])
    stream = t_env._session.environment.from_collection(changes, type_)
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream))
    numbered = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY s DESC) AS rn FROM (SELECT DISTINCT k, s FROM t)"
    for limit in (1, 2):
        assert rows_of(t_env, f"SELECT k, s FROM ({numbered}) WHERE rn <= {limit}") == Counter([(1, "c")])
        assert rows_of(t_env, f"SELECT k, s, rn FROM ({numbered}) WHERE rn <= {limit}") == Counter([(1, "c", 1)])


def test_over_of_rows_before_1970(t_env: StreamTableEnvironment) -> None:
    """Flink drops these."""
    times = [dt.datetime(1969, 12, 31, 23, 59, 50), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 5)]  # noqa: DTZ001
    type_ = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.INT()), DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3))])
    stream = t_env.to_data_stream(t_env.from_elements([(1, time) for time in times], type_))
    schema = Schema.new_builder().column("k", "INT").column("ts", "TIMESTAMP(3)").watermark("ts", "ts").build()
    t_env.create_temporary_view("t", t_env.from_data_stream(stream, schema))
    for frame in ("RANGE BETWEEN INTERVAL '7' SECOND", "ROWS BETWEEN 1"):
        over = f"PARTITION BY k ORDER BY ts {frame} PRECEDING AND CURRENT ROW"
        counts = rows_of(t_env, f"SELECT ts, COUNT(*) OVER ({over}) AS n FROM t")
        assert [row[0] for row in sorted(counts)] == times
        assert sum(row[1] for row in counts) == (4 if "RANGE" in frame else 5)
