"""Statements in a table environment, run in process."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.errors import JobExecutionError
from firesteel.table import ExplainDetail, ResultKind, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import CatalogDatabase

VALUES = "(VALUES (1, 'a', CAST(NULL AS INT)), (22, 'bbbb', 3)) AS x(i, s, n)"


def test_a_query_is_printed_as_flink_does(table_env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    table_env.execute_sql(f"SELECT * FROM {VALUES}").print()
    assert capsys.readouterr().out == (
        "+----+-------------+--------------------------------+-------------+\n"
        "| op |           i |                              s |           n |\n"
        "+----+-------------+--------------------------------+-------------+\n"
        "| +I |           1 |                              a |      <NULL> |\n"
        "| +I |          22 |                           bbbb |           3 |\n"
        "+----+-------------+--------------------------------+-------------+\n"
        "2 rows in set\n"
    )


def test_no_rows(table_env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    table_env.execute_sql(f"SELECT * FROM {VALUES} WHERE i > 100").print()
    assert capsys.readouterr().out == "Empty set\n"


def test_rows_are_collected(table_env: TableEnvironment) -> None:
    with table_env.execute_sql(f"SELECT s, n FROM {VALUES}").collect() as rows:
        assert list(rows) == [Row("a", None), Row("bbbb", 3)]


def test_rows_are_collected_without_chains(table_env: TableEnvironment) -> None:
    table_env.get_config().set("pipeline.operator-chaining.enabled", "false")
    with table_env.execute_sql(f"SELECT s, n FROM {VALUES}").collect() as rows:
        assert list(rows) == [Row("a", None), Row("bbbb", 3)]


def test_rows_in_rows_have_positions_as_in_pyflink(table_env: TableEnvironment) -> None:
    query = "SELECT ROW(ROW(1, TIMESTAMP '2020-01-01 10:11:12'), ARRAY['x']), MAP['k', ROW(TRUE)], ARRAY[ROW(1)]"
    with table_env.execute_sql(query).collect() as rows:
        moment = dt.datetime(2020, 1, 1, 10, 11, 12)  # noqa: DTZ001
        assert list(rows) == [Row(Row(Row(1, moment), ["x"]), {"k": Row(True)}, [Row(1)])]


def test_insert(table_env: TableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    created = table_env.execute_sql("CREATE TABLE target (k INT, v STRING) WITH ('connector' = 'print')")
    assert created.get_result_kind() is ResultKind.SUCCESS
    result = table_env.execute_sql(f"INSERT INTO target SELECT i, s FROM {VALUES}")
    result.wait()
    assert list(result.collect()) == [Row(-1)]
    assert result.get_resolved_schema().get_column_names() == ["default_catalog.default_database.target"]
    assert "bbbb" in capfd.readouterr().out


def test_jobs_have_the_name_of_the_options(table_env: TableEnvironment) -> None:
    table_env.execute_sql("SET 'pipeline.name' = 'nightly'")
    table_env.execute_sql("CREATE TABLE target (k INT, v STRING) WITH ('connector' = 'blackhole')")
    for statement in (f"INSERT INTO target SELECT i, s FROM {VALUES}", f"SELECT * FROM {VALUES}"):
        result = table_env.execute_sql(statement)
        result.wait()
        client: Any = result.get_job_client()
        assert client._handle.job_graph.job_name == "nightly"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k, SUM(v) FROM t GROUP BY k", [["a", "5"], ["b", "2"], ["c", "4"]]),
        (
            "SELECT x.k, y.v FROM t AS x LEFT JOIN t AS y ON x.v + 2 = y.v",
            [["a", ""], ["a", ""], ["b", "4"], ["b", "4"], ["c", ""]],
        ),
        ("SELECT k, v FROM t ORDER BY v DESC LIMIT 2", [["a", "4"], ["c", "4"]]),
        ("SELECT k, COUNT(*) FROM t WHERE v > 9 GROUP BY k", []),
        ("SELECT COUNT(*), 1 FROM t", [["4", "1"]]),
    ],
)
def test_a_batch_writes_final_rows(
    query: str, rows: list[list[str]], table_env: TableEnvironment, tmp_path: Path
) -> None:
    values = "(VALUES ('a', 1), ('b', 2), ('a', 4), ('c', 4)) AS v(k, v)"
    table_env.get_config().set("execution.runtime-mode", "batch").set("execution.checkpointing.interval", "10 ms")
    table_env.execute_sql(f"CREATE TEMPORARY VIEW t AS SELECT * FROM {values}")
    table_env.execute_sql(
        f"CREATE TABLE target (k STRING, v STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', "
        "'format' = 'csv', 'csv.null-literal' = '')"
    )
    names = "CAST(a AS STRING), CAST(b AS STRING)"
    table_env.execute_sql(f"INSERT INTO target SELECT {names} FROM ({query}) AS x(a, b)").wait()
    written = [line.split(",") for path in sorted(tmp_path.rglob("part-*")) for line in path.read_text().splitlines()]
    assert sorted(written) == rows


def test_views_keep_their_meaning_in_another_database(table_env: TableEnvironment) -> None:
    table_env.execute_sql("CREATE VIEW base AS SELECT 1 AS a")
    table_env.execute_sql("CREATE VIEW v (b) AS WITH q AS (SELECT a FROM base) SELECT q.a + 1 FROM q")
    catalog = table_env.get_catalog("default_catalog")
    assert catalog is not None
    catalog.create_database("other", CatalogDatabase(), ignore_if_exists=False)
    table_env.use_database("other")
    with table_env.sql_query("SELECT b FROM default_database.v").execute().collect() as rows:
        assert list(rows) == [Row(2)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT *\nFROM bose", "Object 'bose' not found (line 2, column 6)\nHint: Did you mean 'base'?"),
        ("SELECT x FROM base", "Column 'x' not found. (line 1, column 8)"),
        ("INSERT INTO snk SELECT 1", "Cause: Different number of columns."),
        ("INSERT INTO snk SELECT 1, 2", "Cause: Incompatible types for sink column 'b' at position 2."),
        ("INSERT INTO snk (b) SELECT 'x'", "Column 'a' has no default value and does not allow NULLs"),
        ("INSERT INTO nope SELECT 1", "Cannot find table '`default_catalog`.`default_database`.`nope`'"),
        ("SELECT * FROM snk", "Connector 'blackhole' can only be used as a sink."),
    ],
)
def test_bad_statements(table_env: TableEnvironment, sql: str, message: str) -> None:
    table_env.execute_sql("CREATE VIEW base AS SELECT 1 AS a")
    table_env.execute_sql("CREATE TABLE snk (a INT NOT NULL, b STRING) WITH ('connector' = 'blackhole')")
    with pytest.raises(ValidationError) as caught:
        table_env.execute_sql(sql)
    assert message in str(caught.value)


def test_nulls_in_not_null_columns(table_env: TableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    table_env.execute_sql("CREATE TABLE snk (a INT NOT NULL) WITH ('connector' = 'print')")
    insert = f"INSERT INTO snk SELECT n FROM {VALUES}"
    with pytest.raises(Exception, match="Column 'a' is NOT NULL, however, a null value is being written into it"):
        table_env.execute_sql(insert).wait()
    table_env.get_config().set("table.exec.sink.not-null-enforcer", "DROP")
    table_env.execute_sql(insert).wait()
    assert "3" in capfd.readouterr().out


def test_explain(table_env: TableEnvironment) -> None:
    table_env.create_temporary_view("t", table_env.from_elements([(1, "a"), (2, "b")], ["i", "s"]))
    details = (ExplainDetail.CHANGELOG_MODE, ExplainDetail.ESTIMATED_COST)
    text = table_env.explain_sql("SELECT i + 1 AS j FROM t WHERE i > 1", *details)
    parts = text.split("\n\n")
    assert [part.splitlines()[0] for part in parts] == [
        "== Abstract Syntax Tree ==",
        "== Optimized Physical Plan ==",
        "== Optimized Execution Plan ==",
    ]
    calc, scan = parts[1].splitlines()[1:]
    assert re.fullmatch(r"Calc\(select=\[.*, changelogMode=\[I\]\): rowcount = unknown", calc)
    assert re.fullmatch(r"\+- TableScan\(table=\[.*, changelogMode=\[I\]\): rowcount = 2", scan)
    with pytest.raises(ValidationError, match="PLAN_ADVICE is not supported"):
        table_env.explain_sql("SELECT 1", ExplainDetail.PLAN_ADVICE)


def test_a_modified_column_keeps_its_comment(table_env: TableEnvironment) -> None:
    table_env.execute_sql("CREATE TABLE m (a INT COMMENT 'x', b INT COMMENT 'y') WITH ('connector' = 'print')")
    table_env.execute_sql("ALTER TABLE m MODIFY (a BIGINT, b BIGINT COMMENT 'z')")
    assert [list(row)[-1] for row in table_env.execute_sql("DESCRIBE m").collect()] == ["x", "z"]


def test_a_failed_query_has_the_line_of_the_program(table_env: TableEnvironment) -> None:
    with pytest.raises(JobExecutionError) as failed:
        list(table_env.execute_sql(f"SELECT i / (i - 1) FROM {VALUES}").collect())
    assert failed.value.failure is not None
    assert str(failed.value.failure.defined_at).startswith(__file__)


@pytest.mark.parametrize("missing", ["sqlglot", "pyarrow", "numpy"])
def test_without_the_extra_the_import_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from firesteel.table import DataTypes, TableEnvironment"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: Firesteel's SQL needs sqlglot, pyarrow and numpy: pip install 'firesteel[sql]'" in done.stderr
