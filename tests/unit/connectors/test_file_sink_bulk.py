"""A file sink that writes whole files, Parquet among them: rolled at every checkpoint, each record visible once."""

from __future__ import annotations

import datetime as dt
import pickle
from collections import Counter
from decimal import Decimal

import pytest

from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory
from firesteel.common.time import Instant
from firesteel.connectors.files.sink import BucketAssigner, FileSink, RollingPolicy
from firesteel.connectors.files.sink_policies import CheckpointRollingPolicy
from firesteel.formats.parquet import writer as parquet_writer
from firesteel.formats.parquet.writer import ParquetBulkWriters
from firesteel.process import fault_points
from firesteel.testing import ABORT, TestingSource, test_environment
from firesteel.types.number_records import NumberRecords
from tests.support.jobs.sink_jobs import SinkJob

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
np = pytest.importorskip("numpy")

NUMBER = Types.ROW_NAMED(["number", "text"], [Types.LONG(), Types.STRING()])


def to_row(number):
    return Row(number=number, text=f"text {number}")


def parquet_sink(directory, factory=None, **options):
    options.setdefault("bucket_assigner", BucketAssigner.base_path_bucket_assigner())
    builder = FileSink.for_bulk_format(directory, factory or ParquetBulkWriters.for_row_type(NUMBER))
    for name, value in options.items():
        builder = getattr(builder, f"with_{name}")(value)
    return builder.build()


def visible(directory):
    return [path for path in sorted(directory.rglob("*")) if path.is_file() and ".inprogress" not in path.parts]


def numbers(directory):
    return sorted(number for path in visible(directory) for number in pq.read_table(path)["number"].to_pylist())


def written(directory, records, factory=None, **options):
    """All records as a job writes them."""
    job = SinkJob(lambda: parquet_sink(directory, factory, **options), to_record=lambda number: records[number])
    try:
        job.write(len(records))
        job.finish()
    finally:
        job.kill()
    return visible(directory)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def armed():
    yield fault_points.arm
    fault_points.arm("")


def test_parquet_files_have_the_fields_of_the_row_type(out):
    [path] = written(out, [to_row(0), (1, "tuple"), {"text": "dict", "number": 2}, Row(3, None)])
    table = pq.read_table(path)
    assert table.schema == pa.schema([("number", pa.int64()), ("text", pa.string())])
    assert table.to_pylist() == [
        {"number": 0, "text": "text 0"},
        {"number": 1, "text": "tuple"},
        {"number": 2, "text": "dict"},
        {"number": 3, "text": None},
    ]


def test_every_type_goes_there_and_back(out):
    fields = {
        "flag": (Types.BOOLEAN(), True),
        "small": (Types.SHORT(), -3),
        "ratio": (Types.DOUBLE(), 0.5),
        "price": (Types.BIG_DEC(), Decimal("12.340000000000000000")),
        "raw": (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\0\xff"),
        "day": (Types.SQL_DATE(), dt.date(2024, 2, 29)),
        "clock": (Types.SQL_TIME(), dt.time(1, 2, 3, 4)),
        "at": (Types.SQL_TIMESTAMP(), dt.datetime.fromisoformat("2024-02-29T01:02:03")),
        "instant": (Types.INSTANT(), Instant(5, 6000)),
        "list": (Types.LIST(Types.INT()), [1, None, 3]),
        "map": (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}),
        "row": (Types.ROW_NAMED(["x"], [Types.STRING()]), Row(x="y")),
    }
    row_type = Types.ROW_NAMED(list(fields), [type_info for type_info, _ in fields.values()])
    record = Row(**{name: value for name, (_, value) in fields.items()})
    [path] = written(out, [record], ParquetBulkWriters.for_row_type(row_type))
    [read] = pq.read_table(path).to_pylist()
    expected = {name: value for name, (_, value) in fields.items()}
    expected["instant"] = dt.datetime(1970, 1, 1, 0, 0, 5, 6, tzinfo=dt.timezone.utc)
    expected |= {"map": [("a", 1)], "row": {"x": "y"}}
    assert {name: str(value) for name, value in read.items()} == {name: str(value) for name, value in expected.items()}


def test_a_schema_of_pyarrow_and_another_compression(out):
    schema = pa.schema([pa.field("number", pa.uint8(), nullable=False)])
    [path] = written(out, [7, 8], ParquetBulkWriters.for_schema(schema, compression="zstd"))
    file = pq.ParquetFile(path)
    assert file.schema_arrow.equals(schema)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    file.close()
    assert numbers(out) == [7, 8]


def test_timestamps_as_points_in_time(out):
    row_type = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    moment = dt.datetime.fromisoformat("2024-01-01T12:00:00")
    [path] = written(out, [Row(at=moment)], ParquetBulkWriters.for_row_type(row_type, None, True))
    assert pq.read_table(path)["at"].to_pylist() == [moment.replace(tzinfo=dt.timezone.utc)]


def test_columns_of_numbers_are_written_as_they_are(out, fakes):
    row_type = Types.TUPLE([Types.INT(), Types.DOUBLE()])
    sink = parquet_sink(out, ParquetBulkWriters.for_row_type(row_type))
    writer = sink.create_writer(fakes.WriterContext())
    batch = NumberRecords([np.arange(20_000), np.arange(20_000) / 2], None)
    writer.write_batch(batch, None)
    writer.flush(end_of_input=True)
    sink.create_committer().commit(writer.prepare_commit())
    writer.close()
    [path] = visible(out)
    assert pq.read_table(path).to_pydict() == {"f0": list(range(20_000)), "f1": [i / 2 for i in range(20_000)]}
    assert batch._records is None


