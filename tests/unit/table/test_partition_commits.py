"""When a streaming sink of files marks partitions as complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connectors.filesystem.bulk_files import Part
from firesteel.table.connectors.filesystem.partition_commits import CommitTrigger, PartWatermark
from firesteel.table.connectors.filesystem.sink import FileSystemTableSink
from firesteel.types.logical import RowType
from tests.support.fixtures.connectors import FakeWriterContext
from tests.support.table_queries import sink_of

TYPE = RowType.of(["id", "dt", "hour"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.STRING()], nullable=False)
HOUR = 3_600_000
PATTERN = {"partition.time-extractor.timestamp-pattern": "$dt $hour:00:00"}


class Run:
    """A writer with checkpoints; what they hand over is committed."""

    def __init__(self, path: Path, trigger: str, delay: str = "0 s", **others: str) -> None:
        options = {
            "connector": "filesystem",
            "path": str(path),
            "format": "csv",
            "sink.partition-commit.policy.kind": "success-file",
            "sink.partition-commit.trigger": trigger,
            "sink.partition-commit.delay": delay,
            **others,
        }
        table = sink_of(TYPE, options, partition_keys=["dt", "hour"])
        assert isinstance(table, FileSystemTableSink)
        self.path, self.now, self.checkpoints = path, 0.0, 0
        self.sink = table._sink(TYPE)
        self.sink.clock = lambda: self.now
        self.writer: Any = self.sink.create_writer(FakeWriterContext())

    def write(self, *buckets: str) -> None:
        self.writer.write_batch([Part(bucket, b"1\n") for bucket in buckets], None)

    def checkpoint(self, *, end_of_input: bool = False) -> list[str]:
        """The partitions that are marked since the last one."""
        for file in self.path.rglob("_SUCCESS"):
            file.unlink()
        self.checkpoints += 1
        self.writer.flush(end_of_input)
        committables = self.writer.prepare_commit()
        self.state = self.writer.snapshot_state(self.checkpoints)
        self.sink.create_committer().commit(committables)
        marked = sorted(str(file.parent.relative_to(self.path)) for file in self.path.rglob("_SUCCESS"))
        for partition in marked:  # all rows are visible
            assert not list((self.path / ".inprogress").rglob(f"{partition}/*"))
        return marked

    def restore(self) -> None:
        self.writer.close()
        self.writer = self.sink.restore_writer(FakeWriterContext(), self.state)


FIRST, SECOND = "dt=1970-01-01/hour=0", "dt=1970-01-01/hour=1"


def test_at_once(tmp_path: Path) -> None:
    run = Run(tmp_path, "process-time")
    run.write(FIRST)
    assert run.checkpoint() == [FIRST]
    assert run.checkpoint() == []
    run.write(FIRST, SECOND)
    assert run.checkpoint() == [FIRST, SECOND]
    run.writer.close()


def test_some_time_after_the_first_row(tmp_path: Path) -> None:
    run = Run(tmp_path, "process-time", "1 h")
    run.write(FIRST)
    run.now = 1800
    run.write(FIRST, SECOND)
    assert run.checkpoint() == []
    run.restore()
    run.now = 3600
    assert run.checkpoint() == [FIRST]
    assert run.checkpoint(end_of_input=True) == [SECOND]
    run.writer.close()


def test_when_the_watermark_has_passed(tmp_path: Path) -> None:
    run = Run(tmp_path, "partition-time", "1 h", **PATTERN)
    run.write(FIRST, SECOND)
    run.writer.write_batch([PartWatermark(HOUR)], None)
    assert run.checkpoint() == []
    run.writer.write_batch([PartWatermark(HOUR + 1)], None)
    assert run.checkpoint() == [FIRST]
    run.write(FIRST)  # a late row
    assert run.checkpoint() == [FIRST]
    assert run.checkpoint(end_of_input=True) == [SECOND]
    run.writer.close()


@pytest.mark.parametrize(
    ("trigger", "bucket", "expected"),
    [
        (CommitTrigger(), "dt=1970-01-02", 24 * HOUR),
        (CommitTrigger(zone="Asia/Shanghai"), "dt=1970-01-02", 16 * HOUR),
        (CommitTrigger(pattern="$y-$m-$d 00:00:00"), "y=1970/m=1/d=2", 24 * HOUR),
        (CommitTrigger(formatter="yyyyMMdd"), "dt=19700102", 24 * HOUR),
        (CommitTrigger(pattern="$dt$h", formatter="yyyyMMddHH"), "dt=19700102/h=05", 29 * HOUR),
    ],
)
def test_the_time_of_a_partition(trigger: CommitTrigger, bucket: str, expected: int) -> None:
    assert trigger.time_of(bucket) == expected


def test_a_partition_without_a_time() -> None:
    with pytest.raises(FiresteelError, match="The partition 'dt=monday' has no time"):
        CommitTrigger().time_of("dt=monday")


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="Could not parse value 'nonsense' for key"):
        Run(tmp_path, "nonsense")
    with pytest.raises(ValidationError, match="supports 'default' only"):
        Run(tmp_path, "partition-time", **{"partition.time-extractor.kind": "custom"})
