"""File sources through the suite that every source must pass."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import fastavro

from firesteel.common.typeinfo import Types
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource
from firesteel.datastream.formats.avro import AvroBulkFormat
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.testing.conformance import SourceConformance

AVRO = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}


class FileConformance(SourceConformance):
    kills = 4
    __test__ = False

    def set_up(self):
        self.directory = Path(tempfile.mkdtemp(prefix="conformance"))

    def tear_down(self):
        shutil.rmtree(self.directory)


class TestCsvInOnePiece(FileConformance):
    """Rows over several lines, in a fixed set of files."""

    __test__ = True

    def set_up(self):
        super().set_up()
        for part in range(4):
            rows = "".join(f'{part * 15 + i},"line\nof {part}"\n' for i in range(15))
            (self.directory / f"{part}.csv").write_text(rows)

    def create_source(self, directory=None):
        schema = CsvSchema.of(Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()]))
        source = FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(schema), directory or self.directory
        ).build()
        source.fetch_bytes = 50
        return Ids(source, "id")

    def expected_records(self):
        return list(range(60))

    def create_empty_source(self):
        (self.directory / "none").mkdir()
        return self.create_source(self.directory / "none")


class TestAvroInSplits(FileConformance):
    """Blocks of files that come while the source reads."""

    __test__ = True

    def set_up(self):
        super().set_up()
        for part in range(3):
            self.write(part)

    def write(self, part):
        with (self.directory / f".{part}").open("wb") as file:
            fastavro.writer(file, AVRO, [{"id": part * 20 + i} for i in range(20)], sync_interval=10)
        (self.directory / f".{part}").rename(self.directory / f"{part}.avro")

    def create_source(self, directory=None):
        builder = FileSource.for_bulk_file_format(AvroBulkFormat(), directory or self.directory)
        builder.set_file_enumerator(FileEnumeratorProvider(150)).monitor_continuously(1)
        return Ids(builder.build(), "id")

    def expected_records(self):
        return list(range(60))

    def add_records(self):
        self.write(3)
        return list(range(60, 80))

    def create_empty_source(self):
        (self.directory / "none").mkdir()
        return self.create_source(self.directory / "none")


class Ids(FileSource):
    """Records that can be compared: only what a field has."""

    def __init__(self, source, field):
        super().__init__(source.file_format, source.paths, source.file_enumerator, source.discovery_interval_ms)
        self.fetch_bytes = source.fetch_bytes
        self.field = field

    def create_reader(self, context):
        reader = super().create_reader(context)
        poll = reader.poll_next
        reader.poll_next = lambda output, max_records: poll(OnlyField(output, self.field), max_records)
        return reader


class OnlyField:
    def __init__(self, output, field):
        self._output = output
        self._field = field

    def collect(self, split_id, values, timestamps=None):
        self._output.collect(split_id, [value[self._field] for value in values], timestamps)

    def __getattr__(self, name):
        return getattr(self._output, name)
