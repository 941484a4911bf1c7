from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.generators.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.spi.source import Boundedness, InputStatus

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def square(index):
    return index * index


class Recorder(GeneratorFunction):
    def __init__(self):
        self.calls = []

    def open(self, reader_context):
        self.calls.append(("open", reader_context.subtask_index))

    def map(self, value):
        return f"record {value}"

    def close(self):
        self.calls.append("close")


def test_records_are_a_function_of_the_index(fakes):
    assert fakes.SourceHarness(DataGeneratorSource(square, 5)).run().records == [0, 1, 4, 9, 16]


@patient
@given(count=st.integers(0, 100), parallelism=st.integers(1, 6), max_records=st.integers(1, 30))
def test_readers_together_generate_each_index_once(fakes, count, parallelism, max_records):
    harness = fakes.SourceHarness(DataGeneratorSource(int, count), parallelism).run(max_records)
    assert sorted(harness.records) == list(range(count))
    assert all(output.records == sorted(output.records) for output in harness.outputs)
    sizes = [len(output.records) for output in harness.outputs]
    assert max(sizes) - min(sizes) <= 1


@patient
@given(
    count=st.integers(1, 80),
    parallelism=st.integers(1, 4),
    new_parallelism=st.integers(1, 4),
    polls=st.lists(st.integers(0, 3), max_size=10),
    max_records=st.integers(1, 15),
)
def test_resumes_with_exactly_the_rest(fakes, count, parallelism, new_parallelism, polls, max_records):
    first = fakes.SourceHarness(DataGeneratorSource(int, count), parallelism)
    for subtask in polls:
        first.poll(subtask % parallelism, max_records)
    second = first.restored(new_parallelism).run(max_records)
    assert sorted(first.records + second.records) == list(range(count))


def test_without_a_count_it_has_no_end(fakes):
    source = DataGeneratorSource(int)
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    harness = fakes.SourceHarness(source, 2)
    for _ in range(3):
        assert harness.poll(1, max_records=2) is InputStatus.MORE_AVAILABLE
    assert harness.records == [1, 3, 5, 7, 9, 11]


def test_the_rate_decides_when_to_poll_again(fakes):
    clock = fakes.Clock()
    source = DataGeneratorSource(int, None, RateLimiterStrategy.per_second(20))
    reader = DataGeneratorSource(int, None, source.rate_limiter_strategy, clock=clock).create_reader(
        fakes.ReaderContext(0, 2)
    )
    output = fakes.ReaderOutput()
    assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
    assert reader.available_at() is None  # only a split helps
    reader.add_splits(fakes.SourceHarness(source, 2).assigned[0])
    assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
    assert output.records == [0]
    assert reader.available_at() == pytest.approx(clock.now + 0.1)
    assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
    assert output.records == [0]
    clock.now = reader.available_at()
    reader.poll_next(output, 100)
    assert output.records == [0, 2]


def test_more_is_available_when_a_batch_was_too_small(fakes):
    clock = fakes.Clock()
    source = DataGeneratorSource(int, 1000, RateLimiterStrategy.per_second(1000), clock=clock)
    reader = source.create_reader(fakes.ReaderContext())
    reader.add_splits(fakes.SourceHarness(DataGeneratorSource(int, 1000)).assigned[0])
    output = fakes.ReaderOutput()
    reader.poll_next(output, 10)
    clock.advance(0.05)
    assert reader.poll_next(output, 10) is InputStatus.MORE_AVAILABLE
    assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
    assert len(output.records) == 51


def test_permits_are_not_spent_beyond_the_end(fakes):
    clock = fakes.Clock()
    source = DataGeneratorSource(int, 3, RateLimiterStrategy.per_second(1_000_000), clock=clock)
    reader = source.create_reader(fakes.ReaderContext())
    reader.add_splits(fakes.SourceHarness(DataGeneratorSource(int, 3)).assigned[0])
    reader.notify_no_more_splits()
    output = fakes.ReaderOutput()
    assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE
    clock.advance(1)
    assert reader.poll_next(output, 100) is InputStatus.END_OF_INPUT
    assert output.records == [0, 1, 2]


def test_a_generator_function_is_opened_and_closed_once(fakes):
    function = Recorder()
    reader = DataGeneratorSource(function, 2).create_reader(fakes.ReaderContext(1, 2))
    assert function.calls == []
    reader.start()
    reader.add_splits(fakes.SourceHarness(DataGeneratorSource(int, 2), 2).assigned[1])
    output = fakes.ReaderOutput()
    reader.poll_next(output, 10)
    assert output.records == ["record 1"]
    reader.close()
    assert function.calls == [("open", 1), "close"]


def test_a_generator_function_that_never_opened_is_not_closed(fakes):
    function = Recorder()
    DataGeneratorSource(function, 2).create_reader(fakes.ReaderContext()).close()
    assert function.calls == []


@pytest.mark.parametrize(("function", "count"), [(3, 1), (square, -1), (square, 1.5), (square, True)])
def test_bad_arguments_are_refused(function, count):
    with pytest.raises(InvalidProgramError):
        DataGeneratorSource(function, count)


def test_describes_itself():
    source = DataGeneratorSource(square, 10, RateLimiterStrategy.per_second(50))
    assert repr(source) == "DataGeneratorSource(square, count=10, 50/s)"
    assert repr(DataGeneratorSource(square)) == "DataGeneratorSource(square, unbounded, no limit)"
