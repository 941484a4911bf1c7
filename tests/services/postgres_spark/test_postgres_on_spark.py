"""Tables of PostgreSQL in bounded queries: read by Spark's JDBC reader, with the rows that a job of Firesteel reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.services.postgres_driver import postgres_driver

PROGRAM = Path(__file__).with_name("jdbc_program.py")


@pytest.fixture(scope="module")
def found(postgres: Any) -> dict[str, dict[str, Any]]:
    """What a program with a Spark of its own reads by each way."""
    with postgres.connect(autocommit=True) as connection:
        connection.execute("CREATE SCHEMA on_spark")
        connection.execute("SET search_path = on_spark")
        connection.execute(
            "CREATE TABLE t (id int, big bigint, small smallint, real_ real, double_ double precision, flag boolean, "
            "price numeric(10, 2), name text, code varchar(5), day_ date, at_ timestamp, at3 timestamp(3), "
            "instant timestamptz, data bytea)"
        )
        connection.execute(
            r"INSERT INTO t VALUES (1, 9223372036854775807, -32768, 'NaN', '-Infinity', true, -12345678.99, 'Abc', "
            r"'', '0001-01-01', '2020-03-08 02:30:00.123456', '1500-02-28 23:59:59.999', '2020-03-08 02:30:00+09', "
            r"'\x00ff'), (2, 0, 0, 0.1, 0.1, false, 0, 'Zoë', 'it''s', '9999-12-31', '9999-12-31 23:59:59.999999', "
            r"'0001-01-01 00:00:00', '1883-11-18 12:00:00-04:56', ''), "
            r"(3, -1, 7, '-0', 1e308, NULL, 1.5, E'b\\', 'x', '2020-02-29', '2020-01-01 00:00:00.000001', "
            r"'2020-01-01 00:00:00.5', '2020-01-01 00:00:00.000001Z', '\xc3')"
        )
        connection.execute("INSERT INTO t (id) VALUES (4)")
        connection.execute("CREATE TABLE others (id int, tags text[], u uuid, j json)")
        connection.execute(
            "INSERT INTO others VALUES (1, ARRAY['a', NULL], gen_random_uuid(), '{}'), (2, NULL, NULL, NULL)"
        )
        connection.execute("CREATE TABLE unending (id int, at_ timestamp)")
        connection.execute("INSERT INTO unending VALUES (1, 'infinity')")
    url = f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres?options=-csearch_path%3Don_spark"
    command = [sys.executable, str(PROGRAM), str(postgres_driver()), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["all", "partitions"])
def test_spark_reads_the_rows_that_a_job_reads(found: dict[str, Any], name: str) -> None:
    ours, theirs = found["spark"][name], found["job"][name]
    assert "read by Spark (jdbc" in ours["reader"], ours
    assert "a job of Firesteel: the session of Spark has no org.postgresql.Driver" in theirs["reader"]
    assert ours["rows"] == theirs["rows"] != []


@pytest.mark.parametrize(
    ("name", "rows"),
    [("filter", ["[2, 'Zoë']"]), ("text order", ["[3]"]), ("time", ["[1]", "[2]", "[3]"])],
)
def test_conditions(found: dict[str, Any], name: str, rows: list[str]) -> None:
    assert found["spark"][name]["rows"] == rows


def test_conditions_columns_and_limits_go_to_the_server(found: dict[str, Any]) -> None:
    spark = found["spark"]
    assert spark["filter"]["reader"].endswith(
        """SELECT "id", "name" COLLATE "C" AS "name" FROM "t" WHERE "id" > 1 AND "name" = 'Zoë'"""
    )
    assert "GreaterThan(name,a)" in spark["text order"]["plan"]
    assert "WHERE" not in spark["text order"]["reader"]
    assert "microseconds" in spark["time"]["reader"]
    assert spark["limit"]["reader"].endswith('SELECT "id" FROM "t" LIMIT 2')
    assert len(spark["limit"]["rows"]) == 2
    assert "2 partitions" in spark["partitions"]["reader"]
    assert len(spark["partitions"]["rows"]) == 2


@pytest.mark.parametrize(("name", "type_"), [("array", "text[]"), ("uuid", "uuid")])
def test_other_types_are_read_by_a_job(found: dict[str, Any], name: str, type_: str) -> None:
    assert f"has the type {type_} in PostgreSQL" in found["spark"][name]["reader"]


def test_what_has_no_value_here_is_an_error(found: dict[str, Any]) -> None:
    assert "cannot convert infinity to bigint" in found["spark"]["infinity"]["error"]
