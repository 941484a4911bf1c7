"""IteratorSource: what it does with splits, positions, timestamps, threads, and with what a subclass gets wrong."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors.base import IteratorSource, IteratorSourceError, IteratorSourceSplit
from firesteel.datastream import ProcessFunction
from firesteel.spi.source import Boundedness, InputStatus
from firesteel.testing import eventually, test_environment
from firesteel.testing.conformance import SourceHarness


class Numbers(IteratorSource):
    blocking = False

    def __init__(self, *splits: Any, count: int = 6, **settings: Any) -> None:
        self.names = splits or ("a", "b")
        self.count = count
        for name, value in settings.items():
            setattr(self, name, value)

    def splits(self) -> Any:
        return self.names

    def read(self, split: Any, position: Any) -> Any:
        for number in range(position or 0, self.count):
            yield (split, number), number + 1


@pytest.mark.parametrize("blocking", [True, False])
def test_a_split_is_read_from_a_position(blocking: bool) -> None:
    source = Numbers(blocking=blocking)
    with SourceHarness(source, 1) as harness:
        harness.run_to(4, max_records=4)
        checkpoint = harness.snapshot()
        assert harness.readers[0].snapshot_state(2) == [IteratorSourceSplit("a", "a", 4)]
    with SourceHarness(source, 1, restored=checkpoint) as harness:
        harness.run()
        assert harness.records == [("a", 4), ("a", 5), *(("b", number) for number in range(6))]


@dataclass(frozen=True)
class Range:
    split_id: str
    first: int
    last: int


class Ranges(Numbers):
    def read(self, split: Range, position: Any) -> Any:
        for number in range(position or split.first, split.last + 1):
            yield number, number + 1


def test_a_split_may_be_an_object_with_an_id() -> None:
    with SourceHarness(Ranges(Range("low", 1, 3), Range("high", 7, 9)), 2) as harness:
        harness.run()
        assert harness.by_split() == {"low": [1, 2, 3], "high": [7, 8, 9]}


class Timed(Numbers):
    def read(self, split: Any, position: Any) -> Any:
        for number in range(position or 0, self.count):
            yield f"{split}{number}", number + 1, number * 1000


def test_timestamps_go_along() -> None:
    class WithTimestamp(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value, ctx.timestamp()

    env = test_environment()
    stream = env.from_source(Timed("a", count=3), WatermarkStrategy.for_monotonous_timestamps(), "timed")
    found = list(stream.process(WithTimestamp()).execute_and_collect())
    assert found == [("a0", 0), ("a1", 1000), ("a2", 2000)]


class Growing(Numbers):
    """A directory, or shards, of which there are more each time one looks."""

    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    discovery_interval_ms = 1
    looks = 0

    def splits(self) -> Any:
        type(self).looks += 1
        return [f"s{number}" for number in range(min(type(self).looks, 5))]

    def read(self, split: Any, position: Any) -> Any:
        yield from super().read(split, position)
        while True:
            yield None


@pytest.mark.parametrize("blocking", [True, False])
def test_splits_are_found_while_the_job_runs(blocking: bool) -> None:
    Growing.looks = 0
    with SourceHarness(Growing(blocking=blocking, poll_interval_ms=1), 2) as harness:
        harness.run(until=lambda: harness.count == 30)
        assert sorted(harness.by_split()) == ["s0", "s1", "s2", "s3", "s4"]
        assert {len(output.splits) for output in harness.outputs} == {2, 3}
        checkpoint = harness.snapshot()
    with SourceHarness(Growing(), 3, restored=checkpoint) as harness:
        for _ in range(30):
            harness.poll_all()
        assert harness.records == []


class Slow(Numbers):
    def splits(self) -> Any:
        EVENTS["slow"].wait(60)
        return super().splits()


def test_a_checkpoint_before_the_splits_are_known() -> None:
    may_go_on = threading.Event()

    EVENTS["slow"] = may_go_on
    with SourceHarness(Slow(), 2) as harness:
        harness.poll_all()
        checkpoint = harness.snapshot()
        may_go_on.set()
    with SourceHarness(Slow(), 1, restored=checkpoint) as harness:
        harness.run()
        assert harness.count == 12


EVENTS: dict[str, threading.Event] = {}


def test_none_means_nothing_now() -> None:
    class Pausing(Numbers):
        boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        poll_interval_ms = 60_000

        def read(self, split: Any, position: Any) -> Any:
            yield 1, 1
            yield None
            yield 2, 2

    with SourceHarness(Pausing("a")) as harness:
        harness.run_to(1)
        assert harness.poll() is InputStatus.NOTHING_AVAILABLE
        assert harness.readers[0].available_at() > time.monotonic() + 30  # type: ignore[operator]
        assert harness.records == [1]


class Counting(Numbers):
    queue_size = 10
    blocking = True

    def read(self, split: Any, position: Any) -> Any:
        for number in range(100):
            PROGRESS.append(number)
            yield number, number + 1


def test_a_thread_does_not_run_far_ahead() -> None:
    PROGRESS.clear()

    with SourceHarness(Counting("a")) as harness:
        harness.poll(max_records=1)
        eventually(lambda: len(PROGRESS) >= 10)
        assert harness.count <= 1
        assert len(PROGRESS) <= 11 + harness.count
        assert (harness.readers[0].pending_records() or 0) <= 10
        harness.run()
        assert harness.records == list(range(100))


PROGRESS: list[Any] = []


def test_paused_splits_are_not_read_on() -> None:
    source = Numbers("a", "b", boundedness=Boundedness.CONTINUOUS_UNBOUNDED)
    with SourceHarness(source) as harness:
        reader = harness.readers[0]
        assert reader.can_pause_splits
        reader.pause_or_resume_splits(["a"], [])
        harness.run_to(6)
        for _ in range(5):
            harness.poll()
        assert list(harness.by_split()) == ["b"]
        reader.pause_or_resume_splits([], ["a"])
        harness.run()
        assert {split: len(records) for split, records in harness.by_split().items()} == {"a": 6, "b": 6}


class Acknowledging(Numbers):
    def acknowledge(self, positions: Any) -> None:
        PROGRESS.append(dict(positions))


def test_positions_of_complete_checkpoints_are_acknowledged() -> None:
    PROGRESS.clear()
    with SourceHarness(Acknowledging()) as harness:
        harness.run_to(2, max_records=2)
        harness.snapshot(1)
        harness.run_to(9, max_records=3)
        harness.snapshot(2)
        assert PROGRESS == []
        harness.notify_checkpoint_complete(1)
        eventually(lambda: PROGRESS == [{"a": 2}])
        harness.notify_checkpoint_complete(2)
        eventually(lambda: len(PROGRESS) == 2)
        assert PROGRESS[1]["a"] == 6
        harness.run()
        # the checkpoint after the end: readers that have ended are not asked for their splits any more
        harness.notify_checkpoint_complete(3)
        eventually(lambda: PROGRESS[-1] == {"b": 6})


def test_the_end_of_a_split_is_acknowledged_although_an_earlier_checkpoint_knew_the_split() -> None:
    PROGRESS.clear()
    with SourceHarness(Acknowledging()) as harness:
        harness.run_to(9, max_records=3)
        harness.snapshot(1)
        harness.run()
        harness.notify_checkpoint_complete(1)
        eventually(lambda: PROGRESS == [{"a": 6, "b": 3}])
        harness.notify_checkpoint_complete(2)
        eventually(lambda: PROGRESS[-1] == {"b": 6})


def test_a_job_whose_source_acknowledges(tmp_path: Any) -> None:
    PROGRESS.clear()
    settings = Configuration().set_string("execution.checkpointing.interval", "10 ms")
    settings.set_string("execution.checkpointing.dir", str(tmp_path))
    env = test_environment(1, settings)
    stream = env.from_source(Acknowledging(), WatermarkStrategy.no_watermarks(), "numbers")
    assert len(list(stream.execute_and_collect())) == 12
    eventually(lambda: bool(PROGRESS) and PROGRESS[-1].get("b") == 6)


def test_what_acknowledge_raises_fails_the_reader() -> None:
    class Broken(Numbers):
        def acknowledge(self, positions: Any) -> None:
            raise ConnectionError("the server is gone")

    with SourceHarness(Broken()) as harness:
        harness.run_to(2, max_records=2)
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)

        def raised() -> bool:
            with pytest.raises(ConnectionError, match="the server is gone"):
                harness.poll(max_records=1)
            return True

        eventually(lambda: harness.readers[0]._acknowledger._error is not None)  # type: ignore[attr-defined]
        assert raised()


# -- what a subclass gets wrong -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (5, "yielded 5 for split 'a'"),
        ("ab", "yielded 'ab' for split 'a'"),
        ((1,), r"yielded \(1,\)"),
        ((1, 2, 3, 4), r"yielded \(1, 2, 3, 4\)"),
        ((1, None), "with None as its position"),
    ],
)
@pytest.mark.parametrize("blocking", [True, False])
def test_a_record_without_a_position(item: Any, message: str, blocking: bool) -> None:
    class Wrong(Numbers):
        def read(self, split: Any, position: Any) -> Any:
            yield item

    with SourceHarness(Wrong("a", blocking=blocking)) as harness, pytest.raises(IteratorSourceError, match=message):
        harness.run()


def test_items_that_are_not_alike() -> None:
    class Mixed(Numbers):
        def read(self, split: Any, position: Any) -> Any:
            yield 1, 1
            yield 2, 2, 1000

    with SourceHarness(Mixed("a")) as harness, pytest.raises(IteratorSourceError, match=r"yielded \(2, 2, 1000\)"):
        harness.run()


def test_a_source_that_cannot_go_back_needs_no_positions() -> None:
    class Volatile(Numbers):
        def can_rewind(self) -> bool:
            return False

        def read(self, split: Any, position: Any) -> Any:
            yield "gone", None

    with SourceHarness(Volatile("a")) as harness:
        harness.run()
        assert harness.records == ["gone"]


@pytest.mark.parametrize(("splits", "message"), [(("a", "a"), "'a' twice"), ((1, 2), "gave 1, which has no id")])
def test_splits_without_an_id_of_their_own(splits: Any, message: str) -> None:
    with pytest.raises(IteratorSourceError, match=message), SourceHarness(Numbers(*splits)) as harness:
        harness.run()


@pytest.mark.parametrize("blocking", [True, False])
def test_what_read_raises_comes_after_what_it_yielded(blocking: bool) -> None:
    class Breaking(Numbers):
        def read(self, split: Any, position: Any) -> Any:
            yield 1, 1
            raise ConnectionError("broken")

    with SourceHarness(Breaking("a", blocking=blocking)) as harness:
        with pytest.raises(ConnectionError, match="broken"):
            harness.run(max_records=1)
        assert harness.records == [1]


class Closing(Numbers):
    def read(self, split: Any, position: Any) -> Any:
        try:
            while True:
                yield 1, 1
        finally:
            PROGRESS.append(threading.current_thread().name)


def test_iterators_are_closed_where_they_run() -> None:
    PROGRESS.clear()

    for blocking in (True, False):
        with SourceHarness(Closing("a", blocking=blocking)) as harness:
            harness.run_to(1)
    assert PROGRESS == ["firesteel-Closing-a", "conformance-task"]


class Stuck(Numbers):
    blocking = True
    close_timeout_s = 0.05

    def read(self, split: Any, position: Any) -> Any:
        yield 1, 1
        EVENTS["stuck"].wait(60)


def test_a_read_that_does_not_come_back_is_named() -> None:
    EVENTS["stuck"] = threading.Event()
    harness = SourceHarness(Stuck("a"))
    harness.run_to(1)
    with pytest.raises(IteratorSourceError, match=r"'a' did not yield for 0\.05 s"):
        harness.close()
    EVENTS["stuck"].set()
