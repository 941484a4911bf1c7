"""The connector ``filesystem``: rows written are rows read, in all formats, partitioned or not."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.types.logical import RowType
from tests.support.table_queries import run_query, sink_of, source_of, write_rows

TYPE = RowType.of(
    ["id", "name", "price", "at", "day"],
    [DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.DECIMAL(10, 2), DataTypes.TIMESTAMP(3), DataTypes.DATE()],
    nullable=False,
)
ROWS = [
    (1, "a,b", Decimal("1.50"), 1_577_836_812_300_000_000, 18262),
    (2, 'say "x"\nand y', None, 1_577_836_800_000_000_000, 18263),
    (3, "", Decimal("-3.00"), None, 18262),
]


def options(path: Path, name: str, **others: str) -> dict[str, str]:
    return {"connector": "filesystem", "path": str(path), "format": name, **others}


def read(source, columns="*") -> list[tuple]:
    return sorted(tuple(row) for row in run_query(f"SELECT {columns} FROM t", {"t": source}))


def written(path: Path, name: str, partition_keys=(), **others: str) -> None:
    sink = sink_of(TYPE, options(path, name, **others), partition_keys=partition_keys)
    write_rows(sink, TYPE, ROWS)


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "orc", "avro"])
def test_rows_that_are_written_are_read(tmp_path, name):
    written(tmp_path, name, **({"csv.null-literal": "NULL"} if name == "csv" else {}))
    extra = {"csv.null-literal": "NULL"} if name == "csv" else {}
    source = source_of(TYPE, options(tmp_path, name, **extra))
    found = read(source, "id, name, CAST(price AS STRING), CAST(`at` AS STRING), CAST(`day` AS STRING)")
    assert found == [
        (1, "a,b", "1.50", "2020-01-01 00:00:12.300", "2020-01-01"),
        (2, 'say "x"\nand y', None, "2020-01-01 00:00:00.000", "2020-01-02"),
        (3, "", "-3.00", None, "2020-01-01"),
    ]


@pytest.mark.parametrize("name", ["json", "parquet", "orc", "avro"])
def test_partitions(tmp_path, name):
    written(tmp_path, name, ["day"], **{"sink.partition-commit.policy.kind": "success-file"})
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {
        "day=2020-01-01",
        "day=2020-01-02",
    }
    assert (tmp_path / "day=2020-01-01" / "_SUCCESS").exists()
    source = source_of(TYPE, options(tmp_path, name), partition_keys=["day"])
    found = read(source, "CAST(`day` AS STRING), id")
    assert found == [("2020-01-01", 1), ("2020-01-01", 3), ("2020-01-02", 2)]
    assert [row[0] for row in read(source, "name")] == sorted(row[1] for row in ROWS)


def test_a_null_partition(tmp_path):
    row_type = RowType.of(["id", "kind"], [DataTypes.INT(), DataTypes.STRING()], nullable=False)
    sink = sink_of(row_type, options(tmp_path, "csv"), partition_keys=["kind"])
    write_rows(sink, row_type, [(1, None), (2, "a/b=c"), (3, "")])
    names = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names == {"kind=__DEFAULT_PARTITION__", "kind=a%2Fb%3Dc"}
    source = source_of(row_type, options(tmp_path, "csv"), partition_keys=["kind"])
    assert sorted(map(tuple, run_query("SELECT id, kind FROM t", {"t": source})), key=str) == [
        (1, None),
        (2, "a/b=c"),
        (3, None),
    ]


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
def test_columns_that_a_file_lacks_are_null(tmp_path, name):
    written(tmp_path, name)
    source = source_of({"id": DataTypes.INT(), "other": DataTypes.STRING()}, options(tmp_path, name))
    assert read(source) == [(1, None), (2, None), (3, None)]


def test_raw_lines(tmp_path):
    (tmp_path / "lines").write_text("one\ntwo\n")
    source = source_of({"line": DataTypes.STRING()}, options(tmp_path, "raw"))
    assert read(source) == [("one",), ("two",)]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"format": "jsn"}, "Could not find any format factory for identifier 'jsn'"),
        ({"format": "json", "json.ignore-parse-error": "true"}, "Unsupported options:\n\nignore-parse-error"),
        ({"format": "json", "csv.field-delimiter": ";"}, "Unsupported options:\n\ncsv.field-delimiter"),
        ({"format": "avro", "avro.codec": "zip"}, "'zip' is no compression"),
        ({"format": "orc", "parquet.compression": "GZIP"}, "Unsupported options:\n\nparquet.compression"),
        ({"format": "json", "source.monitor-interval": "often"}, "Could not parse value 'often'"),
        ({"format": "csv", "csv.quote-character": "''"}, "single character"),
    ],
)
def test_wrong_options(tmp_path, others, message):
    with pytest.raises(ValidationError, match=message):
        source_of(TYPE, {"connector": "filesystem", "path": str(tmp_path), **others})


def test_missing_options():
    with pytest.raises(ValidationError, match="Missing required options are:\n\nformat\npath"):
        source_of(TYPE, {"connector": "filesystem"})


def test_commit_policies_that_are_not_supported(tmp_path):
    policy = {"sink.partition-commit.policy.kind": "metastore"}
    with pytest.raises(ValidationError, match="Can not configure a 'metastore' partition commit policy"):
        sink_of(TYPE, options(tmp_path, "json", **policy), partition_keys=["day"])


def test_metadata_of_files(table_env, tmp_path):
    (tmp_path / "a.json").write_text('{"k": 1}\n')
    (tmp_path / "b.json").write_text('{"k": 22}\n')
    os.utime(tmp_path / "b.json", ns=(0, 1_577_836_812_345_678_901))
    columns = "k INT, n STRING METADATA FROM 'file.name' VIRTUAL, s {} METADATA FROM 'file.size' VIRTUAL"
    columns += ", `file.modification-time` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL"
    with_ = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    table_env.execute_sql(f"CREATE TABLE t ({columns.format('BIGINT NOT NULL')}) {with_}")
    query = "SELECT k, n, s, CAST(`file.modification-time` AS STRING) FROM t WHERE s > 9"
    with table_env.execute_sql(query).collect() as rows:
        assert [tuple(row) for row in rows] == [(22, "b.json", 10, "2020-01-01 00:00:12.345")]
    table_env.execute_sql(f"CREATE TABLE wrong ({columns.format('STRING')}) {with_}")
    with pytest.raises(ValidationError, match=r"metadata 'file\.size' must be BIGINT or INT"):
        table_env.execute_sql("SELECT * FROM wrong")


def test_partitions_are_marked_at_the_end(table_env, tmp_path):
    table_env.execute_sql(
        "CREATE TABLE hours (id INT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file', "
        "'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '1 h')"
    )
    table_env.execute_sql("INSERT INTO hours VALUES (1, '2020-01-01'), (2, '2020-01-02'), (3, '2020-01-01')").wait()
    assert {path.parent.name for path in tmp_path.rglob("_SUCCESS")} == {"dt=2020-01-01", "dt=2020-01-02"}
    with table_env.execute_sql("SELECT id, dt FROM hours").collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, "2020-01-01"), (2, "2020-01-02"), (3, "2020-01-01")]
