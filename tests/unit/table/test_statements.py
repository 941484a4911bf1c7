"""What the parser makes of statements of each kind."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from firesteel.table.parser import parse_statement
from firesteel.table.parser.statements import alter, dml, objects, tables, utility


def test_create_table_as() -> None:
    statement = parse_statement("CREATE OR REPLACE TABLE t (b, a) WITH ('k' = 'v') AS SELECT a, b FROM u")
    assert isinstance(statement, tables.CreateTable)
    assert statement.replace
    assert statement.schema == tables.TableSchema(column_names=(("b",), ("a",)))
    assert isinstance(statement.query, exp.Select)


def test_create_materialized_table() -> None:
    statement = parse_statement(
        "CREATE MATERIALIZED TABLE m PARTITIONED BY (ds) FRESHNESS = INTERVAL '3' MINUTE REFRESH_MODE = FULL "
        "AS SELECT ds FROM t"
    )
    assert isinstance(statement, tables.CreateMaterializedTable)
    assert statement.partition_keys == ("ds",)
    assert statement.refresh_mode == "FULL"
    assert isinstance(statement.freshness, exp.Interval)


def test_insert() -> None:
    statement = parse_statement(
        "INSERT OVERWRITE c.t /*+ OPTIONS('k'='v') */ PARTITION (p = 1) (a, r.x) SELECT 1, 2 ON CONFLICT DO NOTHING"
    )
    assert isinstance(statement, dml.Insert)
    assert statement.path == ("c", "t")
    assert statement.overwrite
    assert [name for name, _ in statement.partition] == ["p"]
    assert statement.columns == (("a",), ("r", "x"))
    assert statement.hints[0].args["options"] == (("k", "v"),)
    assert statement.on_conflict == "NOTHING"


def test_statement_set() -> None:
    statement = parse_statement("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END")
    assert isinstance(statement, utility.Execute)
    assert isinstance(statement.statement, dml.StatementSet)
    assert [insert.path for insert in statement.statement.statements] == [("a",), ("b",)]


CHANGES: dict[str, Any] = {
    "TABLE t RENAME TO u": alter.Rename(("u",)),
    "TABLE t RENAME a TO b": alter.RenameColumn(("a",), ("b",)),
    "TABLE t SET ('k' = 'v')": alter.SetOptions((("k", "v"),)),
    "TABLE t RESET ('k')": alter.ResetOptions(("k",)),
    "TABLE t DROP (a, r.b)": alter.DropColumns((("a",), ("r", "b"))),
    "TABLE t DROP PRIMARY KEY": alter.DropPrimaryKey(),
    "TABLE t DROP CONSTRAINT c": alter.DropConstraint("c"),
    "TABLE t DROP WATERMARK": alter.DropWatermark(),
    "TABLE t ADD DISTRIBUTION BY HASH (a) INTO 2 BUCKETS": alter.ChangeDistribution(
        "ADD", tables.Distribution("HASH", ("a",), 2)
    ),
    "TABLE t MODIFY PRIMARY KEY (a) NOT ENFORCED": alter.AddOrModifySchema(
        "MODIFY", constraints=(tables.TableConstraint("PRIMARY KEY", ("a",), None, False),)
    ),
    "MATERIALIZED TABLE m SUSPEND": alter.Suspend(),
    "MATERIALIZED TABLE m RESUME WITH ('k' = 'v')": alter.Resume((("k", "v"),)),
    "MATERIALIZED TABLE m SET REFRESH_MODE = FULL": alter.AlterRefreshMode("FULL"),
    "CATALOG c COMMENT 'x'": alter.AlterCatalogComment("x"),
    "TEMPORARY SYSTEM FUNCTION f AS 'x' LANGUAGE PYTHON": alter.AlterFunction("x", "PYTHON", True, True),
    "MODEL IF EXISTS m RENAME TO n": alter.Rename(("n",)),
}


@pytest.mark.parametrize("sql", CHANGES)
def test_alter(sql: str) -> None:
    statement = parse_statement(f"ALTER {sql}")
    assert isinstance(statement, alter.AlterObject)
    assert statement.change == CHANGES[sql]


def test_added_columns_have_places() -> None:
    statement = parse_statement("ALTER TABLE t ADD (a INT FIRST, r.b STRING AFTER r.c, d INT)")
    assert isinstance(statement, alter.AlterObject)
    assert isinstance(statement.change, alter.AddOrModifySchema)
    first, second, third = statement.change.columns
    assert first.first
    assert second.after == ("r", "c")
    assert (third.first, third.after) == (False, None)


STATEMENTS: dict[str, Any] = {
    "SHOW TABLES FROM c.d NOT LIKE 'a%'": utility.Show("TABLES", ("c", "d"), utility.LikePattern("a%", True)),
    "SHOW USER FUNCTIONS ILIKE 'a'": utility.Show("USER FUNCTIONS", None, utility.LikePattern("a", False, True)),
    "SHOW CURRENT CATALOG": utility.Show("CURRENT CATALOG"),
    "SHOW CREATE MATERIALIZED TABLE m": utility.ShowCreate("MATERIALIZED TABLE", ("m",)),
    "DESC EXTENDED t": utility.DescribeObject("TABLE", ("t",), True),
    "DESCRIBE FUNCTION f": utility.DescribeObject("FUNCTION", ("f",)),
    "DESCRIBE JOB 'x'": utility.DescribeJob("x"),
    "STOP JOB 'x' WITH SAVEPOINT WITH DRAIN": utility.StopJob("x", True, True),
    "USE c.d": utility.UseDatabase(("c", "d")),
    "USE CATALOG c": utility.UseCatalog("c"),
    "USE MODULES a, b": utility.UseModules(("a", "b")),
    "LOAD MODULE m WITH ('k' = 'v')": utility.LoadModule("m", (("k", "v"),)),
    "UNLOAD MODULE m": utility.UnloadModule("m"),
    "SET": utility.SetOption(),
    "SET 'a.b' = 'c'": utility.SetOption("a.b", "c"),
    "SET table.sql-dialect = default": utility.SetOption("table.sql-dialect", "default"),
    "SET a.b='c d';": utility.SetOption("a.b", "c d"),
    "RESET 'a'": utility.ResetOption("a"),
    "RESET a.b": utility.ResetOption("a.b"),
    "ADD JAR '/x'": utility.Jar("ADD", "/x"),
    "ANALYZE TABLE t PARTITION (p) COMPUTE STATISTICS FOR COLUMNS a, b": utility.AnalyzeTable(
        ("t",), (("p", None),), ("a", "b")
    ),
    "EXECUTE PLAN '/x'": utility.ExecutePlan("/x"),
    "DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f": objects.Drop("FUNCTION", ("f",), True, True, True),
    "DROP DATABASE d CASCADE": objects.DropDatabase(("d",), False, True),
    "CREATE FUNCTION f AS 'x' USING JAR '/a', JAR '/b'": objects.CreateFunction(
        ("f",), "x", None, (objects.FunctionResource("JAR", "/a"), objects.FunctionResource("JAR", "/b"))
    ),
    "CREATE CATALOG IF NOT EXISTS c COMMENT 'x' WITH ('type' = 'y')": objects.CreateCatalog(
        "c", (("type", "y"),), "x", True
    ),
    "TRUNCATE TABLE t": dml.TruncateTable(("t",)),
    "BEGIN STATEMENT SET": dml.BeginStatementSet(),
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements(sql: str) -> None:
    assert parse_statement(sql) == STATEMENTS[sql]


def test_explain() -> None:
    statement = parse_statement("EXPLAIN CHANGELOG_MODE, PLAN_ADVICE INSERT INTO t SELECT 1")
    assert isinstance(statement, utility.Explain)
    assert statement.details == ("CHANGELOG_MODE", "PLAN_ADVICE")
    assert isinstance(statement.statement, dml.Insert)


def test_call() -> None:
    statement = parse_statement("CALL sys.compact(t => 'x')")
    assert isinstance(statement, utility.ProcedureCall)
    assert statement.call.args["path"] == ("sys",)
    assert isinstance(statement.call.expressions[0], exp.Kwarg)
