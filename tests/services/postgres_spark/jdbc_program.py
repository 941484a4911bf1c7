"""Reads tables of PostgreSQL on a Spark that has the driver: by Spark's reader and by a job, for the test to compare.

Arguments: the jar of the driver, and the URL of the database. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import firesteel.table.connectors.postgres.jdbc
from firesteel.table import EnvironmentSettings, TableEnvironment

COLUMNS = """id INT, big BIGINT, small SMALLINT, real_ FLOAT, double_ DOUBLE, flag BOOLEAN, price DECIMAL(10, 2),
    name STRING, code VARCHAR(5), day_ DATE, at_ TIMESTAMP(6), at3 TIMESTAMP(3), instant TIMESTAMP_LTZ(6), data BYTES"""
QUERIES = {
    "all": "SELECT * FROM t",
    "filter": "SELECT id, name FROM t WHERE id > 1 AND name = 'Zoë'",
    "text order": "SELECT id FROM t WHERE name > 'a'",
    "time": "SELECT id FROM t WHERE at_ >= TIMESTAMP '2020-01-01 00:00:00.000001'",
    "limit": "SELECT id FROM t LIMIT 2",
    "partitions": "SELECT id, day_ FROM cut WHERE day_ IS NOT NULL",
    "infinity": "SELECT id, at_ FROM unending",
}

EXPLAINED = {"array": "SELECT id, tags FROM others", "uuid": "SELECT id, u FROM others"}


def main(jar: str, url: str) -> None:
    table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    # a time zone in which some local times do not exist
    zone = "-Duser.timezone=America/New_York"
    for key, value in {"spark.master": "local[2]", "spark.jars": jar, "spark.driver.extraJavaOptions": zone}.items():
        table_env.get_config().set(key, value)
    table_env.get_config().set_local_timezone("UTC")
    cut = ", 'scan.partition.column' = 'id', 'scan.partition.num' = '2', 'scan.partition.lower-bound' = '2'"
    cut += ", 'scan.partition.upper-bound' = '3', 'scan.fetch-size' = '1'"
    for name, table, columns, others in (
        ("t", "t", COLUMNS, ""),
        ("cut", "t", COLUMNS, cut),
        ("others", "others", "id INT, tags ARRAY<STRING>, u STRING, j STRING", ""),
        ("unending", "unending", "id INT, at_ TIMESTAMP(6)", ""),
    ):
        options = f"'connector' = 'jdbc', 'url' = '{url}', 'table-name' = '{table}'{others}"
        table_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
    table_env.execute_sql("SELECT 1").wait()
    by_spark = {name: _found(table_env, sql) for name, sql in QUERIES.items()}
    by_spark |= {name: {"reader": _reader(table_env, sql)} for name, sql in EXPLAINED.items()}
    setattr(firesteel.table.connectors.postgres.jdbc, "has_driver", lambda _session: False)
    by_job = {name: _found(table_env, QUERIES[name]) for name in ("all", "partitions")}
    sys.stdout.write(json.dumps({"spark": by_spark, "job": by_job}) + "\n")


def _found(table_env: TableEnvironment, sql: str) -> dict[str, Any]:
    reader, table = _reader(table_env, sql), table_env.sql_query(sql)
    try:
        with table.execute().collect() as rows:
            found = sorted([repr(list(row)) for row in rows])
    except Exception as error:
        return {"reader": reader, "error": str(error)}
    # what Spark gives to the server beyond the query of the reader
    plan = table.to_dataframe()._jdf.queryExecution().executedPlan().toString() if "jdbc" in reader else ""
    return {"reader": reader, "rows": found, "plan": plan}


def _reader(table_env: TableEnvironment, sql: str) -> str:
    return next(line for line in table_env.explain_sql(sql).splitlines() if ": read by " in line)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
