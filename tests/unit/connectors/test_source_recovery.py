"""Every source that can go back: stopped anywhere, it goes on with the next record, at any parallelism."""

from __future__ import annotations

import gzip
import random

import pytest

from firesteel.connectors import (
    CollectionSource,
    DataGeneratorSource,
    FileSource,
    NumberSequenceSource,
    RateLimiterStrategy,
)
from firesteel.connectors.files.source import FileEnumeratorProvider, StreamFormat
from firesteel.spi.source import InputStatus


def square(number):
    return number * number


def text_source(directory, stream_format=None, split_bytes=None):
    builder = FileSource.for_record_stream_format(stream_format or StreamFormat.text_line_format(), str(directory))
    return builder.set_file_enumerator(FileEnumeratorProvider(split_bytes)).build()


@pytest.fixture
def sources(tmp_path):
    lines = [f"line {number} {'é' * (number % 7)}" for number in range(150)]
    plain, packed, wide = tmp_path / "plain", tmp_path / "packed", tmp_path / "wide"
    for directory in (plain, packed, wide):
        directory.mkdir()
    for name, part in (("a", lines[:100]), ("b", lines[100:])):
        text = "".join(f"{line}\n" for line in part)
        (plain / f"{name}.txt").write_text(text, encoding="utf-8")
        (packed / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        (wide / f"{name}.txt").write_text(text.replace("\n", "\r\n"), encoding="utf-16", newline="")
    return {
        "collection": (CollectionSource(range(50)), list(range(50))),
        "collection, parallel": (CollectionSource(range(50), parallel=True), list(range(50))),
        "sequence": (NumberSequenceSource(-20, 79), list(range(-20, 80))),
        "datagen": (DataGeneratorSource(square, count=101), [i * i for i in range(101)]),
        "datagen, fewer than readers": (DataGeneratorSource(abs, count=2), [0, 1]),
        "text": (text_source(plain), lines),
        "text in splits": (text_source(plain, split_bytes=97), lines),
        "text, compressed": (text_source(packed), lines),
        "text, utf-16": (text_source(wide, StreamFormat.text_line_format("UTF-16")), lines),
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "name",
    [
        "collection",
        "collection, parallel",
        "sequence",
        "datagen",
        "datagen, fewer than readers",
        "text",
        "text in splits",
        "text, compressed",
        "text, utf-16",
    ],
)
def test_nothing_is_lost_and_nothing_comes_twice(fakes, sources, name, seed):
    source, expected = sources[name]
    seen = fakes.SourceHarness.read_with_failures(source, random.Random(f"{name}{seed}"), 10, 4)
    assert sorted(seen) == sorted(expected)


def test_records_read_after_the_snapshot_come_again(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(0, 9))
    harness.poll(max_records=4)
    restored = harness.restored()
    harness.poll(max_records=4)
    harness.close()
    assert harness.records == list(range(8))
    assert restored.run().records == [4, 5, 6, 7, 8, 9]


def test_a_position_is_right_while_records_are_on_their_way(fakes, sources):
    for source, _expected in sources.values():
        harness = fakes.SourceHarness(source)
        reader, output = harness.readers[0], harness.outputs[0]
        at_collect = []
        collect = output.collect

        def check(split_id, values, timestamps=None, collect=collect, reader=reader, at_collect=at_collect):
            collect(split_id, values, timestamps)
            at_collect.append(reader.snapshot_state(1)[0])

        output.collect = check
        harness.poll(max_records=2)
        after = reader.snapshot_state(1)
        assert at_collect[0] in after or after == []
        harness.close()


def test_generators_without_end_are_read_side_by_side_by_fewer_readers(fakes):
    harness = fakes.SourceHarness(DataGeneratorSource(abs), 4)
    for subtask in range(4):
        harness.poll(subtask, max_records=5)
    assert sorted(harness.records) == list(range(20))
    fewer = harness.restored(1)
    for _ in range(8):
        fewer.poll(max_records=5)
    assert sorted(fewer.records) == list(range(20, 60))


def test_a_restored_generator_keeps_to_the_rate(fakes):
    clock = fakes.Clock()
    source = DataGeneratorSource(abs, rate_limiter_strategy=RateLimiterStrategy.per_second(10), clock=clock)

    def read(reader_count, splits):
        limiter = source.rate_limiter_strategy.create_rate_limiter(reader_count, clock)
        reader = type(source.create_reader(fakes.ReaderContext()))(fakes.ReaderContext(), abs, limiter, clock)
        reader.add_splits(splits)
        reader.start()
        output = fakes.ReaderOutput()
        for _ in range(200):
            reader.poll_next(output, 100)
            clock.advance(0.01)
        return output.records

    splits = source.create_enumerator(type("Two", (), {"current_parallelism": lambda self: 2})())
    both = splits.snapshot_state(1)
    assert read(1, both) == list(range(20))
    assert read(2, both[:1]) == list(range(0, 20, 2))


def test_a_reader_with_restored_splits_does_not_ask_for_more_before_it_is_done(fakes):
    for source in (NumberSequenceSource(0, 9), DataGeneratorSource(abs, count=10)):
        context = fakes.ReaderContext()
        reader = source.create_reader(context)
        enumerator = source.create_enumerator(type("One", (), {"current_parallelism": lambda self: 1})())
        reader.add_splits(enumerator.snapshot_state(1))
        reader.start()
        assert context.requests == 0
        output = fakes.ReaderOutput()
        assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
        assert (context.requests, len(output.records)) == (1, 10)
        reader.close()


def test_splits_no_reader_had_are_the_enumerators_state(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(0, 9), 1)
    enumerator = NumberSequenceSource(0, 9).create_enumerator(type("P", (), {"current_parallelism": lambda self: 3})())
    assert len(enumerator.snapshot_state(1)) == 3
    again = fakes.SourceHarness(NumberSequenceSource(0, 9), 2, enumerator_state=enumerator.snapshot_state(1))
    assert sorted(again.run().records) == list(range(10))
    harness.run()
