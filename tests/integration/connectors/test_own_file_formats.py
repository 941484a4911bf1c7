"""Formats that a user writes, and file sources in whole programs."""

from __future__ import annotations

import json
import struct

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream.connectors.file_system import (
    BadRecords,
    BulkFormat,
    CheckpointedPosition,
    FileEnumeratorProvider,
    FileSource,
    SimpleStreamFormat,
    StreamFormat,
)
from firesteel.datastream.formats.avro import AvroInputFormat
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.formats.bad_records import BadRecord
from firesteel.testing import collect

NUMBER = struct.Struct(">q")


class Words(SimpleStreamFormat):
    """A word is a record, whatever is between them."""

    def create_reader(self, stream):
        return WordReader(stream)


class WordReader(StreamFormat.Reader):
    def __init__(self, stream):
        self.words = (word.decode() for line in stream for word in line.split())
        self.closed = False

    def read(self):
        return next(self.words, None)


class Numbers(StreamFormat):
    """Numbers of 8 bytes each, which can be read from anywhere."""

    def create_reader(self, stream, file_length, split_end):
        stream.seek(-(-stream.tell() // 8) * 8)
        return NumberReader(stream, split_end)

    def restore_reader(self, stream, restored_offset, file_length, split_end):
        stream.seek(restored_offset)
        return NumberReader(stream, split_end)

    def is_splittable(self):
        return True

    def get_produced_type(self):
        return Types.LONG()


class NumberReader(StreamFormat.Reader):
    def __init__(self, stream, end):
        self.stream = stream
        self.end = end

    def read(self):
        if self.stream.tell() >= self.end or not (data := self.stream.read(8)):
            return None
        return NUMBER.unpack(data)[0]

    def get_checkpointed_position(self):
        return CheckpointedPosition(self.stream.tell() // 40 * 40, self.stream.tell() % 40 // 8)


class NumbersByTens(BulkFormat):
    """The same, ten at a time; a restored reader is told where to begin."""

    def create_reader(self, split, file):
        return TensReader(file, -(-split.start // 8) * 8, split.end)

    def restore_reader(self, split, file):
        return TensReader(file, split.position, split.end)

    def is_splittable(self):
        return True


class TensReader(BulkFormat.Reader):
    def __init__(self, file, at, end):
        self.file, self.at, self.end = file, at, end

    def read_batch(self):
        if self.at >= self.end:
            return None
        self.file.seek(self.at)
        data = self.file.read(min(80, -(-(self.end - self.at) // 8) * 8))
        self.at += len(data)
        return [number for (number,) in NUMBER.iter_unpack(data)]

    def get_checkpointed_position(self):
        return CheckpointedPosition(self.at)


class Counted(NumbersByTens):
    """One that tells no position: its records are counted."""

    def create_reader(self, split, file):
        reader = super().create_reader(split, file)
        reader.get_checkpointed_position = lambda: None
        return reader

    def restore_reader(self, split, file):
        raise AssertionError("no position was told")


@pytest.mark.parametrize("max_records", [1, 3, 100])
@pytest.mark.parametrize("polls", [0, 1, 2, 7])
def test_a_stream_format_without_positions(fakes, tmp_path, polls, max_records):
    (tmp_path / "a").write_text("to be\nor not\n\nto be")
    (tmp_path / "b").write_text("")
    source = FileSource.for_record_stream_format(Words(), tmp_path).build()
    first = fakes.SourceHarness(source)
    for _ in range(polls):
        if not first.ended[0]:
            first.poll(max_records=max_records)
    second = first.restored().run()
    first.close()
    assert first.records + second.records == ["to", "be", "or", "not", "to", "be"]
    assert source.get_produced_type() is None


@pytest.mark.parametrize("file_format", [Numbers(), NumbersByTens(), Counted()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("split_bytes", [None, 1, 8, 100, 1001])
@pytest.mark.parametrize("polls", [0, 3, 20])
def test_formats_that_read_parts_of_files(fakes, tmp_path, file_format, split_bytes, polls):
    (tmp_path / "a").write_bytes(b"".join(map(NUMBER.pack, range(200))))
    begin = (
        FileSource.for_bulk_file_format if isinstance(file_format, BulkFormat) else FileSource.for_record_stream_format
    )
    source = begin(file_format, tmp_path).set_file_enumerator(FileEnumeratorProvider(split_bytes)).build()
    first = fakes.SourceHarness(source, 2)
    for poll in range(polls):
        if not first.ended[poll % 2]:
            first.poll(poll % 2, max_records=3)
    second = first.restored(3).run(4)
    first.close()
    assert sorted(first.records + second.records) == list(range(200))


class Forgetful(Numbers):
    """One that tells positions but cannot go on from there."""

    restore_reader = StreamFormat.restore_reader


def test_positions_without_a_way_back_are_said(fakes, tmp_path):
    (tmp_path / "a").write_bytes(b"".join(map(NUMBER.pack, range(20))))
    harness = fakes.SourceHarness(FileSource.for_record_stream_format(Forgetful(), tmp_path).build())
    harness.poll(max_records=20)
    restored = harness.restored()
    with pytest.raises(NotImplementedError, match="Forgetful"):
        restored.poll()
    harness.close()
    restored.close()


def csv_format():
    return CsvReaderFormat.for_schema(CsvSchema.builder().add_number_column("id").add_string_column("name").build())


def test_bad_lines_in_a_program(in_process_env, tmp_path):
    for part in range(3):
        lines = [f"{number},n{number}\n" for number in range(part * 100, part * 100 + 100)]
        (tmp_path / f"{part}.csv").write_text("".join([*lines[:50], f"bad {part}\n", *lines[50:]]))
    tag = OutputTag("bad lines")
    source = (
        FileSource.for_record_stream_format(csv_format(), str(tmp_path))
        .set_bad_records(BadRecords.side_output(tag))
        .build()
    )
    env = in_process_env(2)
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    good = rows.map(lambda row: (row.id, None))
    bad = rows.get_side_output(tag).map(lambda record: (record.offset, record))
    found = list(collect(good.union(bad)))
    assert sorted(number for number, record in found if record is None) == list(range(300))
    records = sorted((record for _, record in found if record is not None), key=lambda record: record.source)
    assert [record.raw for record in records] == [b"bad 0", b"bad 1", b"bad 2"]
    assert all(isinstance(record, BadRecord) for record in records)
    assert records[1].source == str(tmp_path / "1.csv")


def test_create_input_reads_avro_files(in_process_env, tmp_path):
    fastavro = pytest.importorskip("fastavro")
    schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    for part in range(2):
        with (tmp_path / f"{part}.avro").open("wb") as file:
            fastavro.writer(file, json.loads(schema), [{"id": part}])
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "1.avro").write_bytes((tmp_path / "1.avro").read_bytes())
    stream = in_process_env(2).create_input(AvroInputFormat(str(tmp_path), schema))
    assert repr(stream.get_type()) == "GenericRecord<R>"
    assert sorted(collect(stream.map(lambda record: record["id"]))) == [0, 1]
