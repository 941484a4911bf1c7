"""What a file sink writes records as: lines of text, JSON or CSV, Avro; compressed; and into which buckets."""

from __future__ import annotations

import datetime as dt
import gzip
import pickle
from decimal import Decimal

import pytest

from firesteel.common import Row, Types
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import Encoder, SimpleStringSchema
from firesteel.connectors.files.sink import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy
from firesteel.formats.avro.schema import AvroSchema
from firesteel.formats.csv.schema import CsvSchema
from firesteel.formats.parquet.avro_writer import AvroParquetWriters
from firesteel.formats.writers.bulk_writers import AvroBulkWriters, CsvBulkWriters
from firesteel.formats.writers.encoders import CsvEncoder, JsonLinesEncoder, SchemaEncoder
from tests.support.jobs.sink_jobs import SinkJob

BASE_PATH = BucketAssigner.base_path_bucket_assigner()
ROW = Types.ROW_NAMED(["name", "total"], [Types.STRING(), Types.LONG()])


def visible(directory):
    files = [path for path in sorted(directory.rglob("*")) if path.is_file() and ".inprogress" not in path.parts]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def written(directory, builder, records):
    job = SinkJob(builder.build, to_record=lambda number: records[number])
    try:
        job.write(len(records))
        job.finish()
    finally:
        job.kill()
    return visible(directory)


def content(directory, builder, records):
    [found] = written(directory, builder.with_bucket_assigner(BASE_PATH), records).values()
    return found


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_lines_of_json(out):
    records = [{"a": [1, None]}, Row(name="é", total=2), "text"]
    found = content(out, FileSink.for_row_format(out, JsonLinesEncoder()), records)
    assert found.decode() == '{"a":[1,null]}\n{"name":"é","total":2}\n"text"\n'


def test_lines_of_csv_with_a_header_in_each_file(out):
    schema = CsvSchema.builder().add_string_column("name").add_number_column("total").set_use_header().build()
    builder = FileSink.for_row_format(out, CsvEncoder(schema)).with_bucket_assigner(BASE_PATH)
    policy = RollingPolicy.default_rolling_policy(part_size=20)
    found = written(out, builder.with_rolling_policy(policy), [Row(name="a,b", total=1), ("c", 2), ("d", None)])
    assert list(found.values()) == [b'name,total\n"a,b",1\nc,2\n', b"name,total\nd,\n"]


def test_a_serialization_schema_with_a_delimiter(out):
    builder = FileSink.for_row_format(out, SchemaEncoder(SimpleStringSchema(), b"|", b"head|"))
    assert content(out, builder, ["a", "b"]) == b"head|a|b|"


@pytest.mark.parametrize("encoder", [JsonLinesEncoder(), CsvEncoder(CsvSchema.of(ROW))], ids=["json", "csv"])
def test_a_record_that_an_encoder_cannot_take_is_named(out, encoder):
    bad = Row(name="x", total=object())
    with pytest.raises(RecordSerializationError) as caught:
        content(out, FileSink.for_row_format(out, encoder), [Row(name="a", total=1), bad])
    assert caught.value.record == repr(bad)


def test_csv_in_bulk(out):
    schema = CsvSchema.of(ROW, use_header=True, column_separator=";")
    found = content(out, FileSink.for_bulk_format(out, CsvBulkWriters.for_schema(schema)), [("a;b", 1), ("c", 2)])
    assert found == b'name;total\n"a;b";1\nc;2\n'


AVRO = AvroSchema.parse_string(
    """{"type": "record", "name": "Sale", "fields": [
        {"name": "item", "type": "string"},
        {"name": "count", "type": ["null", "int"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "lines", "type": {"type": "array", "items":
            {"type": "record", "name": "Line", "fields": [{"name": "x", "type": "double"}]}}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}}
    ]}"""
)
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.timezone.utc)
SALE = {
    "item": "pen",
    "count": None,
    "price": Decimal("1.50"),
    "at": NOON,
    "day": dt.date(2024, 1, 2),
    "tags": {"a": 1},
    "lines": [{"x": 0.5}],
    "kind": "B",
}


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_in_bulk(out, codec):
    fastavro = pytest.importorskip("fastavro")
    records = [SALE, Row(**{**SALE, "item": "cup", "count": 3})]
    factory = AvroBulkWriters.for_generic_record(AVRO, codec=codec)
    content(out, FileSink.for_bulk_format(out, factory), records)
    [path] = [path for path in out.iterdir() if path.is_file()]
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        assert list(reader) == [SALE, {**SALE, "item": "cup", "count": 3}]
        assert reader.codec == codec


def test_parquet_of_an_avro_schema(out):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    content(out, FileSink.for_bulk_format(out, AvroParquetWriters.for_generic_record(AVRO)), [SALE])
    [path] = [path for path in out.iterdir() if path.is_file()]
    table = pq.read_table(path)
    assert table.to_pylist() == [{**SALE, "tags": [("a", 1)]}]
    assert not table.schema.field("item").nullable
    assert table.schema.field("count").nullable
    assert table.schema.field("at").type == pa.timestamp("ms", "UTC")
    assert table.schema.field("price").type == pa.decimal128(6, 2)


