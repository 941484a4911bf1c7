"""HybridSource: one source after the other, also with a failure in between; and what cannot be built."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors import CollectionSource, NumberSequenceSource
from firesteel.connectors.base import IteratorSource
from firesteel.connectors.hybrid.split import HybridSourceSplit, SourceReaderFinishedEvent, SwitchSourceEvent
from firesteel.datastream.connectors.hybrid_source import HybridSource, SourceSwitchContext
from firesteel.spi.source import Boundedness, InputStatus, Source
from firesteel.testing import TestingSource, test_environment
from firesteel.testing.conformance import SourceHarness


def after(start: int, count: int = 10) -> NumberSequenceSource:
    return NumberSequenceSource(start, start + count - 1)


def two_sources() -> HybridSource:
    return HybridSource.builder(after(0)).add_source(after(100)).build()


def test_the_second_source_begins_when_all_readers_have_finished_the_first() -> None:
    with SourceHarness(two_sources(), 2) as harness:
        while not harness.ended[0] and harness.count < 5:
            harness.poll(0, 2)
        for _ in range(10):
            harness.poll(0, 2)
        # reader 0 has finished; reader 1 has not been polled
        assert harness.records == [0, 1, 2, 3, 4]
        harness.run()
    numbers = harness.records
    assert sorted(numbers) == [*range(10), *range(100, 110)]
    for output in harness.outputs:
        seen = [record for _, record in output.records]
        assert seen == sorted(seen)


def test_split_ids_have_the_index_of_their_source() -> None:
    source = HybridSource.builder(CollectionSource([1])).add_source(CollectionSource([2])).build()
    with SourceHarness(source) as harness:
        harness.run()
        assert harness.by_split() == {"0-0": [1], "1-0": [2]}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("polls", range(0, 24, 3))
def test_a_checkpoint_at_any_moment_of_the_switch(polls: int, parallelism: int) -> None:
    source = HybridSource.builder(after(0)).add_source(lambda context: after(100), Boundedness.BOUNDED).build()
    with SourceHarness(source, 2) as harness:
        for number in range(polls):
            if not harness.ended[number % 2]:
                harness.poll(number % 2, 1)
        checkpoint, before = harness.snapshot(), harness.records
    with SourceHarness(source, parallelism, restored=checkpoint) as restored:
        restored.run()
        assert sorted([*before, *restored.records]) == [*range(10), *range(100, 110)]


MADE: list[Any] = []


class Counted(NumberSequenceSource):
    def create_enumerator(self, context: Any) -> Any:
        enumerator = super().create_enumerator(context)
        enumerator.end = self.end  # type: ignore[attr-defined]
        return enumerator


def from_its_end(context: SourceSwitchContext) -> Source[Any]:
    MADE.append(context.get_previous_enumerator())
    return after(MADE[-1].end + 1, 5)


def test_the_next_source_is_made_from_where_the_one_before_ended() -> None:
    MADE.clear()
    source = HybridSource.builder(Counted(0, 9)).add_source(from_its_end, Boundedness.BOUNDED).build()
    with SourceHarness(source, 2) as harness:
        harness.run_to(12, max_records=1)
        checkpoint, before = harness.snapshot(), harness.records
    assert len(MADE) == 1
    # restored, it is not made again: the enumerator before is gone
    with SourceHarness(source, 1, restored=checkpoint) as harness:
        harness.run()
        assert sorted([*before, *harness.records]) == list(range(15))
    assert len(MADE) == 1


def test_a_split_carries_a_source_that_was_made() -> None:
    source = HybridSource.builder(after(0, 2)).add_source(lambda context: after(5, 2), Boundedness.BOUNDED).build()
    with SourceHarness(source) as harness:
        harness.run_to(3, max_records=1)
        (split,) = harness.readers[0].snapshot_state(1)
        assert isinstance(split, HybridSourceSplit)
        assert (split.source_index, type(split.source)) == (1, NumberSequenceSource)


class Endless(IteratorSource):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    blocking = False
    poll_interval_ms = 1

    def splits(self) -> Any:
        return ["x", "y"]

    def read(self, split: Any, position: Any) -> Any:
        for number in range(position or 0, 5):
            yield f"{split}{number}", number + 1
        while True:
            yield None


def test_the_last_source_need_not_end() -> None:
    source = HybridSource.builder(after(0)).add_source(Endless()).build()
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    with SourceHarness(source, 2) as harness:
        harness.run_to(20)
        assert [harness.poll(subtask) for subtask in (0, 1)] == [InputStatus.NOTHING_AVAILABLE] * 2
        assert harness.readers[0].can_pause_splits


def test_readers_that_are_loaded_anew_hear_again_which_source_it_is() -> None:
    with SourceHarness(two_sources()) as harness:
        harness.run_to(11, max_records=1)
        reader = harness.readers[0]
        before = reader.snapshot_state(1)
        reader.handle_source_event(SwitchSourceEvent(1, None))
        reader.handle_source_event(SwitchSourceEvent(0, None))
        assert reader.snapshot_state(1) == before
        # an old message does not count
        assert harness.enumerator is not None
        harness.enumerator.handle_source_event(0, SourceReaderFinishedEvent(0))
        harness.run()
        assert harness.records == [*range(10), *range(100, 110)]


def test_single_splits_are_paused_where_the_source_can() -> None:
    source = HybridSource.builder(after(0, 1)).add_source(Endless()).build()
    with SourceHarness(source) as harness:
        harness.readers[0].pause_or_resume_splits(["1-x"], [])
        harness.run_to(6)
        for _ in range(10):
            harness.poll()
        assert list(harness.by_split()) == ["0-0", "1-y"]
        harness.readers[0].pause_or_resume_splits([], ["1-x"])
        harness.run_to(11)


def test_a_reader_that_cannot_pause_its_splits_waits_as_a_whole() -> None:
    with SourceHarness(two_sources()) as harness:
        harness.run_to(1, max_records=1)
        harness.readers[0].pause_or_resume_splits(["0-0"], [])
        assert harness.poll() is InputStatus.NOTHING_AVAILABLE
        assert harness.count == 1
        harness.readers[0].pause_or_resume_splits([], ["0-0"])
        harness.run()
        assert harness.count == 20


@pytest.mark.parametrize("execution", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job(execution: str, parallelism: int) -> None:
    env = test_environment(parallelism, Configuration().set_string("execution.runtime-mode", execution))
    source = (
        HybridSource.builder(TestingSource([1, 2]))
        .add_source(CollectionSource([3]))
        .add_source(lambda context: after(4, 5), Boundedness.BOUNDED)
        .build()
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "hybrid")
    found = list(stream.execute_and_collect())
    assert sorted(found) == list(range(1, 9))
    if parallelism == 1:
        assert found == list(range(1, 9))


def test_what_cannot_be_built() -> None:
    with pytest.raises(InvalidProgramError, match="never ends, so nothing can be read after it"):
        HybridSource.builder(Endless()).add_source(after(0))
    with pytest.raises(InvalidProgramError, match="the boundedness of the source created by following"):
        HybridSource.builder(after(0)).add_source(following)
    with pytest.raises(InvalidProgramError, match="the first source must be a Source"):
        HybridSource.builder(following)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="neither a Source nor a function"):
        HybridSource.builder(after(0)).add_source(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="is BOUNDED"):
        HybridSource.builder(after(0)).add_source(after(1), Boundedness.CONTINUOUS_UNBOUNDED)


def following(context: SourceSwitchContext) -> Any:
    return Endless()


def test_a_factory_that_makes_something_else() -> None:
    source = HybridSource.builder(after(0)).add_source(following, Boundedness.BOUNDED).build()
    with SourceHarness(source) as harness, pytest.raises(InvalidProgramError, match="was added as BOUNDED"):
        harness.run()
    source = HybridSource.builder(after(0)).add_source(lambda context: 7, Boundedness.BOUNDED).build()  # type: ignore[arg-type, return-value]
    with SourceHarness(source) as harness, pytest.raises(InvalidProgramError, match="must return a Source, not 7"):
        harness.run()


def test_it_can_go_back_if_all_can() -> None:
    class Volatile(NumberSequenceSource):
        def can_rewind(self) -> bool:
            return False

    assert two_sources().can_rewind()
    assert not HybridSource.builder(Volatile(0, 1)).add_source(after(5)).build().can_rewind()
    assert repr(two_sources()) == "HybridSource(NumberSequenceSource(0, 9), NumberSequenceSource(100, 109))"