def test_row_groups_are_bounded(out, monkeypatch):
    monkeypatch.setattr(parquet_writer, "GROUP_ROWS", 20)
    monkeypatch.setattr(parquet_writer, "BATCH_ROWS", 8)
    [path] = written(out, [to_row(i) for i in range(50)])
    assert [pq.ParquetFile(path).metadata.row_group(i).num_rows for i in range(3)] == [24, 24, 2]
    assert numbers(out) == list(range(50))


@pytest.mark.parametrize(
    ("record", "column"),
    [
        (Row(number="seven", text="x"), "number"),
        (Row(number=1.5, text="x"), "number"),
        (Row(number=1, text=5), "text"),
        (Row(number=2**63, text="x"), "number"),
        (Row(number=1), "'text'"),
        ((1, 2, 3), "3 fields"),
        (5, "no fields"),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_its_field(out, record, column):
    with pytest.raises(RecordSerializationError) as caught:
        written(out, [to_row(0), record, to_row(2)])
    assert column in caught.value.message
    assert caught.value.record == repr(record)
    assert "number int64, text string" in caught.value.hint
    assert visible(out) == []


def test_files_are_rolled_at_every_checkpoint_and_with_it_visible(out):
    job = SinkJob(lambda: parquet_sink(out), to_record=to_row)
    for checkpoint in range(3):
        job.write(10)
        snapshot = job.snapshot()
        assert numbers(out) == list(range(10 * checkpoint))
        job.complete(snapshot)
        assert numbers(out) == list(range(10 * checkpoint + 10))
    job.finish()
    assert len(visible(out)) == 3


@pytest.mark.parametrize(
    "crash", ["before snapshot", "after snapshot", "after complete", "before commit", "after commit", "rescaled"]
)
def test_a_crash_at_every_step_of_the_protocol(out, crash, armed):
    job = SinkJob(lambda: parquet_sink(out), 2, to_record=to_row)
    job.write(5)
    job.checkpoint()
    job.write(5)
    if crash != "before snapshot":
        snapshot = job.snapshot()
        job.write(1)
    if crash in ("after complete", "rescaled"):
        job.complete(snapshot, notify=1 if crash == "rescaled" else 0)
    elif crash.endswith(" commit"):
        armed(f"sink.{'commit' if crash == 'before commit' else 'committed'}=raise")
        with pytest.raises(OSError, match="fault injected"):
            job.complete(snapshot)
        armed("")
    assert Counter(numbers(out)) <= Counter(range(10))
    job.restart(3 if crash == "rescaled" else None)
    assert numbers(out) == list(range(job.position))
    job.write(20 - job.position)
    job.finish()
    assert numbers(out) == list(range(20))
    assert not (out / ".inprogress").exists()


@pytest.mark.parametrize(
    "execution",
    [
        {"execution.checkpointing.interval": "10 ms"},
        {"execution.exchange": "spark", "execution.epoch.max-records": "70"},
        {"execution.runtime-mode": "BATCH"},
    ],
    ids=["streaming", "epochs", "batch"],
)
def test_a_job_that_fails_writes_every_record_once(out, tmp_path, execution):
    settings = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "restart-strategy.fixed-delay.attempts": "20",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        **execution,
    }
    env = test_environment(2, Configuration.from_dict(settings))
    source = TestingSource([*range(200), ABORT(), *range(200, 400), ABORT(), *range(400, 500)])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    rows = stream.map(to_row, output_type=NUMBER).rebalance()
    rows.sink_to(parquet_sink(out)).uid("files")
    env.execute("job")
    assert numbers(out) == list(range(500))
    assert not (out / ".inprogress").exists()


class BySize(CheckpointRollingPolicy):
    def should_roll_on_event(self, size):
        return size > 100

    def should_roll_on_processing_time(self, age_ms, inactive_ms):
        return False


def test_only_policies_that_roll_at_every_checkpoint(out):
    with pytest.raises(InvalidProgramError, match="DefaultRollingPolicy does not roll at every checkpoint"):
        parquet_sink(out, rolling_policy=RollingPolicy.default_rolling_policy())
    written(out / "rolled", [f"{i:70}" for i in range(5)], Lines(), rolling_policy=BySize())
    assert [path.read_text().count("\n") for path in visible(out / "rolled")] == [2, 2, 1]


class Lines(BulkWriterFactory):
    """A format of a user's own, which takes one record at a time."""

    def create(self, stream):
        return LineWriter(stream)


class LineWriter(BulkWriter):
    def __init__(self, stream):
        self.stream = stream

    def add_element(self, element):
        self.stream.write(f"{element}\n".encode())

    def flush(self):
        self.stream.flush()

    def finish(self):
        self.stream.write(b"end")


def test_a_format_of_ones_own(out):
    [path] = written(out, ["a", "b"], Lines())
    assert path.read_text() == "a\nb\nend"


def test_bad_settings_are_refused(out):
    for make in (
        lambda: FileSink.for_bulk_format(out, "parquet"),
        lambda: ParquetBulkWriters.for_row_type(Types.STRING()),
        lambda: ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["a"], [Types.PICKLED_BYTE_ARRAY()])),
        lambda: ParquetBulkWriters.for_row_type(NUMBER, compression="zip"),
        lambda: ParquetBulkWriters.for_schema(NUMBER),
        lambda: ParquetBulkWriters.for_schema(pa.schema([])),
    ):
        with pytest.raises(InvalidProgramError):
            make()
    with pytest.raises(TypeError, match="FileCompactStrategy"):
        FileSink.for_bulk_format(out, Lines()).enable_compact(None, None)


def test_a_sink_can_be_sent_to_a_task(out):
    assert pickle.loads(pickle.dumps(parquet_sink(out))).base_path == out
