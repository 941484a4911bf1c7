from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.generators.number_sequence import NumberSequenceSource, split_evenly
from firesteel.spi.source import Boundedness, InputStatus

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@patient
@given(start=st.integers(-1000, 1000), size=st.integers(0, 500), parallelism=st.integers(1, 40))
def test_splits_adjoin_and_cover_the_whole_range(start, size, parallelism):
    ranges = split_evenly(start, start + size, parallelism)
    covered = list(itertools.chain.from_iterable(range(a, b) for a, b in ranges))
    assert covered == list(range(start, start + size))
    sizes = [b - a for a, b in ranges]
    assert all(sizes)
    assert len(ranges) == min(parallelism, size)
    assert not sizes or max(sizes) - min(sizes) <= 1


@patient
@given(
    start=st.integers(-50, 50),
    size=st.integers(1, 200),
    parallelism=st.integers(1, 8),
    max_records=st.integers(1, 60),
)
def test_readers_together_emit_each_number_once(fakes, start, size, parallelism, max_records):
    harness = fakes.SourceHarness(NumberSequenceSource(start, start + size - 1), parallelism).run(max_records)
    assert harness.records == list(range(start, start + size))
    assert all(len(output.released) <= 1 for output in harness.outputs)


@patient
@given(
    size=st.integers(1, 100),
    parallelism=st.integers(1, 4),
    new_parallelism=st.integers(1, 4),
    polls=st.lists(st.integers(0, 3), max_size=12),
    max_records=st.integers(1, 20),
)
def test_resumes_with_exactly_the_rest(fakes, size, parallelism, new_parallelism, polls, max_records):
    first = fakes.SourceHarness(NumberSequenceSource(0, size - 1), parallelism)
    for subtask in polls:
        first.poll(subtask % parallelism, max_records)
    second = first.restored(new_parallelism).run(max_records)
    assert sorted(first.records + second.records) == list(range(size))


def test_poll_emits_a_range_and_no_list(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(0, 2**80), 1)
    assert harness.poll(max_records=1_000_000) is InputStatus.MORE_AVAILABLE
    assert harness.outputs[0].batches == [range(1_000_000)]
    assert isinstance(harness.outputs[0].batches[0], range)


def test_each_reader_gets_its_own_range_in_whatever_order_they_ask(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(1, 10), 4).run()
    assert [output.records for output in harness.outputs] == [[1, 2, 3], [4, 5, 6], [7, 8], [9, 10]]


def test_more_readers_than_numbers(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(7, 7), 3)
    assert harness.poll(2) is InputStatus.END_OF_INPUT
    assert harness.poll(0) is InputStatus.END_OF_INPUT
    assert harness.outputs[0].records == [7]


def test_splits_of_a_failed_reader_go_to_its_successor(fakes):
    harness = fakes.SourceHarness(NumberSequenceSource(0, 9), 2)
    harness.enumerator.add_splits_back(harness.assigned[1], 1)
    assert harness.enumerator.snapshot_state(1) == harness.assigned[1]
    harness.assigned.clear()
    harness.enumerator.handle_split_request(0, None)
    assert harness.assigned == {}
    harness.enumerator.handle_split_request(1, None)
    assert [(s.position, s.stop) for s in harness.assigned[1]] == [(5, 10)]


@pytest.mark.parametrize(("start", "end"), [(2, 1), ("0", 1), (0, 1.5), (True, 2)])
def test_bad_bounds_are_refused(start, end):
    with pytest.raises(InvalidProgramError):
        NumberSequenceSource(start, end)


def test_describes_itself():
    source = NumberSequenceSource(1, 5)
    assert repr(source) == "NumberSequenceSource(1, 5)"
    assert source.get_boundedness() is Boundedness.BOUNDED
