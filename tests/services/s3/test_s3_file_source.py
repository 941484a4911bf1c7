"""Files in S3 as a source, against a real service: read in ranges, once each, and errors that say what to do."""

from __future__ import annotations

import gzip
import io
import json
import random
import urllib.request
import uuid

import pytest

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError, JobExecutionError
from firesteel.connectors.files import source_reader as file_source_reader
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, StreamFormat
from firesteel.datastream.formats.avro import AvroBulkFormat
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.datastream.formats.parquet import ParquetFormat
from firesteel.filesystem.input_paths import to_input_path
from firesteel.filesystem.input_stream import READ_AHEAD
from firesteel.filesystem.local_paths import FileReadError
from firesteel.filesystem.stores import close_filesystems, configure_filesystems, get_filesystem
from firesteel.spi.source import Boundedness
from firesteel.testing import collect, test_environment
from firesteel.testing.conformance import SourceConformance, SourceHarness

TEXT = StreamFormat.text_line_format()


class Bucket:
    """A bucket of its own for each test, and what was asked of the service."""

    def __init__(self, server):
        self.server = server
        name = f"files-{uuid.uuid4().hex[:12]}"
        self.path = server.create_bucket(name)

    def put(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        get_filesystem(self.path).write(f"{self.path}/{name}", [data])

    def delete(self, name):
        get_filesystem(self.path).delete(f"{self.path}/{name}")


@pytest.fixture
def bucket(s3):
    configure_filesystems(s3.configuration)
    yield Bucket(s3)
    close_filesystems()
    configure_filesystems(Configuration())


@pytest.fixture
def stranger(s3):
    """From when it is called, the service asks who it is, and does not know us."""

    def ask(limit):
        headers = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{s3.endpoint}/moto-api/reset-auth", limit, headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["PREVIOUS_INITIAL_NO_AUTH_ACTION_COUNT"]

    before = []
    yield lambda: before.append(ask(b"0"))
    for limit in before:
        ask(limit.encode())


@pytest.fixture
def requests(monkeypatch):
    """The ranges that are asked for from now on, in bytes."""
    core = pytest.importorskip("s3fs.core")
    asked = []
    fetch = core._fetch_range

    def counting(fs, bucket, key, version_id, start, end, **more):
        asked.append((start, end))
        return fetch(fs, bucket, key, version_id, start, end, **more)

    monkeypatch.setattr(core, "_fetch_range", counting)
    return asked


def source_of(file_format, *paths, split_bytes=None):
    begin = (
        FileSource.for_record_stream_format
        if isinstance(file_format, StreamFormat)
        else FileSource.for_bulk_file_format
    )
    return begin(file_format, *paths).set_file_enumerator(FileEnumeratorProvider(split_bytes)).build()


def read(source, parallelism=1):
    with SourceHarness(source, parallelism) as harness:
        harness.run()
        return harness.records


class TestReading:
    def test_all_beneath_a_prefix_but_what_is_hidden(self, bucket):
        bucket.put("in/b.txt", "2\n3")
        bucket.put("in/a.txt", "1\n")
        bucket.put("in/deep/er/c.txt.gz", gzip.compress(b"4\n"))
        bucket.put("in/empty", "")
        for name in ("in/_SUCCESS", "in/.a.crc", "in/_temporary/0/x", "inside.txt"):
            bucket.put(name, "no\n")
        source = source_of(TEXT, f"{bucket.path}/in/")
        assert read(source) == ["1", "2", "3", "4"]
        assert read(source_of(TEXT, f"{bucket.path}/in/_temporary", f"{bucket.path}/inside.txt")) == ["no", "no"]
        assert repr(source) == f"FileSource({bucket.path}/in; text lines in UTF-8)"

    def test_every_format(self, bucket):
        fastavro, pa = pytest.importorskip("fastavro"), pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        ids = list(range(300))
        bucket.put("csv/a.csv", "id,name\n" + "".join(f'{i},"n\n{i}"\n' for i in ids))
        bucket.put("json/a.json", "".join(json.dumps({"id": i}) + "\n" for i in ids))
        avro, rows = io.BytesIO(), io.BytesIO()
        record = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
        fastavro.writer(avro, record, [{"id": i} for i in ids], sync_interval=50)
        bucket.put("avro/a.avro", avro.getvalue())
        parquet.write_table(pa.table({"id": ids}), rows, row_group_size=30)
        bucket.put("parquet/a.parquet", rows.getvalue())
        schema = CsvSchema.builder().add_number_column("id").add_string_column("name").set_use_header().build()
        for file_format, name in (
            (CsvReaderFormat.for_schema(schema), "csv"),
            (StreamFormat.json_line_format(), "json"),
            (AvroBulkFormat(), "avro"),
            (ParquetFormat(), "parquet"),
        ):
            source = source_of(file_format, f"{bucket.path}/{name}", split_bytes=200)
            assert sorted(record["id"] for record in read(source, 3)) == ids
        assert ParquetSource(f"{bucket.path}/parquet").get_type() == Types.ROW_NAMED(["id"], [Types.LONG()])

    def test_a_split_asks_for_its_own_bytes_and_little_more(self, bucket, requests):
        line = "x" * 99 + "\n"
        size = 3 * READ_AHEAD
        bucket.put("large.txt", line * (size // 100))
        source = source_of(TEXT, f"{bucket.path}/large.txt", split_bytes=size // 6)
        assert len(read(source)) == size // 100
        assert sum(end - start for start, end in requests) < 6 * (READ_AHEAD + 300)
        del requests[:]
        assert len(read(source_of(TEXT, f"{bucket.path}/large.txt"))) == size // 100
        assert requests == [(at * READ_AHEAD, min((at + 1) * READ_AHEAD, size // 100 * 100)) for at in range(3)]

    def test_of_parquet_the_columns_that_are_read(self, bucket, requests):
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        file = io.BytesIO()
        table = pa.table({"id": range(1000), "wide": [random.randbytes(1000) for _ in range(1000)]})
        parquet.write_table(table, file, row_group_size=500)
        size = len(file.getvalue())
        bucket.put("a.parquet", file.getvalue())
        assert len(read(source_of(ParquetFormat(["id"]), f"{bucket.path}/a.parquet"))) == 1000
        asked = sum(end - start for start, end in requests)
        assert asked < size / 5


class TestChangesUnderWay:
    def test_a_file_that_is_deleted(self, bucket):
        bucket.put("in/a", "1\n")
        bucket.put("in/b", "2\n")
        with SourceHarness(source_of(TEXT, f"{bucket.path}/in")) as harness:
            harness.run_to(1)
            bucket.delete("in/b")
            with pytest.raises(FileReadError, match="does not exist") as caught:
                harness.run()
        assert caught.value.path == f"{bucket.path}/in/b"
        assert "deleted" in caught.value.hint

    def test_a_file_that_is_replaced(self, bucket, monkeypatch):
        monkeypatch.setattr(file_source_reader, "REMOTE_FETCH_BYTES", 1 << 16)
        lines = [f"line {number:06}\n" for number in range(2 * READ_AHEAD // 12)]
        bucket.put("a", "".join(lines))
        with SourceHarness(source_of(TEXT, f"{bucket.path}/a")) as harness:
            harness.run_to(10)
            snapshot = harness.snapshot()
            bucket.put("a", "".join(reversed(lines)))
            with pytest.raises(FileReadError, match="has changed") as caught:
                harness.run(max_records=10_000)
            assert "new file" in caught.value.hint
        with SourceHarness(harness.source, restored=snapshot) as harness:
            with pytest.raises(FileReadError, match="has changed"):
                harness.run()


class TestWhatIsNotThere:
    def test_no_bucket(self, bucket):
        with pytest.raises(InvalidProgramError, match="bucket does not exist") as caught:
            SourceHarness(source_of(TEXT, "s3://no-such-bucket/in"))
        assert "no-such-bucket" in caught.value.hint

    def test_nothing_of_this_name(self, bucket):
        with pytest.raises(InvalidProgramError, match="does not exist"):
            SourceHarness(source_of(TEXT, f"{bucket.path}/in"))
        assert read(source_of(TEXT, bucket.path)) == []  # an empty bucket is an empty directory

    def test_no_permission(self, bucket, stranger):
        bucket.put("in/a", "1\n")
        with SourceHarness(source_of(TEXT, f"{bucket.path}/in")) as harness:
            stranger()
            with pytest.raises(FileReadError, match="cannot be read") as caught:
                harness.run()
        assert "s3.access-key" in caught.value.hint
        with pytest.raises(InvalidProgramError, match="cannot be listed") as refused:
            SourceHarness(source_of(TEXT, f"{bucket.path}/in"))
        assert "s3.access-key" in refused.value.hint

    def test_no_service(self, s3):
        settings = {**s3.settings, "s3.endpoint": "http://127.0.0.1:9"}
        configure_filesystems(Configuration.from_dict(settings))
        try:
            with pytest.raises(InvalidProgramError, match="cannot be listed") as caught:
                SourceHarness(source_of(TEXT, "s3://bucket/in"))
            assert "s3.endpoint" in caught.value.hint
        finally:
            close_filesystems()
            configure_filesystems(Configuration())

    def test_a_uri_without_a_bucket(self):
        with pytest.raises(InvalidProgramError, match="not contain a bucket"):
            to_input_path("s3:///in")


class TestMonitoring:
    def test_new_files_are_found_also_after_a_restore(self, bucket):
        source = FileSource.for_record_stream_format(TEXT, f"{bucket.path}/in").monitor_continuously(1).build()
        assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
        with SourceHarness(source, 2) as harness:  # nothing is there yet
            for number in range(3):
                bucket.put(f"in/deep/{number}", f"{number}\n")
                bucket.put(f"in/_{number}", "no\n")
                harness.run_to(number + 1)
            snapshot = harness.snapshot()
        bucket.put("in/3", "3\n")
        with SourceHarness(source, 1, restored=snapshot) as restored:
            restored.run_to(1)
            assert sorted(harness.records) + restored.records == ["0", "1", "2", "3"]

    def test_a_bucket_that_does_not_exist_fails_the_job_at_the_start(self, bucket):
        source = FileSource.for_record_stream_format(TEXT, "s3://no-such-bucket").monitor_continuously(1).build()
        with pytest.raises(InvalidProgramError, match="bucket does not exist"):
            with SourceHarness(source) as harness:
                harness.run(timeout_s=60)


@pytest.mark.parametrize("mode", ["pipelined", "epochs", "batch"])
def test_the_settings_of_a_job_reach_its_enumerator_and_its_readers(bucket, mode):
    for part in range(3):
        bucket.put(f"in/{part}", "".join(f"{part * 100 + i}\n" for i in range(100)))
    settings = {
        "pipelined": {},
        "epochs": {"execution.runtime-mode": "STREAMING", "execution.exchange": "spark"},
        "batch": {"execution.runtime-mode": "BATCH"},
    }[mode]
    configure_filesystems(Configuration())  # only the job's own settings count
    env = test_environment(2, Configuration.from_dict({**bucket.server.settings, **settings}))
    stream = env.from_source(source_of(TEXT, f"{bucket.path}/in"), WatermarkStrategy.no_watermarks(), "lines")
    assert sorted(collect(stream.map(int))) == list(range(300))
    settings = {**bucket.server.settings, **settings, "restart-strategy.type": "none"}
    wrong = test_environment(2, Configuration.from_dict(settings))
    missing = wrong.from_source(source_of(TEXT, f"{bucket.path}/none"), WatermarkStrategy.no_watermarks(), "lines")
    with pytest.raises(JobExecutionError, match="does not exist"):
        collect(missing)


def test_read_parquet_looks_into_the_store_for_its_type(bucket):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(pa.table({"id": range(10)}), file)
    bucket.put("in/a.parquet", file.getvalue())
    configure_filesystems(Configuration())
    env = test_environment(2, Configuration.from_dict(bucket.server.settings))
    rows = env.read_parquet(f"{bucket.path}/in")
    assert rows.get_type() == Types.ROW_NAMED(["id"], [Types.LONG()])
    assert sorted(collect(rows.map(lambda row: row.id))) == list(range(10))


class TestConformance(SourceConformance):
    """Lines of three objects, cut into splits."""

    kills = 3
    timeout_s = call_timeout_s = left_timeout_s = 120.0

    @pytest.fixture(autouse=True)
    def service(self, s3, monkeypatch):
        # the suite's jobs have settings of their own
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.settings["s3.access-key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.settings["s3.secret-key"])
        configure_filesystems(Configuration.from_dict({"s3.path.style.access": "true"}))
        self.bucket = Bucket(s3)
        for part in range(3):
            self.bucket.put(f"in/{part}", "".join(f"{part} {number}\n" for number in range(15)))
        yield
        close_filesystems()
        configure_filesystems(Configuration())

    def create_source(self):
        return source_of(TEXT, f"{self.bucket.path}/in", split_bytes=30)

    def expected_records(self):
        return [f"{part} {number}" for part in range(3) for number in range(15)]

    def create_empty_source(self):
        self.bucket.put("empty/_SUCCESS", "")
        return source_of(TEXT, f"{self.bucket.path}/empty")
