"""Materialized tables: continuous and full refresh, suspended and resumed, refreshed by hand, with other queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.eventually import eventually
from firesteel.testing.in_process import InProcessExecutor


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[TableEnvironment]:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", "1")
    created.get_config().set("execution.checkpointing.savepoint-dir", str(tmp_path / "savepoints"))
    created.execute_sql(
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100000000')"
    )
    yield created
    for name in created.list_materialized_tables():
        created.execute_sql(f"DROP MATERIALIZED TABLE {name}")


def _with(path: Path, *others: str) -> str:
    rolling = "'sink.rolling-policy.rollover-interval' = '1 ms', 'sink.rolling-policy.check-interval' = '10 ms'"
    options = [f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'json', {rolling}", *others]
    return f"WITH ({', '.join(options)})"


def _written(path: Path) -> list[dict[str, Any]]:
    files = [
        file
        for file in path.rglob("*")
        if file.is_file() and not any(p.startswith((".", "_")) for p in file.relative_to(path).parts)
    ]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _numbers(path: Path) -> list[int]:
    return sorted(row["n"] for row in _written(path))


def test_continuous_refresh(environment: TableEnvironment, tmp_path: Path) -> None:
    """It is suspended with a savepoint and goes on there: each row is written once."""
    out = tmp_path / "out"
    environment.execute_sql(
        f"CREATE MATERIALIZED TABLE m {_with(out)} FRESHNESS = INTERVAL '1' SECOND AS SELECT n FROM numbers"
    )
    eventually(lambda: out.exists() and len(_numbers(out)) > 0)
    with pytest.raises(ValidationError, match="continuous refresh job has been resumed, jobId is"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m RESUME")
    environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
    suspended = _numbers(out)
    assert suspended == list(range(1, len(suspended) + 1))
    with pytest.raises(ValidationError, match="has been suspended"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
    environment.execute_sql("ALTER MATERIALIZED TABLE m RESUME")
    eventually(lambda: len(_numbers(out)) > len(suspended))
    environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
    resumed = _numbers(out)
    assert resumed == list(range(1, len(resumed) + 1))


def test_another_query(environment: TableEnvironment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment.execute_sql(
        f"CREATE MATERIALIZED TABLE m {_with(out)} FRESHNESS = INTERVAL '1' SECOND AS SELECT n FROM numbers"
    )
    eventually(lambda: out.exists() and len(_numbers(out)) > 0)
    with pytest.raises(ValidationError, match="drop column is unsupported"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m AS SELECT n AS k FROM numbers")
    environment.execute_sql("CREATE OR ALTER MATERIALIZED TABLE m AS SELECT n, n * 2 AS twice FROM numbers")
    eventually(lambda: any(row.get("twice") == 2 for row in _written(out)))
    assert environment.from_path("m").get_resolved_schema().get_column_names() == ["n", "twice"]


def test_a_job_without_a_directory_for_savepoints(environment: TableEnvironment, tmp_path: Path) -> None:
    environment.execute_sql("RESET 'execution.checkpointing.savepoint-dir'")
    environment.get_config().get_configuration().remove_config("execution.checkpointing.savepoint-dir")
    environment.execute_sql(f"CREATE MATERIALIZED TABLE m {_with(tmp_path / 'o')} AS SELECT n FROM numbers")
    with pytest.raises(ValidationError, match="Savepoint directory is not configured"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")


def test_a_table_whose_job_cannot_start_is_not_created(environment: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match="connector"):
        environment.execute_sql("CREATE MATERIALIZED TABLE m AS SELECT n FROM numbers")
    assert environment.list_materialized_tables() == []


@pytest.fixture
def days(environment: TableEnvironment, tmp_path: Path) -> Path:
    """A table of files whose rows the test changes."""
    source = tmp_path / "source"
    source.mkdir()
    environment.execute_sql(f"CREATE TABLE days (n BIGINT, ds STRING) {_with(source)}")
    _write(source, [(1, "a"), (2, "b")])
    return source


def _write(source: Path, rows: list[tuple[int, str]]) -> None:
    new = source / ".new"
    new.write_text("".join(json.dumps({"n": n, "ds": ds}) + "\n" for n, ds in rows))
    new.replace(source / "rows.json")


def test_full_refresh(environment: TableEnvironment, days: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment.execute_sql(
        f"CREATE MATERIALIZED TABLE m {_with(out)} FRESHNESS = INTERVAL '1' SECOND REFRESH_MODE = FULL "
        "AS SELECT ds, SUM(n) AS n FROM days GROUP BY ds"
    )
    eventually(lambda: out.exists() and _numbers(out) == [1, 2])
    _write(days, [(5, "a"), (6, "a")])
    eventually(lambda: _numbers(out) == [11])
    environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")
    _write(days, [(7, "c")])
    environment.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").wait()
    assert _written(out) == [{"ds": "c", "n": 7}]
    environment.execute_sql("ALTER MATERIALIZED TABLE m RESUME")
    with pytest.raises(ValidationError, match="refresh workflow has been resumed"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m RESUME")


def test_one_partition_is_refreshed(environment: TableEnvironment, days: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment.execute_sql(
        f"CREATE MATERIALIZED TABLE m PARTITIONED BY (ds) {_with(out)} FRESHNESS = INTERVAL '1' DAY "
        "AS SELECT n, ds FROM days"
    )
    environment.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").wait()
    assert _numbers(out) == [1, 2]
    _write(days, [(3, "a"), (4, "b")])
    environment.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (ds = 'b')").wait()
    assert _numbers(out) == [1, 4]
    with pytest.raises(ValidationError, match="unknown partition keys"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (n = '1')")
    environment.execute_sql("DROP MATERIALIZED TABLE m")
    with pytest.raises(ValidationError, match="does not exist"):
        environment.execute_sql("ALTER MATERIALIZED TABLE m SUSPEND")


def test_show_create(environment: TableEnvironment, days: Path, tmp_path: Path) -> None:
    environment.execute_sql(
        "CREATE MATERIALIZED TABLE m (PRIMARY KEY (n) NOT ENFORCED) COMMENT 'c' PARTITIONED BY (ds) WITH ("
        f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json', "
        "'partition.fields.ds.date-formatter' = 'yyyy') "
        "FRESHNESS = INTERVAL '1' HOUR AS SELECT COALESCE(n, 0) AS n, ds FROM days"
    )
    with environment.execute_sql("SHOW CREATE MATERIALIZED TABLE m").collect() as rows:
        (text,) = (row[0] for row in rows)
    assert text == (
        "CREATE MATERIALIZED TABLE `default_catalog`.`default_database`.`m` (\n"
        "  `n` BIGINT NOT NULL,\n"
        "  `ds` VARCHAR(2147483647),\n"
        "  CONSTRAINT `PK_n` PRIMARY KEY (`n`) NOT ENFORCED\n"
        ")\n"
        "COMMENT 'c'\n"
        "PARTITIONED BY (`ds`)\n"
        "WITH (\n"
        "  'connector' = 'filesystem',\n"
        "  'format' = 'json',\n"
        "  'partition.fields.ds.date-formatter' = 'yyyy',\n"
        f"  'path' = '{tmp_path}/out'\n"
        ")\n"
        "START_MODE = FROM_BEGINNING\n"
        "FRESHNESS = INTERVAL '1' HOUR\n"
        "REFRESH_MODE = FULL\n"
        "AS SELECT COALESCE(n, 0) AS n, ds FROM `default_catalog`.`default_database`.`days`\n"
    )
    environment.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").wait()
    with environment.execute_sql("SELECT n, ds FROM m").collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, "a"), (2, "b")]
    assert environment.list_tables() == ["days", "m", "numbers"]
    assert environment.list_materialized_tables() == ["m"]
    with pytest.raises(ValidationError, match="is a materialized table"):
        environment.execute_sql("SHOW CREATE TABLE m")
    with pytest.raises(ValidationError, match="ALTER TABLE for a materialized table is not allowed"):
        environment.execute_sql("ALTER TABLE m RENAME TO k")
    with pytest.raises(ValidationError, match="does not exist"):
        environment.execute_sql("DROP TABLE m")


@pytest.mark.parametrize(("clauses", "message"), [
    ("FRESHNESS = INTERVAL '-30' SECOND", "only supports positive integer type values. But was: -30"),
    ("FRESHNESS = INTERVAL '1' YEAR", "only supports SECOND, MINUTE, HOUR, DAY, WEEK as the time unit"),
    ("FRESHNESS = INTERVAL '1:10' MINUTE TO SECOND", "only supports SECOND, MINUTE, HOUR, DAY, WEEK as the time unit"),
    ("FRESHNESS = INTERVAL '31' MINUTE", "only freshness that are factors of 60 are currently supported"),
    ("FRESHNESS = INTERVAL '2' DAY", "freshness must be 1 when the time unit is DAY"),
    ("PARTITIONED BY (zz)", "Partition column 'zz' not defined in the query's schema"),
    ("WITH ('partition.fields.zz.date-formatter' = 'yyyy')", "isn't a partition column"),
    ("PARTITIONED BY (n) WITH ('partition.fields.n.date-formatter' = 'yyyy')", "only supports referring to char"),
    ("(PRIMARY KEY (n) NOT ENFORCED)", "Invalid primary key 'PK_n'. Column 'n' is nullable"),
    ("(zz STRING)", "physical column 'zz' is defined in the DDL, but is not used"),
    ("START_MODE = FROM_NOW", "START_MODE = FROM_NOW is not supported"),
])  # fmt: skip
def test_tables_that_are_refused(environment: TableEnvironment, clauses: str, message: str) -> None:
    """The messages are those of Flink 2.3, but for START_MODE."""
    with pytest.raises(ValidationError, match=re.escape(message)):
        environment.execute_sql(f"CREATE MATERIALIZED TABLE m {clauses} AS SELECT n FROM numbers")
