"""ANALYZE TABLE: statistics in the catalog, and the numbers of rows that EXPLAIN shows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from firesteel.table import EnvironmentSettings, ExplainDetail, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog import CatalogPartitionSpec, ObjectPath
from firesteel.table.catalog.statistics import ColumnStatistics
from firesteel.testing.in_process import InProcessExecutor


@pytest.fixture
def environment(tmp_path: Path) -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", "1")
    for name, clause in (("t", ""), ("parts", "PARTITIONED BY (p)")):
        created.execute_sql(
            f"CREATE TABLE {name} (a INT, b STRING, bo BOOLEAN, d DATE, r ARRAY<INT>, p INT, c AS a + 1) {clause} WITH "
            f"('connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'json')"
        )
        created.execute_sql(
            f"INSERT INTO {name} (a, b, bo, d, r, p) VALUES (1, 'x', TRUE, DATE '2020-01-01', ARRAY[1], 1), "
            "(2, 'xyz', FALSE, CAST(NULL AS DATE), ARRAY[2], 1), (2, CAST(NULL AS STRING), FALSE, DATE '2020-01-03', "
            "CAST(NULL AS ARRAY<INT>), 2)"
        ).wait()
    return created


def _path(name: str) -> ObjectPath:
    return ObjectPath("default_database", name)


def test_a_table(environment: TableEnvironment) -> None:
    catalog = environment.get_catalog("default_catalog")
    assert catalog is not None
    query = "SELECT a FROM t"
    assert "rowcount = unknown" in environment.explain_sql(query, ExplainDetail.ESTIMATED_COST)
    environment.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert catalog.get_table_statistics(_path("t")).get_row_count() == 3
    assert "rowcount = 3" in environment.explain_sql(query, ExplainDetail.ESTIMATED_COST)
    assert catalog.get_table_column_statistics(_path("t")).get_column_statistics_data() == {}
    environment.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert catalog.get_table_column_statistics(_path("t")).get_column_statistics_data() == {
        "a": ColumnStatistics(0, 2, 1, 2),
        "b": ColumnStatistics(1, 2, max_length=3, average_length=2.0),
        "bo": ColumnStatistics(0, true_count=1, false_count=2),
        "d": ColumnStatistics(1, 2, dt.date(2020, 1, 1), dt.date(2020, 1, 3)),
        "r": ColumnStatistics(1),
        "p": ColumnStatistics(0, 2, 1, 2),
    }


def test_partitions(environment: TableEnvironment) -> None:
    catalog = environment.get_catalog("default_catalog")
    assert catalog is not None
    environment.execute_sql("ALTER TABLE parts ADD PARTITION (p = 1) PARTITION (p = 2)")
    environment.execute_sql("ANALYZE TABLE parts PARTITION (p = 1) COMPUTE STATISTICS FOR COLUMNS a")
    with environment.execute_sql("SHOW PARTITIONS parts PARTITION (p = 2)").collect() as rows:
        assert [row[0] for row in rows] == ["p=2"]
    one, two = (CatalogPartitionSpec({"p": value}) for value in ("1", "2"))
    assert catalog.get_partition_statistics(_path("parts"), one).get_row_count() == 2
    found = catalog.get_partition_column_statistics(_path("parts"), one).get_column_statistics_data()
    assert found == {"a": ColumnStatistics(0, 2, 1, 2)}
    assert catalog.get_partition_statistics(_path("parts"), two).get_row_count() == -1
    environment.execute_sql("ANALYZE TABLE parts PARTITION (p) COMPUTE STATISTICS")
    assert catalog.get_partition_statistics(_path("parts"), two).get_row_count() == 1
    assert "rowcount = 3" in environment.explain_sql("SELECT a FROM parts", ExplainDetail.ESTIMATED_COST)


@pytest.mark.parametrize(("clauses", "message"), [
    ("nope COMPUTE STATISTICS", "nope` doesn't exist or is a temporary table"),
    ("v COMPUTE STATISTICS", "ANALYZE TABLE for a view is not allowed"),
    ("t COMPUTE STATISTICS FOR COLUMNS c", "Column: c is a computed column"),
    ("t COMPUTE STATISTICS FOR COLUMNS zz", "Column: zz does not exist in the table"),
    ("t PARTITION (a = 1) COMPUTE STATISTICS", "is not a partition table, while partition values are given"),
    ("parts COMPUTE STATISTICS", r"The given partition keys: \[\] are not match the target partition keys: \[p\]"),
    ("parts PARTITION (p = 7) COMPUTE STATISTICS", "has no partition p=7"),
])  # fmt: skip
def test_statements_that_are_refused(environment: TableEnvironment, clauses: str, message: str) -> None:
    """The messages are those of Flink 2.3, but for a partition that is not there."""
    environment.execute_sql("CREATE VIEW v AS SELECT 1 AS a")
    with pytest.raises(ValidationError, match=message):
        environment.execute_sql(f"ANALYZE TABLE {clauses}")
    environment.get_config().set("execution.runtime-mode", "streaming")
    with pytest.raises(ValidationError, match="not supported for streaming mode"):
        environment.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
