"""The connectors that need no server, and those of the examples, through the conformance suite."""

from __future__ import annotations

import inspect
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder
from firesteel.common.time import Duration
from firesteel.connectors import CollectionSource, NumberSequenceSource
from firesteel.connectors.base import AtLeastOnceSink, IteratorSource
from firesteel.connectors.hybrid.source import HybridSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from firesteel.spi.sink import Sink, WriterContext
from firesteel.spi.source import Boundedness, Source
from firesteel.testing.conformance import ConformanceSuite, SinkConformance, SourceConformance

sys.path.insert(0, str(Path(__file__).parents[3]))

from examples import custom_connector


class Directory:
    """A directory for each check."""

    def set_up(self) -> None:
        self.directory = Path(tempfile.mkdtemp())

    def tear_down(self) -> None:
        shutil.rmtree(self.directory)


class TestNumberSequence(SourceConformance):
    def create_source(self) -> Source[Any]:
        return NumberSequenceSource(-10, 49)

    def expected_records(self) -> Sequence[int]:
        return range(-10, 50)


class Collection(SourceConformance):
    def create_source(self) -> Source[Any]:
        return CollectionSource(range(60), parallel=True)

    def create_empty_source(self) -> Source[Any]:
        return CollectionSource([])

    def expected_records(self) -> Sequence[int]:
        return range(60)


class TestTextFiles(Directory, SourceConformance):
    """Three files, cut into pieces of about ten lines."""

    lines = tuple(f"line {number:03}" for number in range(90))

    def create_source(self) -> Source[Any]:
        for index in range(3):
            text = "".join(f"{line}\n" for line in self.lines[index::3])
            (self.directory / f"{index}.txt").write_text(text)
        return self._source(self.directory)

    def _source(self, directory: Path) -> Source[Any]:
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))
        return builder.set_file_enumerator(FileEnumeratorProvider(100)).build()

    def create_empty_source(self) -> Source[Any]:
        (self.directory / "empty").mkdir()
        (self.directory / "empty" / "0.txt").touch()
        return self._source(self.directory / "empty")

    def expected_records(self) -> Sequence[str]:
        return self.lines


class TestMonitoredDirectory(TestTextFiles):
    def _source(self, directory: Path) -> Source[Any]:
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))
        return builder.monitor_continuously(Duration.of_millis(20)).build()

    def add_records(self) -> Sequence[str]:
        (self.directory / ".new").write_text("late 1\nlate 2\n")
        (self.directory / ".new").rename(self.directory / "new.txt")
        return ["late 1", "late 2"]


class Letters(IteratorSource):
    """Numbered letters; each letter is a split."""

    poll_interval_ms = 2

    def __init__(self, letters: str, count: int, *, blocking: bool, endless: bool) -> None:
        self.letters = letters
        self.count = count
        self.blocking = blocking
        self.boundedness = Boundedness.CONTINUOUS_UNBOUNDED if endless else Boundedness.BOUNDED
        self.discovery_interval_ms = 5 if endless else None

    def splits(self) -> Iterable[str]:
        return self.letters

    def read(self, split: str, position: int | None) -> Iterator[tuple[str, int] | None]:
        for number in range(position or 0, self.count):
            yield f"{split}{number}", number + 1
        while self.boundedness is not Boundedness.BOUNDED:
            yield None


class IteratorsInThreads(SourceConformance):
    blocking, endless = True, False

    def create_source(self) -> Source[Any]:
        return Letters("abcde", 12, blocking=self.blocking, endless=self.endless)

    def create_empty_source(self) -> Source[Any]:
        return Letters("ab", 0, blocking=self.blocking, endless=self.endless)

    def expected_records(self) -> Sequence[str]:
        return [f"{letter}{number}" for letter in "abcde" for number in range(12)]


class IteratorsInline(IteratorsInThreads):
    blocking = False


class EndlessIteratorsInThreads(IteratorsInThreads):
    endless = True


class EndlessIteratorsInline(IteratorsInThreads):
    blocking, endless = False, True


class TestHybrid(SourceConformance):
    """Three sources that hand out their splits each in another way; the last is made when its turn comes."""

    def create_source(self) -> Source[Any]:
        builder = HybridSource.builder(NumberSequenceSource(0, 19)).add_source(CollectionSource(range(20, 40)))
        return builder.add_source(lambda context: NumberSequenceSource(40, 59), Boundedness.BOUNDED).build()

    def create_empty_source(self) -> Source[Any]:
        return HybridSource.builder(CollectionSource([])).add_source(CollectionSource([])).build()

    def expected_records(self) -> Sequence[int]:
        return range(60)


