"""``CREATE CATALOG … WITH ('type' = 'jdbc')``: the tables of a PostgreSQL server."""

from __future__ import annotations

from decimal import Decimal

import pytest

from firesteel.common import Row
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor

COLUMNS = """
    id bigint, code smallint, n integer NOT NULL, f real, x double precision, ok boolean, price numeric(10, 2),
    free numeric, c char(3), v varchar(20), name text, raw bytea, day date, at time(3), stamp timestamp(3),
    zoned timestamptz, tags text[], PRIMARY KEY (id, n)
"""
TYPES = {
    "id": "BIGINT",
    "code": "SMALLINT",
    "n": "INT",
    "f": "FLOAT",
    "x": "DOUBLE",
    "ok": "BOOLEAN",
    "price": "DECIMAL(10, 2)",
    "free": "DECIMAL(38, 18)",
    "c": "CHAR(3)",
    "v": "VARCHAR(20)",
    "name": "STRING",
    "raw": "BYTES",
    "day": "DATE",
    "at": "TIME(3)",
    "stamp": "TIMESTAMP(3)",
    "zoned": "TIMESTAMP_LTZ(6)",
    "tags": "ARRAY<STRING>",
}


def create(environment: TableEnvironment, port: int, database: str = "postgres") -> None:
    environment.execute_sql(
        f"CREATE CATALOG pg WITH ('type' = 'jdbc', 'default-database' = '{database}', 'username' = 'postgres', "
        f"'password' = 'x', 'base-url' = 'jdbc:postgresql://127.0.0.1:{port}')"
    )


def rows(environment: TableEnvironment, sql: str) -> list[Row]:
    with environment.execute_sql(sql).collect() as found:
        return list(found)


@pytest.fixture
def environment() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    created._session.environment._executor = InProcessExecutor()
    return created


def test_tables_of_a_server(tables, environment):
    tables.run(f"CREATE TABLE t ({COLUMNS})")
    tables.run('CREATE TABLE "My.Orders" (id integer, "Name" text)')
    tables.run("INSERT INTO t (id, n, price, name, tags) VALUES (1, 2, 1.5, 'a', '{x,y}'), (2, 3, NULL, NULL, NULL)")
    create(environment, tables.server.port)
    environment.execute_sql("USE CATALOG pg")
    assert Row("postgres") in rows(environment, "SHOW DATABASES")
    shown = rows(environment, "SHOW TABLES")
    assert {Row(f"{tables.schema}.t"), Row(f"{tables.schema}.My.Orders")} <= set(shown)
    described = rows(environment, f"DESCRIBE `{tables.schema}.t`")
    assert {row[0]: row[1] for row in described} == TYPES
    assert [row[0] for row in described if not row[2]] == ["id", "n"]
    assert {row[3] for row in described if row[3]} == {"PRI(id, n)"}
    found = rows(environment, f"SELECT id, price, name, tags FROM `{tables.schema}.t`")
    assert sorted(found, key=lambda row: row[0]) == [Row(1, Decimal("1.50"), "a", ["x", "y"]), Row(2, None, None, None)]
    environment.execute_sql(f"INSERT INTO pg.postgres.`{tables.schema}.My.Orders` VALUES (7, 'seven')").wait()
    assert tables.run('SELECT * FROM "My.Orders"') == [(7, "seven")]


def test_what_is_refused(tables, environment):
    tables.run("CREATE TABLE odd (id integer, point point)")
    create(environment, tables.server.port)
    assert Row(f"{tables.schema}.odd") in rows(environment, "SHOW TABLES IN pg.postgres")
    with pytest.raises(Exception, match="Doesn't support Postgres type 'point' yet"):
        rows(environment, f"SELECT * FROM pg.postgres.`{tables.schema}.odd`")
    with pytest.raises(ValidationError, match="not found"):
        rows(environment, "SELECT * FROM pg.postgres.nothing")
    with pytest.raises(ValidationError, match="not found"):
        rows(environment, "SELECT * FROM pg.nowhere.t")
    with pytest.raises(ValidationError, match="Could not execute CreateTable"):
        environment.execute_sql("CREATE TABLE pg.postgres.t (a INT) WITH ('connector' = 'print')")


def test_a_server_that_cannot_be_reached(tables, environment):
    with pytest.raises(ValidationError, match="The catalog 'pg' failed connecting to jdbc"):
        create(environment, 1)
    with pytest.raises(ValidationError, match='database "nowhere" does not exist'):
        create(environment, tables.server.port, "nowhere")
    assert rows(environment, "SHOW CATALOGS") == [Row("default_catalog")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "'base-url' = 'jdbc:postgresql://h:1'",
            "Missing required options are:\n\ndefault-database\npassword\nusername",
        ),
        ("'base-url' = 'jdbc:mysql://h', 'default-database' = 'd', 'username' = 'u', 'password' = 'p'", "base-url"),
    ],
)
def test_wrong_options(environment, options, message):
    with pytest.raises(ValidationError, match=message):
        environment.execute_sql(f"CREATE CATALOG pg WITH ('type' = 'jdbc', {options})")
