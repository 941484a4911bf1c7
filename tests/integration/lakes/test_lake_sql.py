"""The connectors ``iceberg`` and ``delta`` in SQL, and the catalog ``iceberg``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor
from tests.support.lakes import iceberg_options

Options = Callable[[str], str]


def environment(streaming: bool = True, parallelism: int = 3) -> TableEnvironment:
    settings = EnvironmentSettings.in_streaming_mode() if streaming else EnvironmentSettings.in_batch_mode()
    found = TableEnvironment.create(settings)
    found._session.environment._executor = InProcessExecutor()
    found.get_config().set("parallelism.default", str(parallelism))
    return found


@pytest.fixture
def env() -> TableEnvironment:
    return environment()


@pytest.fixture(params=["iceberg", "delta"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Options:
    """The options of a table by its name."""

    def of(name: str) -> str:
        if request.param == "delta":
            return f"'connector' = 'delta', 'table-path' = '{tmp_path}/{name}'"
        given = ", ".join(f"'{key}' = '{value}'" for key, value in iceberg_options(tmp_path).items())
        return f"'connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-table' = '{name}', {given}"

    return of


def rows(env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(query).collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


VALUES = """
    (1, 'a/b', 1.25, TIMESTAMP '2024-01-01 00:00:00.123456', TO_TIMESTAMP_LTZ(1500, 3), DATE '2024-02-03',
     ARRAY[1, 2], MAP['k', 1], ROW(1, 'y'), X'0102', CAST(3 AS SMALLINT), TRUE)
"""
COLUMNS = """
    id BIGINT, name STRING, price DECIMAL(10, 2), ts TIMESTAMP(6), z TIMESTAMP_LTZ(6), d DATE, a ARRAY<INT>,
    m MAP<STRING, INT>, r ROW<x INT, y STRING>, b BYTES, s SMALLINT, f BOOLEAN
