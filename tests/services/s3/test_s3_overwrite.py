"""INSERT OVERWRITE, UPDATE, DELETE and TRUNCATE of tables in S3, against a real service."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.s3_part_file import PendingUpload
from firesteel.filesystem.s3_uploads import S3Object
from firesteel.filesystem.stores import Stores
from firesteel.spi.sink import Committer
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.connectors.filesystem.overwriting import OverwritingCommitter
from firesteel.testing.in_process import InProcessExecutor


class Bucket:
    """A bucket with two tables and files that are not theirs."""

    def __init__(self, server: Any) -> None:
        self.path = server.create_bucket(f"overwrite-{uuid.uuid4().hex[:12]}")
        self.stores = Stores.of(server.configuration)
        self.put("tableau/part-0", "9,other\n")  # whose name begins as that of the table
        self.environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        self.environment._session.environment._executor = InProcessExecutor()
        for key, value in {**server.settings, "parallelism.default": "2"}.items():
            self.environment.get_config().set(key, value)
        for name, partition in (("table", ""), ("part", "PARTITIONED BY (d)")):
            options = f"'connector' = 'filesystem', 'path' = '{self.path}/{name}', 'format' = 'csv'"
            self.run(f"CREATE TABLE `{name}` (a INT, d STRING) {partition} WITH ({options})")

    def run(self, statement: str) -> None:
        self.environment.execute_sql(statement).wait()

    def put(self, name: str, content: str) -> None:
        self.stores.get(self.path).write(f"{self.path}/{name}", [content.encode()])

    def lines(self, directory: str) -> dict[str, list[str]]:
        """The lines of the files of each directory that readers find."""
        store = self.stores.get(self.path)
        found: dict[str, list[str]] = {}
        for file in store.list_files(f"{self.path}/{directory}"):
            above, _, name = file.path.removeprefix(f"{self.path}/").rpartition("/")
            if not name.startswith((".", "_")):
                found.setdefault(above, []).extend(store.read(file.path).decode().splitlines())
        return {above: sorted(lines) for above, lines in found.items()}

    def count(self) -> int:
        with self.environment.execute_sql("SELECT a FROM `table`").collect() as rows:
            return len(list(rows))


@pytest.fixture
def bucket(s3: Any) -> Any:
    found = Bucket(s3)
    yield found
    assert found.lines("tableau") == {"tableau": ["9,other"]}
    found.stores.close()


def test_a_whole_table(bucket: Bucket) -> None:
    bucket.run("INSERT INTO `table` VALUES (1, 'x'), (2, 'y')")
    bucket.put("table/_SUCCESS", "")
    bucket.run("INSERT OVERWRITE `table` SELECT a + 2, d FROM `table`")
    assert bucket.lines("table") == {"table": ["3,x", "4,y"]}
    bucket.run("UPDATE `table` SET a = 5 WHERE d = 'y'")
    assert bucket.lines("table") == {"table": ["3,x", "5,y"]}
    bucket.run("DELETE FROM `table` WHERE a = 3")
    assert bucket.lines("table") == {"table": ["5,y"]}
    bucket.run("INSERT OVERWRITE `table` SELECT * FROM `table` WHERE a > 5")
    assert bucket.lines("table") == {}
    assert bucket.count() == 0
    bucket.run("INSERT INTO `table` VALUES (7, 'z')")
    assert bucket.count() == 1
    bucket.run("TRUNCATE TABLE `table`")
    assert bucket.count() == 0


def test_partitions(bucket: Bucket) -> None:
    bucket.run("INSERT INTO part VALUES (1, 'k'), (2, 'l'), (3, 'l')")
    bucket.run("INSERT OVERWRITE part VALUES (4, 'l')")
    assert bucket.lines("part") == {"part/d=k": ["1"], "part/d=l": ["4"]}
    bucket.run("UPDATE part SET d = 'm' WHERE a = 1")
    assert bucket.lines("part") == {"part/d=l": ["4"], "part/d=m": ["1"]}


def test_a_failure_keeps_what_there_was(bucket: Bucket) -> None:
    bucket.run("INSERT INTO `table` VALUES (1, 'x')")
    with pytest.raises(Exception, match="zero"):
        bucket.run("INSERT OVERWRITE `table` SELECT 1 / (a - 1), d FROM `table`")
    assert bucket.lines("table") == {"table": ["1,x"]}


def test_a_commit_that_fails_is_completed_by_the_next(bucket: Bucket) -> None:
    class Failing(Committer[PendingUpload]):
        def commit(self, committables: object) -> None:
            raise FileWriteError("no way in", path="new")

        def recommit(self, committables: object) -> None:
            bucket.put("table/new", "new")

    bucket.put("table/old", "old")
    new = PendingUpload(f"{bucket.path}/table/new", "1", (), 3, "sink")
    committer = OverwritingCommitter(Failing(), S3Object.parse(f"{bucket.path}/table"), is_partitioned=False)
    with pytest.raises(FileWriteError, match="no way in"):
        bucket.stores.bind(committer.commit)([new])
    assert bucket.lines("table") == {"table": ["old"]}
    bucket.stores.bind(committer.recommit)([new])
    assert bucket.lines("table") == {"table": ["new"]}