class HybridWithoutEnd(SourceConformance):
    def create_source(self) -> Source[Any]:
        last = Letters("xyz", 10, blocking=True, endless=True)
        return HybridSource.builder(NumberSequenceSource(0, 29)).add_source(last).build()

    def expected_records(self) -> Sequence[Any]:
        return [*range(30), *(f"{letter}{number}" for letter in "xyz" for number in range(10))]


class TestFileSink(Directory, SinkConformance):
    visible_after_checkpoint = False
    settle_s = 0.0

    def create_sink(self) -> Sink:
        return FileSink.for_row_format(str(self.directory), Encoder.simple_string_encoder()).build()

    def visible_records(self) -> Sequence[str]:
        return [line for file in self.directory.rglob("part-*") for line in file.read_text().splitlines()]


class FileSinkThatRollsAtCheckpoints(TestFileSink):
    visible_after_checkpoint = True
    outside_is_shared = False  # one run of processes that are killed is enough

    def create_sink(self) -> Sink:
        builder = FileSink.for_row_format(str(self.directory), Encoder.simple_string_encoder())
        return builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()


class BucketsOfRecords(FileSinkThatRollsAtCheckpoints):
    """Each record's own text is its bucket, of which not every one can be a directory."""

    def set_up(self) -> None:
        super().set_up()
        (self.directory / "key=taken").touch()

    def create_sink(self) -> Sink:
        builder = FileSink.for_row_format(str(self.directory), Encoder.simple_string_encoder())
        builder.with_bucket_assigner(BucketAssigner.by_field(lambda record: record))
        return builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()

    def visible_records(self) -> Sequence[str]:
        files = [file for file in self.directory.rglob("part-*") if ".inprogress" not in file.parts]
        return [line for file in files for line in file.read_text().splitlines()]

    def refused_records(self) -> Sequence[str]:
        return ["x" * 300, "taken", "\U0001f600" * 64]


class AppendingSink(AtLeastOnceSink[Any]):
    """Appends to a file of its own in each writer."""

    max_batch_size = 2

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open(self, context: WriterContext) -> Any:
        name = f"{context.sink_id}-{context.attempt_id}-{context.subtask_index}.txt"
        return (self.directory / name).open("a")

    def write(self, client: Any, values: Sequence[Any]) -> None:
        assert len(values) <= 2
        client.writelines(f"{value}\n" for value in values)

    def flush(self, client: Any) -> None:
        client.flush()

    def close(self, client: Any) -> None:
        client.close()


class AppendingSinkSuite(Directory, SinkConformance):
    settle_s = 0.0
    outside_is_shared = False

    def create_sink(self) -> Sink:
        return AppendingSink(self.directory)

    def visible_records(self) -> Sequence[str]:
        return [line for file in self.directory.glob("*.txt") for line in file.read_text().splitlines()]


def test_a_connector_is_short() -> None:
    lengths = [
        len(inspect.getsource(connector).splitlines())
        for connector in (custom_connector.OrderSource, custom_connector.InvoiceSink)
    ]
    assert max(lengths) <= 40


class TestExampleSource(Directory, SourceConformance):
    def create_source(self) -> Source[Any]:
        path = str(self.directory / "shop.db")
        if not (self.directory / "shop.db").exists():
            custom_connector.run(path, ("CREATE TABLE orders (region, number)", ()))
            orders = itertools.product(("north", "south"), range(1, 31))
            custom_connector.run(path, *(("INSERT INTO orders VALUES (?, ?)", order) for order in orders))
        return custom_connector.OrderSource(path)

    def create_empty_source(self) -> Source[Any]:
        path = str(self.directory / "empty.db")
        custom_connector.run(path, ("CREATE TABLE orders (region, number)", ()))
        return custom_connector.OrderSource(path)

    def expected_records(self) -> Sequence[str]:
        return [f"{region} {number}" for region in ("north", "south") for number in range(1, 31)]


class TestExampleSink(Directory, SinkConformance):
    settle_s = 0.0

    def set_up(self) -> None:
        super().set_up()
        self.path = str(self.directory / "shop.db")
        tables = "staged (id, row)", "invoices (row)"
        custom_connector.run(self.path, *((f"CREATE TABLE {table}", ()) for table in tables))

    def create_sink(self) -> Sink:
        return custom_connector.InvoiceSink(self.path)

    def visible_records(self) -> Sequence[str]:
        return [row for (row,) in custom_connector.run(self.path, ("SELECT row FROM invoices", ()))]


@pytest.mark.parametrize(
    "suite",
    [
        Collection,
        IteratorsInThreads,
        IteratorsInline,
        EndlessIteratorsInThreads,
        EndlessIteratorsInline,
        HybridWithoutEnd,
        FileSinkThatRollsAtCheckpoints,
        BucketsOfRecords,
        AppendingSinkSuite,
    ],
)
def test_conforms(suite: type[ConformanceSuite]) -> None:
    report = suite().run()
    report.raise_if_failed()
    assert len(report.passed) >= 10
