"""MATCH_RECOGNIZE gives the columns and rows that Flink gave, and refuses what Flink refused."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.parser.errors import SqlParserException
from firesteel.table.udf import ScalarFunction, udf
from firesteel.testing.in_process import InProcessExecutor
from tests.support.sql_match.queries import QUERIES, TABLES
from tests.support.sql_match.running import run, run_bounded, write_tables

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / "match.json").read_text("utf-8"))
PARTS = 12
"""Queries are tested in groups: one of them takes milliseconds."""
MORE_THAN_FLINK = (
    # Flink fails with an internal error: it takes a missing lower bound for -1
    "A{,2}",
    "B{,2}",
    # Flink does not find the variables of a match below a window table function
    "FROM TABLE(TUMBLE((SELECT",
    # Flink's parser does not know column names after the alias
    "AS m (y)",
    # Flink's own functions do not take the MULTISET, or the column of a row
    "CARDINALITY(COLLECT",
    "A.r.x",
)
"""What is in queries that Flink refuses and Firesteel runs."""
LESS_THAN_FLINK = (
    # Flink ignores the inner function
    "SUM(LAST(A.v))",
    # Flink gives NULL: no row is of a variable with the name of the table
    "t.v AS x",
    # Flink rounds otherwise than in groups
    "VAR_SAMP",
    # Flink gives NULL for columns of the variable
    "SUBSET",
)
"""What is in queries that Flink runs and Firesteel refuses."""


def parts(mode: str) -> list[Any]:
    """The queries of a mode in groups that stay the same when others come."""
    found: dict[int, list[str]] = {}
    for sql in QUERIES:
        if mode in RECORDED[sql]:
            found.setdefault(zlib.crc32(sql.encode()) % PARTS, []).append(sql)
    return [pytest.param(queries, id=f"{mode}{number}") for number, queries in sorted(found.items())]


def check(sql: str, recorded: dict[str, Any], execute: Any, *, compares_rows: bool = True) -> None:
    """Compares a query with what is recorded."""
    if "error" in recorded and any(text in sql for text in MORE_THAN_FLINK):
        with contextlib.suppress(ValidationError):
            execute(sql)
        return
    if "error" in recorded or any(text in sql for text in LESS_THAN_FLINK):
        with pytest.raises((FiresteelError, SqlParserException)):  # noqa: PT012 - to name the query
            execute(sql)
            pytest.fail(f"not refused: {sql}")
        return
    types, rows = execute(sql)
    assert types == recorded["type"], sql
    if not compares_rows:
        return
    assert len(rows) == len(recorded["rows"]), sql
    if "MATCH_PROCTIME() AS x ONE" not in sql:
        assert Counter(rows) == Counter(map(tuple, recorded["rows"])), sql


def test_all_queries_are_recorded() -> None:
    assert [sql for sql in QUERIES if "streaming" not in RECORDED.get(sql, {})] == []
    assert sum("rows" in found["streaming"] for found in RECORDED.values()) > 250
    assert sum("error" in found["streaming"] for found in RECORDED.values()) > 100


@pytest.mark.parametrize("queries", parts("streaming"))
def test_streaming_queries_have_flinks_rows(queries: list[str]) -> None:
    for sql in queries:
        check(sql, RECORDED[sql]["streaming"], run)


@pytest.mark.parametrize("queries", parts("batch"))
def test_batch_queries_have_flinks_rows(queries: list[str]) -> None:
    for sql in queries:
        if "GROUP BY k) MATCH" in sql:
            continue  # its rows are final when the input ends: test_a_batch_matches_final_rows
        # in Flink's batches rows of the same time have no order but that of the columns after it
        check(sql, RECORDED[sql]["batch"], run_bounded, compares_rows=", id MEASURES" in sql)


# -- as jobs -------------------------------------------------------------------------------------------------------


def environment(directory: Path, settings: EnvironmentSettings) -> TableEnvironment:
    """The tables in files."""
    created = TableEnvironment.create(settings)
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", "2")
    created.get_config().set_local_timezone("UTC")
    write_tables(directory)
    for name, (columns, _) in TABLES.items():
        created.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{directory}/{name}.csv', "
            "'format' = 'csv', 'csv.null-literal' = '')"
        )
    return created


FRAUD = (
    "SELECT k, a, b FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, id MEASURES A.id AS a, LAST(B.id) AS b "
    "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C) DEFINE {define})"
)
DEFINE = "A AS A.v > 4, B AS B.v <= 4, C AS C.v > LAST(B.v)"


def collected(table_env: TableEnvironment, sql: str) -> list[Any]:
    with table_env.execute_sql(sql).collect() as rows:
        return sorted((tuple(row) for row in rows), key=str)


def test_a_batch_runs_as_a_job(tmp_path: Path) -> None:
    sql = FRAUD.format(define=DEFINE)
    table_env = environment(tmp_path, EnvironmentSettings.in_batch_mode())
    assert collected(table_env, sql) == sorted(
        ((k, int(str(a)), int(str(b))) for k, a, b in run_bounded(sql)[1]), key=str
    )


def test_a_batch_matches_final_rows(tmp_path: Path) -> None:
    (sql,) = (sql for sql in QUERIES if "MAX(ts) AS ts FROM t GROUP BY k) MATCH" in sql)
    rows = collected(environment(tmp_path, EnvironmentSettings.in_batch_mode()), sql)
    assert [(str(x),) for (x,) in rows] == sorted(map(tuple, RECORDED[sql]["batch"]["rows"]))


def test_functions_of_the_user_are_called(tmp_path: Path) -> None:
    table_env = environment(tmp_path, EnvironmentSettings.in_batch_mode())

    class Above(ScalarFunction):
        def open(self, function_context: Any) -> None:
            self.limit = 4

        def eval(self, value: int | None) -> bool:
            return value is not None and value > self.limit

    table_env.create_temporary_function("above", udf(Above(), result_type=DataTypes.BOOLEAN()))
    table_env.create_temporary_function("twice", udf(lambda i: 2 * i, result_type=DataTypes.INT()))
    own = FRAUD.replace("A.id AS a", "twice(A.id) AS a").format(define=DEFINE.replace("A.v > 4", "above(A.v)"))
    expected = [(k, 2 * a, b) for k, a, b in collected(table_env, FRAUD.format(define=DEFINE))]
    assert collected(table_env, own) == sorted(expected, key=str)


def test_explain_shows_the_match(tmp_path: Path) -> None:
    table_env = environment(tmp_path, EnvironmentSettings.in_streaming_mode())
    text = table_env.explain_sql(FRAUD.format(define=DEFINE))
    assert "pattern=[A B+ C]" in text
    assert "after=[SKIP PAST LAST ROW]" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("A.v > 4", "A.q > 4"), "line 1, column 167"),
        (("A B+ C", "A B+"), "Greedy quantifiers"),
        (("A B+ C", "A | B"), "branching patterns"),
        (("ORDER BY ts, id", "ORDER BY id"), "WATERMARK"),
    ],
)
def test_errors_name_the_place_and_what_to_do(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    sql = FRAUD.format(define=DEFINE).replace(*change)
    with pytest.raises(FiresteelError) as raised:
        environment(tmp_path, EnvironmentSettings.in_streaming_mode()).sql_query(sql)
    assert words in str(raised.value)
