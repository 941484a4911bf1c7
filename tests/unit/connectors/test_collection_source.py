from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.connectors.generators.collection import CollectionSource
from firesteel.spi.source import Boundedness, InputStatus

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_emits_slices_in_order(fakes):
    harness = fakes.SourceHarness(CollectionSource(["a", "b", "c", "d", "e"]))
    assert harness.poll(max_records=2) is InputStatus.MORE_AVAILABLE
    assert harness.poll(max_records=2) is InputStatus.MORE_AVAILABLE
    assert harness.poll(max_records=2) is InputStatus.END_OF_INPUT
    assert harness.outputs[0].batches == [["a", "b"], ["c", "d"], ["e"]]
    assert harness.outputs[0].released == ["0"]


def test_one_reader_gets_everything_unless_parallel(fakes):
    single = fakes.SourceHarness(CollectionSource(range(5)), 3).run()
    assert [output.records for output in single.outputs] == [[0, 1, 2, 3, 4], [], []]
    parallel = fakes.SourceHarness(CollectionSource(range(5), parallel=True), 3).run()
    assert [output.records for output in parallel.outputs] == [[0, 1], [2, 3], [4]]


def test_an_empty_collection_ends_at_once(fakes):
    harness = fakes.SourceHarness(CollectionSource([]), 2)
    assert harness.poll(0) is InputStatus.END_OF_INPUT
    assert harness.poll(1) is InputStatus.END_OF_INPUT
    assert harness.records == []


@patient
@given(
    elements=st.lists(st.integers() | st.none() | st.text()),
    polls=st.integers(0, 6),
    max_records=st.integers(1, 7),
    parallel=st.booleans(),
)
def test_resumes_with_exactly_the_rest(fakes, elements, polls, max_records, parallel):
    first = fakes.SourceHarness(CollectionSource(elements, parallel))
    for _ in range(polls):
        first.poll(max_records=max_records)
    second = first.restored().run(max_records)
    assert first.records + second.records == elements


def test_the_callers_list_may_change_afterwards(fakes):
    elements = [1, 2]
    source = CollectionSource(elements)
    elements.append(3)
    assert fakes.SourceHarness(source).run().records == [1, 2]


def test_a_finished_reader_asks_no_more(fakes):
    harness = fakes.SourceHarness(CollectionSource([1])).run()
    assert harness.contexts[0].requests == 1


def test_describes_itself():
    source = CollectionSource([1, 2, 3])
    assert repr(source) == "CollectionSource(3 elements)"
    assert source.get_boundedness() is Boundedness.BOUNDED
