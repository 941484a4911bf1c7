"""Parquet files as a source: every row once, also after a restore, and errors that name the file."""

from __future__ import annotations

import datetime as dt
import pickle
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Instant
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.parquet import file as parquet_file
from firesteel.spi.source import Boundedness, InputStatus
from firesteel.testing import collect
from firesteel.types.arrow import MissingPyArrowError


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three files of several row groups, with the ids 0 to 99, and what is no data."""
    for number, (begin, end) in enumerate([(0, 50), (50, 51), (51, 100)]):
        ids = list(range(begin, end))
        table = pa.table({"id": ids, "name": [f"n{i}" for i in ids], "half": [i / 2 for i in ids]})
        (tmp_path / f"day={number}").mkdir()
        pq.write_table(table, tmp_path / f"day={number}" / "part.parquet", row_group_size=7)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.crc").write_bytes(b"no Parquet")
    return tmp_path


def test_reads_every_row_once_at_any_parallelism(fakes, directory):
    for parallelism in (1, 2, 5):
        harness = fakes.SourceHarness(ParquetSource(directory), parallelism).run(3)
        assert sorted(row.id for row in harness.records) == list(range(100))
    assert harness.records[0] == Row(id=0, name="n0", half=0.0)


def test_each_row_group_is_a_split(fakes, directory):
    harness = fakes.SourceHarness(ParquetSource(directory), 1).run()
    assert len(harness.outputs[0].released) == 8 + 1 + 7
    assert len(set(harness.outputs[0].released)) == 16


@pytest.mark.parametrize("polls", [[], [0], [0, 1, 0], [1] * 9, [0, 1] * 12])
@pytest.mark.parametrize(("parallelism", "new_parallelism"), [(1, 3), (2, 1), (2, 2)])
def test_resumes_with_exactly_the_rest(fakes, directory, polls, parallelism, new_parallelism):
    first = fakes.SourceHarness(ParquetSource(directory, as_tuples=True), parallelism)
    for subtask in polls:
        first.poll(subtask % parallelism, 3)
    second = first.restored(new_parallelism).run(4)
    first.close()
    assert sorted(record[0] for record in first.records + second.records) == list(range(100))


def test_resumes_within_a_row_group_larger_than_what_is_decoded_at_once(fakes, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_file, "_BATCH_ROWS", 10)
    pq.write_table(pa.table({"id": range(95)}), tmp_path / "a.parquet")
    for polls in range(0, 24, 3):
        first = fakes.SourceHarness(ParquetSource(tmp_path), 1)
        for _ in range(polls):
            first.poll(0, 4)
        second = first.restored(1).run(7)
        first.close()
        assert [row.id for row in first.records + second.records] == list(range(95))


def test_reads_the_columns_asked_for_in_their_order(fakes, directory):
    source = ParquetSource(directory, columns=["half", "id"], as_tuples=True)
    assert fakes.SourceHarness(source, 1).run().records[:2] == [(0.0, 0), (0.5, 1)]
    assert source.get_type() == Types.TUPLE([Types.DOUBLE(), Types.LONG()])


def test_its_type_is_that_of_the_first_file(directory):
    source = ParquetSource(directory)
    assert source.get_boundedness() is Boundedness.BOUNDED
    assert str(source.get_type()) == "RowTypeInfo(id: Long, name: String, half: Double)"
    assert pickle.loads(pickle.dumps(source)).paths == source.paths


def test_timestamps_in_utc_are_instants_whatever_their_width(fakes, tmp_path):
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - no zone is meant
    table = pa.table({"utc": pa.array([moment, None], pa.timestamp("us", "UTC")), "local": [moment, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    instant = Instant(1577934245, 6000)
    rows = fakes.SourceHarness(ParquetSource(tmp_path), 1).run().records
    assert rows == [Row(utc=instant, local=moment), Row(utc=None, local=None)]
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    source = ParquetSource(tmp_path)
    assert fakes.SourceHarness(source, 1).run().records[0].utc == instant
    assert source.get_type().get_field_types()[0] == Types.INSTANT()


def test_a_moment_beyond_nanoseconds(fakes, tmp_path):
    table = pa.table({"t": pa.array([dt.datetime(9999, 1, 1, tzinfo=dt.timezone.utc)], pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert fakes.SourceHarness(ParquetSource(tmp_path), 1).run().records[0].t.seconds == 253370764800


def test_empty_files_and_directories(fakes, tmp_path):
    assert ParquetSource(tmp_path).get_type() is None
    assert fakes.SourceHarness(ParquetSource(tmp_path), 2).run().records == []
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    assert fakes.SourceHarness(ParquetSource(tmp_path), 2).run().records == []


def test_a_column_that_is_not_there_is_named(directory):
    with pytest.raises(InvalidProgramError, match="no column 'wrong'") as raised:
        ParquetSource(directory, columns=["id", "wrong"]).get_type()
    assert "id, name, half" in raised.value.hint


@pytest.mark.parametrize("columns", [[], "id"])
def test_columns_must_be_names(directory, columns):
    with pytest.raises(InvalidProgramError, match="columns"):
        ParquetSource(directory, columns=columns)


def test_what_is_no_parquet_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(FileReadError, match=r"a\.txt") as raised:
        ParquetSource(tmp_path).get_type()
    assert raised.value.path.endswith("a.txt")
    assert ".parquet" in raised.value.hint


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(InvalidProgramError, match="does not exist"):
        ParquetSource(tmp_path / "none").get_type()


def test_a_file_that_was_replaced_by_a_shorter_one(fakes, tmp_path):
    pq.write_table(pa.table({"id": range(20)}), tmp_path / "a.parquet", row_group_size=5)
    first = fakes.SourceHarness(ParquetSource(tmp_path), 1)
    first.poll(0, 5)
    pq.write_table(pa.table({"id": range(5)}), tmp_path / "a.parquet", row_group_size=5)
    with pytest.raises(FileReadError, match="bytes but had"):
        first.restored(1).run()
    first.close()


def test_the_reader_closes_its_file(fakes, directory):
    harness = fakes.SourceHarness(ParquetSource(directory), 1)
    assert harness.poll(0, 3) is InputStatus.MORE_AVAILABLE
    opened = {file.path for file in psutil.Process().open_files()}
    harness.readers[0].close()
    (closed,) = opened - {file.path for file in psutil.Process().open_files()}
    assert closed == str(directory / "day=0" / "part.parquet")


def test_a_missing_pyarrow_is_said(directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPyArrowError, match="ParquetSource needs PyArrow") as raised:
        ParquetSource(directory)
    assert "pip install" in raised.value.hint


def test_read_parquet_in_a_program(in_process_env, directory):
    env = in_process_env(2)
    stream = env.read_parquet(str(directory), columns=["id"])
    assert stream.get_type() == Types.ROW_NAMED(["id"], [Types.LONG()])
    assert sorted(collect(stream.map(lambda row: row.id * 2))) == list(range(0, 200, 2))
    tuples = env.read_parquet(str(directory), as_tuples=True)
    assert sorted(collect(tuples.map(lambda record: record[0]))) == list(range(100))