"""


def test_values_of_all_types_come_back(env: TableEnvironment, options: Options) -> None:
    columns = COLUMNS if "delta" in options("t") else COLUMNS.replace("SMALLINT", "INT")
    env.execute_sql(f"CREATE TABLE t ({columns}) PARTITIONED BY (name, d) WITH ({options('t')})")
    env.execute_sql(f"INSERT INTO t VALUES {VALUES.replace('SMALLINT', columns.split()[-3].strip(','))}").wait()
    env.execute_sql("INSERT INTO t (id) VALUES (2)").wait()
    text = (
        "SELECT CAST(ROW(t.price, t.ts, t.z, t.d, t.a, t.m, t.r, t.b, t.s, t.f, t.name) AS STRING) FROM t WHERE id = 1"
    )
    (found,) = rows(env, text)
    assert found[0].startswith("(1.25, 2024-01-01 00:00:00.123456, ")
    assert found[0].endswith("2024-02-03, [1, 2], {k=1}, (1, y), \x01\x02, 3, TRUE, a/b)")
    assert rows(env, "SELECT * FROM t WHERE name IS NULL") == [(2, *[None] * 11)]
    # a condition on a partition, on a column that is not selected, and on one that is in no file
    assert rows(env, "SELECT id FROM t WHERE name = 'a/b' AND d > DATE '2024-01-01' AND ts IS NOT NULL") == [(1,)]
    assert rows(env, "SELECT COUNT(*) FROM t")[-1] == (2,)


def test_rows_are_upserted_by_the_key(env: TableEnvironment, options: Options) -> None:
    env.execute_sql(f"CREATE TABLE t (k INT, c BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({options('t')})")
    query = "INSERT INTO t SELECT k, COUNT(*) FROM (VALUES {}) AS v (k) GROUP BY k"
    env.execute_sql(query.format("(1), (2), (1), (3), (1)")).wait()
    assert rows(env, "SELECT * FROM t") == [(1, 3), (2, 1), (3, 1)]
    env.execute_sql(query.format("(2), (2), (5)")).wait()
    assert rows(env, "SELECT * FROM t") == [(1, 3), (2, 2), (3, 1), (5, 1)]
    # insertions are appended, unless all rows are upserted
    hint = "/*+ OPTIONS('write.upsert.enabled' = 'true') */"
    env.execute_sql(f"INSERT INTO t {hint} VALUES (2, 20), (9, 90) ON CONFLICT DO DEDUPLICATE").wait()
    assert rows(env, "SELECT * FROM t") == [(1, 3), (2, 20), (3, 1), (5, 1), (9, 90)]


def test_overwriting(env: TableEnvironment, options: Options) -> None:
    batch = environment(streaming=False)
    for one in (env, batch):
        one.execute_sql(f"CREATE TABLE t (a INT, b STRING) WITH ({options('t')})")
    batch.execute_sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')").wait()
    batch.execute_sql("INSERT OVERWRITE t VALUES (3, 'z')").wait()
    assert rows(batch, "SELECT * FROM t") == [(3, "z")]
    batch.execute_sql("INSERT OVERWRITE t SELECT * FROM t WHERE a > 100").wait()
    assert rows(batch, "SELECT * FROM t") == []
    with pytest.raises(ValidationError, match="doesn't support overwrite"):
        env.execute_sql("INSERT OVERWRITE t VALUES (1, 'x')")


def test_columns_that_do_not_fit_are_refused_or_added(env: TableEnvironment, options: Options) -> None:
    env.execute_sql(f"CREATE TABLE t (id BIGINT, name STRING) WITH ({options('t')})")
    env.execute_sql("INSERT INTO t VALUES (1, 'a')").wait()
    env.execute_sql(f"CREATE TABLE more (id BIGINT, nane STRING, extra INT) WITH ({options('t')})")
    with pytest.raises(
        InvalidProgramError, match="nane STRING: not in the table\n  extra INT: not in the table"
    ) as caught:
        env.execute_sql("INSERT INTO more VALUES (2, 'b', 3)")
    assert caught.value.hint == "Did you mean 'name'?"
    with pytest.raises(ValidationError, match="nane STRING: not in the table"):
        env.execute_sql("SELECT * FROM more")
    env.execute_sql(f"CREATE TABLE other (id STRING, name STRING) WITH ({options('t')})")
    with pytest.raises(InvalidProgramError, match="id STRING: is BIGINT in the table"):
        env.execute_sql("INSERT INTO other VALUES ('2', 'b')")
    env.execute_sql(f"CREATE TABLE wide (id BIGINT, extra INT) WITH ({options('t')}, 'schema-evolution' = 'apply')")
    env.execute_sql("INSERT INTO wide VALUES (2, 7)").wait()
    assert rows(env, "SELECT * FROM wide") == [(1, None), (2, 7)]
    assert rows(env, "SELECT * FROM t") == [(1, "a"), (2, None)]


def test_a_stream_has_what_is_appended_while_it_runs(env: TableEnvironment, options: Options) -> None:
    env.execute_sql(f"CREATE TABLE t (id BIGINT, name STRING) WITH ({options('t')})")
    env.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')").wait()
    is_delta = "'delta'" in options("t")
    streaming = (
        "'mode' = 'streaming', 'updateCheckIntervalMillis' = '10'"
        if is_delta
        else "'streaming' = 'true', 'monitor-interval' = '10ms', 'starting-strategy' = 'TABLE_SCAN_THEN_INCREMENTAL'"
    )
    with env.execute_sql(f"SELECT id FROM t /*+ OPTIONS({streaming}) */ WHERE id <> 2").collect() as found:
        assert tuple(next(found)) == (1,)
        writer = environment()
        writer.execute_sql(f"CREATE TABLE t (id BIGINT, name STRING) WITH ({options('t')})")
        writer.execute_sql("INSERT INTO t VALUES (3, 'c')").wait()
        assert tuple(next(found)) == (3,)
        overwriter = environment(streaming=False)
        overwriter.execute_sql(f"CREATE TABLE t (id BIGINT, name STRING) WITH ({options('t')})")
        overwriter.execute_sql("INSERT OVERWRITE t VALUES (4, 'd')").wait()
        with pytest.raises(FiresteelError, match="stream of appended rows cannot have"):
            next(found)


def test_options_that_exclude_each_other(env: TableEnvironment, options: Options) -> None:
    env.execute_sql(f"CREATE TABLE t (id BIGINT) WITH ({options('t')})")
    with pytest.raises(InvalidProgramError, match=r"no table|no Delta table"):
        env.execute_sql("SELECT * FROM t")
    env.execute_sql("INSERT INTO t VALUES (1)").wait()
    if "'delta'" in options("t"):
        wrong = "'versionAsOf' = '1', 'timestampAsOf' = '2024-01-01'"
    else:
        wrong = "'snapshot-id' = '1', 'as-of-timestamp' = '2'"
    with pytest.raises(ValidationError, match="Only one of the options"):
        env.execute_sql(f"SELECT * FROM t /*+ OPTIONS({wrong}) */")


def test_changes_of_a_delta_table_are_a_changelog(env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'delta', 'table-path' = '{tmp_path}/t', 'delta.enableChangeDataFeed' = 'true'"
    env.execute_sql(f"CREATE TABLE t (k INT, c BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({options})")
    query = "INSERT INTO t SELECT k, COUNT(*) FROM (VALUES {}) AS v (k) GROUP BY k"
    env.execute_sql(query.format("(1), (2), (1)")).wait()
    env.execute_sql(query.format("(2), (2), (2)")).wait()
    hint = "/*+ OPTIONS('readChangeFeed' = 'true', 'startingVersion' = '1') */"
    with env.execute_sql(f"SELECT SUM(c) FROM t {hint}").collect() as found:
        assert [tuple(row) for row in found][-1] == (5,)
    assert rows(env, "SELECT * FROM t /*+ OPTIONS('versionAsOf' = '1') */") == [(1, 2), (2, 1)]


def test_the_catalog(env: TableEnvironment, tmp_path: Path) -> None:
    given = ", ".join(f"'{key}' = '{value}'" for key, value in iceberg_options(tmp_path).items())
    env.execute_sql(f"CREATE CATALOG lake WITH ('type' = 'iceberg', {given})")
    env.execute_sql("USE CATALOG lake")
    env.execute_sql("CREATE DATABASE shop")
    env.execute_sql("USE shop")
    env.execute_sql("CREATE TABLE orders (id BIGINT, d STRING, PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (d)")
    assert rows(env, "SHOW DATABASES") == [("default",), ("shop",)]
    assert rows(env, "SHOW TABLES") == [("orders",)]
    env.execute_sql("INSERT INTO orders VALUES (1, 'x'), (2, 'y')").wait()
    assert rows(env, "SELECT * FROM lake.shop.orders") == [(1, "x"), (2, "y")]
    assert "PRIMARY KEY (`id`)" in rows(env, "SHOW CREATE TABLE orders")[0][0]
    with pytest.raises(ValidationError) as caught:
        env.execute_sql("SELECT * FROM ordres")
    assert caught.value.hint == "Did you mean 'orders'?"
    with pytest.raises(ValidationError, match="no physical column"):
        env.execute_sql("CREATE TABLE w (id BIGINT, twice AS id * 2)")
    env.execute_sql("ALTER TABLE orders RENAME TO bought")
    env.execute_sql("DROP TABLE bought")
    assert rows(env, "SHOW TABLES") == []
    with pytest.raises(ValidationError, match="'hadoop' is not supported"):
        env.execute_sql("CREATE CATALOG h WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '/x')")
    env.execute_sql("USE CATALOG default_catalog")
    env.execute_sql("DROP CATALOG lake")