@pytest.mark.parametrize("writers", [AvroBulkWriters, AvroParquetWriters])
def test_an_avro_record_that_does_not_fit_is_named_with_its_field(out, writers):
    bad = {**SALE, "count": "many"}
    with pytest.raises(RecordSerializationError, match="count") as caught:
        content(out, FileSink.for_bulk_format(out, writers.for_generic_record(AVRO)), [SALE, bad])
    assert caught.value.record.startswith("{'item': 'pen', 'count': 'many'")


def test_what_bulk_writers_refuse():
    union = AvroSchema.parse_string(
        '{"type": "record", "name": "R", "fields": [{"name": "u", "type": ["int", "string"]}]}'
    )
    for make in (
        lambda: CsvBulkWriters.for_schema("a,b"),
        lambda: AvroBulkWriters.for_generic_record("{}"),
        lambda: AvroBulkWriters.for_generic_record(AVRO, codec="zip"),
        lambda: AvroBulkWriters.for_generic_record(AvroSchema.parse_string('"string"')),
        lambda: AvroParquetWriters.for_generic_record("{}"),
        lambda: AvroParquetWriters.for_generic_record(union),
    ):
        with pytest.raises(InvalidProgramError):
            make()


# -- compression ---------------------------------------------------------------------------------------


def gzip_lines(directory):
    return sorted(int(line) for data in visible(directory).values() for line in gzip.decompress(data).splitlines())


def test_compressed_files_stay_open_over_checkpoints_and_failures(out):
    def make_sink():
        builder = FileSink.for_row_format(out, Encoder.simple_string_encoder()).with_bucket_assigner(BASE_PATH)
        return builder.with_compression("gzip").build()

    job = SinkJob(make_sink)
    job.write(100)
    job.checkpoint()
    job.write(50)
    job.restart()
    assert job.position == 100
    job.write(10)
    job.checkpoint()
    job.write(5)
    job.finish()
    [name] = visible(out)
    assert name.endswith(".gz")
    assert gzip_lines(out) == list(range(115))


def test_the_suffix_of_compressed_files(out):
    builder = FileSink.for_row_format(out, CsvEncoder(CsvSchema.of(ROW, use_header=True)))
    builder = builder.with_compression("gzip").with_output_file_config(OutputFileConfig("sales", ".csv"))
    [(name, data)] = written(out, builder.with_bucket_assigner(BASE_PATH), [("a", 1), ("b", 2)]).items()
    assert name.endswith(".csv.gz")
    assert gzip.decompress(data) == b"name,total\na,1\nb,2\n"
    with pytest.raises(InvalidProgramError, match="zip"):
        builder.with_compression("zip")


# -- buckets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assigner", "buckets"),
    [
        (BucketAssigner.by_field("country"), {"country=DE", "country=a%2Fb", "country=__HIVE_DEFAULT_PARTITION__"}),
        (BucketAssigner.by_field(0), {"f0=DE", "f0=a%2Fb", "f0=__HIVE_DEFAULT_PARTITION__"}),
        (BucketAssigner.by_field(0, "c"), {"c=DE", "c=a%2Fb", "c=__HIVE_DEFAULT_PARTITION__"}),
        (BucketAssigner.by_field(lambda row: row[1] % 2, "odd"), {"odd=0", "odd=1"}),
    ],
)
def test_buckets_by_field(out, assigner, buckets):
    records = [Row(country="DE", n=0), Row(country="a/b", n=1), Row(country=None, n=2), Row(country="DE", n=3)]
    if not assigner.get_bucket_id(records[0], None).startswith("odd"):
        assigner = pickle.loads(pickle.dumps(assigner))
    builder = FileSink.for_row_format(out, JsonLinesEncoder()).with_bucket_assigner(assigner)
    writer = builder.build().create_writer(_Context())
    writer.write_batch(records, None)
    writer.flush(end_of_input=True)
    builder.build().create_committer().commit(writer.prepare_commit())
    writer.close()
    assert {name.rpartition("/")[0] for name in visible(out)} == buckets
    assert sum(data.count(b"\n") for data in visible(out).values()) == 4


class _Context:
    subtask_index, parallelism, attempt_number, sink_id, attempt_id = 0, 1, 0, "abc", "def"


@pytest.mark.parametrize("record", [{"a": 1}, {"a": 1, "b": {}}, "text", 5])
def test_a_record_without_the_field_is_named(record):
    with pytest.raises(RecordSerializationError, match="no field 'country'"):
        BucketAssigner.by_field("country").get_bucket_id(record, None)


@pytest.mark.parametrize("value", ["..", ".", "_x", ".hidden", "", "a\x00b", "C:\\x", 5.5])
def test_a_value_is_always_one_visible_directory(value):
    bucket = BucketAssigner.by_field("f").get_bucket_id({"f": value}, None)
    assert bucket.startswith("f=")
    assert not set("/\0\\:") & set(bucket)
