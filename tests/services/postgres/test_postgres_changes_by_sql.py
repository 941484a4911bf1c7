"""UPDATE, DELETE and TRUNCATE of tables of PostgreSQL."""

from __future__ import annotations

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor


@pytest.fixture
def environment(tables) -> TableEnvironment:
    tables.run(
        "CREATE TABLE t (id bigint, at timestamp(3), name text, n integer CHECK (n < 100), PRIMARY KEY (id, at))"
    )
    tables.run("INSERT INTO t SELECT i, '2020-01-01', 'n' || i, i FROM generate_series(1, 5) AS s (i)")
    created = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    created._session.environment._executor = InProcessExecutor()
    for name, key in (("t", ", PRIMARY KEY (id, `at`) NOT ENFORCED"), ("keyless", "")):
        created.execute_sql(
            f"CREATE TABLE {name} (id BIGINT, `at` TIMESTAMP(3), name STRING, n INT{key}) "
            f"WITH ('connector' = 'jdbc', 'url' = '{tables.url}', 'table-name' = 't')"
        )
    return created


def affected(environment: TableEnvironment, sql: str) -> int:
    with environment.execute_sql(sql).collect() as rows:
        return list(rows)[0][0]  # noqa: RUF015


def test_update_and_delete(tables, environment):
    assert affected(environment, "UPDATE t SET name = UPPER(name), n = n * 10 WHERE id IN (2, 3)") == 2
    assert affected(environment, "DELETE FROM t WHERE n > 25 OR name = 'n1'") == 2
    assert tables.run("SELECT id, name, n FROM t ORDER BY id") == [(2, "N2", 20), (4, "n4", 4), (5, "n5", 5)]
    assert affected(environment, "DELETE FROM t WHERE id > 100") == 0
    environment.execute_sql("TRUNCATE TABLE keyless")
    assert tables.run("SELECT * FROM t") == []


def test_all_rows_or_none(tables, environment):
    with pytest.raises(Exception, match="cannot be changed"):
        environment.execute_sql("UPDATE t SET n = n * 30")
    assert tables.run("SELECT sum(n) FROM t") == [(15,)]


def test_a_table_without_a_key(environment):
    with pytest.raises(ValidationError, match="only by its primary key"):
        environment.execute_sql("DELETE FROM keyless")
