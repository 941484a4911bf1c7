"""The rows of a DataFrame in files: read in any portions, and from wherever a checkpoint was. Needs no JVM."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.spark.dataframes.errors import DataFrameError
from firesteel.spark.dataframes.row_files import RowFileReader, RowFiles, RowFilesEnumerator, _WritePartition
from firesteel.spark.dataframes.source import SparkReaderSource
from firesteel.spi.source import InputStatus

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def files(tmp_path: Path) -> RowFiles:
    """Two files with the ids 0 to 34, in batches of up to 10; the partition between them is empty."""
    paths: list[str] = []
    for index, ids in enumerate([range(25), range(0), range(25, 35)]):
        rows: list[bytes] = []
        for begin in range(0, len(ids), 10):
            batch = pa.record_batch([pa.array(ids[begin : begin + 10])], schema=SCHEMA)
            rows += [SCHEMA.serialize().to_pybytes(), batch.serialize().to_pybytes()]
        paths += _WritePartition(str(tmp_path))(index, rows)
    return RowFiles(str(tmp_path), paths)


class Reading:
    """A reader that has all its splits, and what it has read."""

    def __init__(self, splits: list[Any]):
        self.ids: list[int] = []
        self.released: list[str] = []
        self.reader = RowFileReader(self, SparkReaderSource("any", as_tuples=True).read_rows)  # type: ignore[arg-type]
        self.reader.add_splits(splits)
        self.reader.notify_no_more_splits()
        self.reader.start()

    def collect(self, split_id: str, values: Any, timestamps: Any = None) -> None:
        self.ids += [value for (value,) in values]

    def release_split(self, split_id: str) -> None:
        self.released.append(split_id)

    def poll(self, max_records: int) -> InputStatus:
        return self.reader.poll_next(self, max_records)  # type: ignore[arg-type]

    def finish(self, max_records: int) -> list[int]:
        while self.poll(max_records) is not InputStatus.END_OF_INPUT:
            pass
        self.reader.close()
        return self.ids


def test_an_empty_partition_has_no_file(files):
    assert [Path(path).name for path in files.paths] == ["part-00000", "part-00002"]
    assert len({split.split_id for split in files.splits()}) == 2


@pytest.mark.parametrize("max_records", [1, 7, 10, 100])
def test_all_rows_in_order(files, max_records):
    reading = Reading(files.splits())
    assert reading.finish(max_records) == list(range(35))
    assert reading.released == ["0", "1"]


@pytest.mark.parametrize("max_records", [3, 10])
def test_a_checkpoint_anywhere_goes_on_with_the_next_row(files, max_records):
    for polls in range(18):
        first = Reading(files.splits())
        for _ in range(polls):
            first.poll(max_records)
        state = pickle.loads(pickle.dumps(first.reader.snapshot_state(1)))
        second = Reading(state)
        again = second.reader.snapshot_state(2)
        first.reader.close()
        assert again == state
        assert first.ids + second.finish(4) == list(range(35))


def test_files_that_are_gone(files):
    reading = Reading(files.splits())
    files.remove()
    with pytest.raises(DataFrameError, match="no longer exist") as raised:
        reading.poll(1)
    assert "savepoint" in raised.value.hint


def test_without_files_nobody_gets_any():
    with pytest.raises(InvalidProgramError, match="runs on Spark"):
        RowFilesEnumerator(None, None).handle_split_request(0, None)  # type: ignore[arg-type]
