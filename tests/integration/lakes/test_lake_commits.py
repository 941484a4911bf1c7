"""Commits of lakes' tables: keys, crashes at each step, other writers, and what failed attempts leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import Row, RowKind
from firesteel.connectors.iceberg.scan import IcebergScan, ReadOptions, StartingStrategy
from firesteel.connectors.lakes.committer import CommitRetries
from firesteel.connectors.lakes.errors import LakeConflictError, LakeReadError, MissingLibraryError, require_library
from firesteel.connectors.lakes.sink import LakeSink
from firesteel.connectors.lakes.table import LakeTable
from firesteel.process import fault_points
from firesteel.testing import SinkHarness
from tests.support.lakes import NUMBERED, create_delta, create_iceberg, delta_rows, iceberg_rows


@dataclass
class Lake:
    """A table, and what another reader sees of it."""

    table: Any
    rows: Callable[[], list[Any]]
    append: Callable[[Any], None]
    versions: Callable[[], int]
    files: Callable[[], int]


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "iceberg":
        table: Any = create_iceberg(tmp_path)
        data = tmp_path / "lake"
        found = Lake(
            table,
            lambda: iceberg_rows(table),
            lambda rows: table.loaded.append(rows),
            lambda: len(table.loaded.refresh().snapshots()),
            lambda: len([*data.rglob("*.parquet")]),
        )
    else:
        from deltalake import write_deltalake

        table = create_delta(tmp_path)
        found = Lake(
            table,
            lambda: delta_rows(table),
            lambda rows: write_deltalake(table.path, rows, mode="append"),
            lambda: table.at_version().version(),
            lambda: len([*tmp_path.rglob("*.parquet")]),
        )
    yield found
    table.close()


def harness(sink: LakeSink, attempt: int = 0, restored: Any = None) -> SinkHarness:
    found = SinkHarness(sink, attempt=attempt, job_id="job", run_id="run")
    found.initialize_state(restored)
    found.open()
    return found


def write(task: SinkHarness, *rows: Any) -> None:
    task._chained.operator.process_batch(list(rows), None)


def test_the_last_change_of_a_key_counts(lake: Lake) -> None:
    task = harness(LakeSink(lake.table, key=["id"]))
    write(task, Row(id=1, name="a"), Row(id=2, name="b"), Row(id=3, name="c"))
    task.snapshot(1)
    task.notify_checkpoint_complete(1)
    assert lake.rows() == [(1, "a"), (2, "b"), (3, "c")]
    changes = [
        Row.of_kind(RowKind.DELETE, id=1, name=None),
        Row.of_kind(RowKind.UPDATE_BEFORE, id=2, name="b"),
        Row.of_kind(RowKind.UPDATE_AFTER, id=2, name="bb"),
        Row.of_kind(RowKind.INSERT, id=4, name="d"),
        Row.of_kind(RowKind.DELETE, id=4, name="d"),
        Row.of_kind(RowKind.DELETE, id=99, name=None),
        Row.of_kind(RowKind.DELETE, id=3, name=None),
        Row.of_kind(RowKind.INSERT, id=3, name=None),
    ]
    for change in changes:  # over several batches
        write(task, change)
    task.snapshot(2)
    task.notify_checkpoint_complete(2)
    assert lake.rows() == [(2, "bb"), (3, None)]
    task.snapshot(3)
    task.notify_checkpoint_complete(3)  # nothing was written
    task.close()
    assert lake.rows() == [(2, "bb"), (3, None)]


@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("point", ["lake.commit", "lake.committed"])
def test_a_crash_in_a_commit_neither_loses_nor_repeats_it(lake: Lake, key: tuple[str, ...], point: str) -> None:
    sink = LakeSink(lake.table, key=key)
    task = harness(sink)
    write(task, (1, "a"), (2, "b"))
    task.snapshot(1)
    task.notify_checkpoint_complete(1)
    before = lake.versions()
    write(task, (3, "c"))
    snapshot = task.snapshot(2)
    write(task, (4, "lost with the attempt"))
    fault_points.arm(f"{point}=raise")
    try:
        with pytest.raises(OSError, match=point):
            task.notify_checkpoint_complete(2)
    finally:
        fault_points.arm("")
    # the attempt is gone, with files of which no checkpoint knows
    task._chained.operator._writer.flush(False)
    again = harness(sink, 1, snapshot)
    assert lake.rows() == [(1, "a"), (2, "b"), (3, "c")]
    assert lake.versions() == before + 1
    write(again, (4, "d"))
    files = lake.files()
    again.snapshot(3)
    again.notify_checkpoint_complete(3)
    again.close()
    assert lake.rows() == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    if not key:
        assert lake.files() == files  # one more, and the one of the first attempt is removed


def test_a_checkpoint_id_that_comes_again_is_another_commit(lake: Lake) -> None:
    sink = LakeSink(lake.table)
    first = harness(sink)
    write(first, (1, "a"))
    snapshot = first.snapshot(1)
    first.notify_checkpoint_complete(1)
    write(first, (2, "b"))
    first.snapshot(2)
    first.notify_checkpoint_complete(2)
    first.close()
    # from the older checkpoint: what follows it is written again, with the same checkpoint id
    second = harness(sink, 1, snapshot)
    write(second, (2, "b"))
    second.snapshot(2)
    second.notify_checkpoint_complete(2)
    second.close()
    assert lake.rows() == [(1, "a"), (2, "b"), (2, "b")]


class _Interrupted:
    """Another writer appends a row right before each of the first commits."""

    def __init__(self, lake: Lake, times: int) -> None:
        self.lake = lake
        self.left = times
        self.waits: list[float] = []

    def wrap(self, table: LakeTable) -> None:
        for name in ("append", "apply_changes"):
            original = getattr(type(table), name)

            def commit(*arguments: Any, original: Any = original) -> None:
                if self.left:
                    self.left -= 1
                    self.lake.append(pa.table({"id": [100 + self.left], "name": ["other"]}))
                original(table, *arguments)

            setattr(table, name, commit)


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_commit_beside_another_writer(lake: Lake, key: tuple[str, ...]) -> None:
    sink = LakeSink(lake.table, key=key, retries=CommitRetries(sleep=lambda _: None))
    task = harness(sink)
    write(task, (1, "a"), (2, "b"))
    task.snapshot(1)
    _Interrupted(lake, 3).wrap(task._chained.operator._committer._table)
    task.notify_checkpoint_complete(1)
    task.close()
    assert lake.rows() == [(1, "a"), (2, "b"), (100, "other"), (101, "other"), (102, "other")]


def test_conflicts_end_after_some_attempts(tmp_path: Path) -> None:
    table = create_delta(tmp_path)

    class Conflicting(type(table)):  # type: ignore[misc]
        def append(self, committable: Any) -> None:
            raise LakeConflictError("again")

    waits: list[float] = []
    sink = LakeSink(Conflicting(table.path), retries=CommitRetries(times=3, sleep=waits.append))
    committer = sink.create_committer()
    task = harness(LakeSink(table))
    write(task, (1, "a"))
    task._chained.operator._writer.flush(False)
    prepared = task._chained.operator._writer.prepare_commit()
    with pytest.raises(LakeConflictError):
        committer.commit(prepared)
    committer.close()
    task.close()
    assert len(waits) == 3
    assert waits == sorted(waits)


def test_iceberg_streams_refuse_other_snapshots_and_new_columns(tmp_path: Path) -> None:
    table = create_iceberg(tmp_path)

    def scan(**options: Any) -> IcebergScan:
        start = StartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT
        return IcebergScan(table, NUMBERED, ReadOptions(10, start, **options))

    empty = scan().discover(None)
    assert not empty.splits
    table.loaded.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    first = scan().discover(empty.position)
    assert len(first.splits) == 1
    with table.loaded.update_schema() as update:
        from pyiceberg.types import LongType

        update.add_column("extra", LongType())
    table.loaded.append(pa.table({"id": [3], "name": ["c"], "extra": [7]}))
    with pytest.raises(LakeReadError, match=r"columns .* have changed"):
        scan(refuses_new_columns=True).discover(first.position)
    second = scan().discover(first.position)
    (rows,) = list(scan().read(second.splits[0]))
    assert rows.data.to_pylist() == [{"id": 3, "name": "c"}]
    table.loaded.delete("id = 1")
    with pytest.raises(LakeReadError, match="which a stream of appended rows cannot have"):
        scan().discover(second.position)
    skipping = scan(skips_overwrites=True, skips_deletes=True)
    assert not skipping.discover(second.position).splits
    table.close()


def test_a_library_that_is_missing_is_named() -> None:
    with pytest.raises(MissingLibraryError, match="Iceberg needs no_such_library") as caught:
        require_library("no_such_library", "iceberg", "Iceberg")
    assert "pip install 'firesteel[iceberg]'" in str(caught.value)
