"""INSERT OVERWRITE and INSERT INTO … PARTITION of the connector ``filesystem``, as Flink 2.3 has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.connectors.files.part_file import PendingFile
from firesteel.spi.sink import Committer
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, register_factory
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.connectors import blackhole
from firesteel.table.connectors.filesystem.overwriting import OverwritingCommitter
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.testing.in_process import InProcessExecutor


@pytest.fixture
def batch(tmp_path: Path) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "2")
    environment._session.environment._executor = InProcessExecutor()
    columns = "a INT, b STRING, d STRING, h INT"
    for name, partition in (("plain", ""), ("part", "PARTITIONED BY (d, h)")):
        options = (
            f"'connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = 'csv', 'csv.null-literal' = 'N'"
        )
        environment.execute_sql(f"CREATE TABLE {name} ({columns}) {partition} WITH ({options})")
    return environment


def lines(path: Path) -> dict[str, str]:
    """The lines of the files of each directory."""
    found: dict[str, str] = {}
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in relative.parts):
            key = str(relative.parent)
            found[key] = "".join(sorted((found.get(key, "") + file.read_text()).splitlines(keepends=True)))
    return found


def test_a_whole_table(batch: TableEnvironment, tmp_path: Path) -> None:
    batch.execute_sql("INSERT INTO plain VALUES (1, 'x', 'k', 1), (2, 'y', 'l', 2)").wait()
    assert lines(tmp_path / "plain") == {".": "1,x,k,1\n2,y,l,2\n"}
    batch.execute_sql("INSERT OVERWRITE plain VALUES (3, 'z', 'm', 3)").wait()
    assert lines(tmp_path / "plain") == {".": "3,z,m,3\n"}
    # of the rows that it replaces
    batch.execute_sql("INSERT OVERWRITE plain SELECT a + 1, b, d, h FROM plain").wait()
    assert lines(tmp_path / "plain") == {".": "4,z,m,3\n"}
    batch.execute_sql("INSERT OVERWRITE plain SELECT * FROM plain WHERE a > 100").wait()
    assert lines(tmp_path / "plain") == {}


def test_partitions(batch: TableEnvironment, tmp_path: Path) -> None:
    path = tmp_path / "part"
    batch.execute_sql(
        "INSERT INTO part VALUES (1, 'x', 'k', 1), (2, 'y', 'l', 2), (3, 'z', CAST(NULL AS STRING), 3)"
    ).wait()
    null = {"d=__DEFAULT_PARTITION__/h=3": "3,z\n"}
    batch.execute_sql("INSERT OVERWRITE part VALUES (10, 'x', 'k', 1)").wait()
    assert lines(path) == {**null, "d=k/h=1": "10,x\n", "d=l/h=2": "2,y\n"}
    batch.execute_sql("INSERT OVERWRITE part PARTITION (d = 'l', h = 2) VALUES (20, 'n')").wait()
    batch.execute_sql("INSERT OVERWRITE part PARTITION (d = 'l') VALUES (30, 'n', 5)").wait()
    kept = {**null, "d=k/h=1": "10,x\n", "d=l/h=2": "20,n\n", "d=l/h=5": "30,n\n"}
    assert lines(path) == kept
    # Flink keeps partitions for which there are no rows, also those that the statement names
    for partition, columns in (("PARTITION (d = 'l', h = 2)", "a, b"), ("PARTITION (d = 'l')", "a, b, h"), ("", "*")):
        batch.execute_sql(f"INSERT OVERWRITE part {partition} SELECT {columns} FROM part WHERE a > 100").wait()
    assert lines(path) == kept
    batch.execute_sql("INSERT INTO part PARTITION (h = 1) VALUES (7, 's', 'k')").wait()
    assert lines(path) == {**kept, "d=k/h=1": "10,x\n7,s\n"}


def test_what_is_refused(batch: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match="Unknown target column 'z'"):
        batch.execute_sql("INSERT INTO part PARTITION (z = 'q') VALUES (7, 's', 9)")
    with pytest.raises(ValidationError, match=r"Static partition column 'd' should be in the partition keys list \[\]"):
        batch.execute_sql("INSERT INTO plain PARTITION (d = 'q') VALUES (7, 's', 9)")
    batch.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    with pytest.raises(ValidationError, match="Streaming mode not support overwrite"):
        batch.execute_sql("INSERT OVERWRITE plain VALUES (3, 'z', 'm', 3)")


def test_update_and_delete(batch: TableEnvironment, tmp_path: Path) -> None:
    batch.execute_sql("INSERT INTO part VALUES (1, 'x', 'k', 1), (2, 'y', 'k', 1), (3, 'z', 'l', 2)").wait()
    batch.execute_sql("INSERT INTO part VALUES (CAST(NULL AS INT), 'n', 'l', 2)").wait()
    batch.execute_sql("UPDATE part SET a = a + 10, b = UPPER(b) WHERE a > 1").wait()
    assert lines(tmp_path / "part") == {"d=k/h=1": "1,x\n12,Y\n", "d=l/h=2": "13,Z\nN,n\n"}
    # a row moves to another partition
    batch.execute_sql("UPDATE part AS p SET d = 'm' WHERE p.a = 1").wait()
    assert lines(tmp_path / "part") == {"d=k/h=1": "12,Y\n", "d=m/h=1": "1,x\n", "d=l/h=2": "13,Z\nN,n\n"}
    batch.execute_sql("DELETE FROM part WHERE a >= 12").wait()
    assert lines(tmp_path / "part") == {"d=m/h=1": "1,x\n", "d=l/h=2": "N,n\n"}
    batch.execute_sql("DELETE FROM part").wait()
    assert lines(tmp_path / "part") == {}
    batch.execute_sql("INSERT INTO part VALUES (1, 'x', 'k', 1)").wait()
    batch.execute_sql("TRUNCATE TABLE part")
    assert lines(tmp_path / "part") == {}


class _Unchangeable(DynamicTableFactory):
    """A table that can be read and written, and not changed."""

    identifier = "unchangeable"

    def create_source(self, context: FactoryContext) -> InMemorySource:
        return InMemorySource(context.physical_type, batch_of([(1,)], context.physical_type))

    def create_sink(self, context: FactoryContext) -> DynamicTableSink:
        return blackhole.FACTORY.create_sink(context)


def test_changes_that_are_refused(batch: TableEnvironment) -> None:
    register_factory(_Unchangeable())
    batch.execute_sql("CREATE TABLE other (a INT) WITH ('connector' = 'unchangeable')")
    batch.execute_sql("CREATE TABLE printed (a INT) WITH ('connector' = 'print')")
    with pytest.raises(ValidationError, match="Connector 'print' can only be used as a sink"):
        batch.execute_sql("DELETE FROM printed")
    with pytest.raises(ValidationError, match=r"Can't perform update operation .*SupportsRowLevelUpdate\."):
        batch.execute_sql("UPDATE other SET a = 1")
    with pytest.raises(ValidationError, match=r"Can't perform delete operation .*SupportsRowLevelDelete\."):
        batch.execute_sql("DELETE FROM other WHERE a = 1")
    with pytest.raises(ValidationError, match=r"TRUNCATE TABLE statement is not supported for the table .*other since"):
        batch.execute_sql("TRUNCATE TABLE other")
    with pytest.raises(ValidationError, match="Unknown target column 'z'"):
        batch.execute_sql("UPDATE plain SET z = 1")
    with pytest.raises(ValidationError, match="Column 'z' not found"):
        batch.execute_sql("UPDATE plain SET a = 1 WHERE z = 2")
    with pytest.raises(ValidationError, match="Cannot assign to target field 'a' of type INT from source field"):
        batch.execute_sql("UPDATE plain SET a = ARRAY[1]")
    with pytest.raises(ValidationError, match="must be a condition"):
        batch.execute_sql("DELETE FROM plain WHERE a")
    batch.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    for statement in ("UPDATE plain SET a = 1", "DELETE FROM plain", "TRUNCATE TABLE plain"):
        with pytest.raises(ValidationError, match="streaming mode"):
            batch.execute_sql(statement)


def test_replace_table_as(batch: TableEnvironment, tmp_path: Path) -> None:
    batch.execute_sql("INSERT INTO plain VALUES (1, 'x', 'k', 1)").wait()
    options = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/copy', 'format' = 'csv')"
    with pytest.raises(ValidationError, match="`copy` to be replaced doesn't exist"):
        batch.execute_sql(f"REPLACE TABLE copy {options} AS SELECT a FROM plain")
    batch.execute_sql(f"CREATE OR REPLACE TABLE copy {options} AS SELECT a, b FROM plain").wait()
    assert lines(tmp_path / "copy") == {".": "1,x\n"}
    # Flink replaces the table of the catalog, and keeps its files
    batch.execute_sql(f"REPLACE TABLE copy {options} AS SELECT b AS c FROM plain").wait()
    assert lines(tmp_path / "copy") == {".": "1,x\nx\n"}
    with batch.execute_sql("DESCRIBE copy").collect() as rows:
        assert [row[0] for row in rows] == ["c"]
    with pytest.raises(ValidationError, match="Could not find any factory"):
        batch.execute_sql("REPLACE TABLE copy WITH ('connector' = 'nothing') AS SELECT a FROM plain")
    with batch.execute_sql("DESCRIBE copy").collect() as rows:
        assert [row[0] for row in rows] == ["c"]
    with pytest.raises(ValidationError, match="does not support temporary table yet"):
        batch.execute_sql(f"CREATE OR REPLACE TEMPORARY TABLE copy {options} AS SELECT a FROM plain")
    with pytest.raises(ValidationError, match="already exists"):
        batch.execute_sql(f"CREATE OR REPLACE TABLE copy (a INT) {options}")


def test_a_failure_keeps_what_there_was(batch: TableEnvironment, tmp_path: Path) -> None:
    batch.execute_sql("INSERT INTO plain VALUES (1, 'x', 'k', 1)").wait()
    with pytest.raises(Exception, match="zero"):
        batch.execute_sql("INSERT OVERWRITE plain SELECT 1 / (a - 1), b, d, h FROM plain").wait()
    assert lines(tmp_path / "plain") == {".": "1,x,k,1\n"}


def test_a_commit_that_fails_is_completed_by_the_next(tmp_path: Path) -> None:
    class Failing(Committer[PendingFile]):
        def commit(self, committables: object) -> None:
            raise OSError("disk full")

        def recommit(self, committables: object) -> None:
            (tmp_path / "new").write_text("new")

    (tmp_path / "old").write_text("old")
    new = PendingFile(str(tmp_path / ".new"), str(tmp_path / "new"), 3)
    committer = OverwritingCommitter(Failing(), tmp_path, is_partitioned=False)
    with pytest.raises(OSError, match="disk full"):
        committer.commit([new])
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    committer.recommit([new])
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
