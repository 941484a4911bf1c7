"""Sources that break one rule each: the suite finds every one of them, by the check that is about it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from firesteel.spi.source import Boundedness, InputStatus, Source, SourceReader, SplitEnumerator
from firesteel.testing.conformance import ConformanceError, SourceConformance, SourceHarness

SPLITS = {"a": list(range(12)), "b": list(range(100, 112)), "c": list(range(200, 212))}
RECORDS = [record for records in SPLITS.values() for record in records]


@dataclass(frozen=True)
class Split:
    split_id: str
    position: int = 0

    def __post_init__(self) -> None:
        pass


class Enumerator(SplitEnumerator[Split]):
    def __init__(self, context: Any, pending: Any, bounded: bool):
        self.context = context
        self.pending = list(pending)
        self.bounded = bounded

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        if self.pending:
            self.context.assign_split(self.pending.pop(0), subtask)
        elif self.bounded:
            self.context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Split], subtask: int) -> None:
        self.pending += splits

    def snapshot_state(self, checkpoint_id: int) -> Any:
        return list(self.pending)


class Reader(SourceReader[Split]):
    """Reads its splits side by side; asks for another one when it has come to the end of what it has."""

    def __init__(self, context: Any, source: GoodSource):
        self.context = context
        self.source = source
        self.splits: dict[str, Split] = {}
        self.no_more = False
        self.asked = False

    def start(self) -> None:
        if not self.splits:
            self.ask()

    def ask(self) -> None:
        if not self.no_more and not self.asked:
            self.asked = True
            self.context.send_split_request()

    def add_splits(self, splits: Any) -> None:
        self.asked = False
        self.splits.update((split.split_id, split) for split in splits)

    def notify_no_more_splits(self) -> None:
        self.no_more = True

    def records_of(self, split: Split, count: int) -> list[Any]:
        return self.source.data[split.split_id][split.position : split.position + count]

    def poll_next(self, output: Any, max_records: int) -> InputStatus:
        read = False
        for split in list(self.splits.values()):
            records = self.records_of(split, max_records)
            if records:
                read = True
                self.advance(split, len(records))
                output.collect(split.split_id, records)
            elif self.source.bounded:
                del self.splits[split.split_id]
                output.release_split(split.split_id)
        if not read:
            self.ask()
        if read or (self.splits and self.source.bounded):
            return InputStatus.MORE_AVAILABLE
        if self.no_more and not self.splits:
            return InputStatus.END_OF_INPUT
        return InputStatus.NOTHING_AVAILABLE

    def advance(self, split: Split, count: int) -> None:
        self.splits[split.split_id] = replace(split, position=split.position + count)

    def snapshot_state(self, checkpoint_id: int) -> list[Split]:
        return list(self.splits.values())

    def available_at(self) -> float | None:
        return time.monotonic() + 0.005


@dataclass
class GoodSource(Source[Split]):
    """Reads lists, by the rules."""

    bounded: bool = True
    data: dict[str, list[int]] = field(default_factory=lambda: SPLITS)

    reader = Reader
    enumerator = Enumerator

    def __post_init__(self) -> None:
        pass

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: Any) -> Any:
        return self.enumerator(context, map(Split, self.data), self.bounded)

    def restore_enumerator(self, context: Any, state: Any) -> Any:
        return self.enumerator(context, state, self.bounded)

    def create_reader(self, context: Any) -> Any:
        return self.reader(context, self)


def suite_of(source: type[GoodSource], bounded: bool = True) -> SourceConformance:
    class Suite(SourceConformance):
        # short where it is the very thing that is waited for in vain
        timeout_s = 0.6 if source is TellsOnlyOneReaderOfTheEnd else 30
        call_timeout_s = 0.3 if source is Blocks else 30
        left_timeout_s = 5 if source is GoodSource else 0.05
        kills = 4

        def create_source(self) -> Source[Any]:
            return source(bounded)

        def create_empty_source(self) -> Source[Any]:
            return source(bounded, {"a": [], "b": []})

        def expected_records(self) -> list[int]:
            return RECORDS

    return Suite()


@pytest.mark.parametrize("bounded", [True, False])
def test_a_source_by_the_rules_conforms(bounded: bool) -> None:
    report = suite_of(GoodSource, bounded).run()
    report.raise_if_failed()
    not_for_it = "test_unbounded_source_waits_and_goes_on" if bounded else "test_job_in_batch"
    assert set(report.skipped) == {not_for_it, "test_any_value_bounds_splits_and_positions"}


class ForgetsPosition(GoodSource):
    class reader(Reader):
        def snapshot_state(self, checkpoint_id: int) -> list[Split]:
            return [replace(split, position=0) for split in self.splits.values()]


class SavesWhatItHasFetched(GoodSource):
    """The position is that of a buffer, not of what was emitted."""

    class reader(Reader):
        def snapshot_state(self, checkpoint_id: int) -> list[Split]:
            return [replace(split, position=split.position + 1) for split in self.splits.values()]


class ForgetsSplitsOfReaders(GoodSource):
    class reader(Reader):
        def snapshot_state(self, checkpoint_id: int) -> list[Split]:
            return []


class ForgetsUnassignedSplits(GoodSource):
    class enumerator(Enumerator):
        def snapshot_state(self, checkpoint_id: int) -> Any:
            return []


class BeginsAnew(GoodSource):
    """A restored enumerator hands out all splits, whoever has some."""

    def restore_enumerator(self, context: Any, state: Any) -> Any:
        return self.create_enumerator(context)


class CannotRestore(GoodSource):
    def restore_enumerator(self, context: Any, state: Any) -> Any:
        raise NotImplementedError


class NeverTheSameOrder(GoodSource):
    class reader(Reader):
        def records_of(self, split: Split, count: int) -> list[Any]:
            return sorted(super().records_of(split, 12), reverse=bool(self.context.attempt_number))[:count]

    def create_reader(self, context: Any) -> Any:
        # as if the server gave them in another order whenever it is asked anew
        type(self).readers = getattr(type(self), "readers", 0) + 1  # type: ignore[attr-defined]
        context.attempt_number = type(self).readers % 2  # type: ignore[attr-defined]
        return super().create_reader(context)


class DropsWhatWasAcknowledged(GoodSource):
    """The outside forgets what is before a complete checkpoint, as a message queue does."""

    acknowledged: ClassVar[dict[str, int]] = {}

    class reader(Reader):
        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            DropsWhatWasAcknowledged.acknowledged.update(
                (split.split_id, split.position) for split in self.splits.values()
            )

        def records_of(self, split: Split, count: int) -> list[Any]:
            gone = DropsWhatWasAcknowledged.acknowledged.get(split.split_id, 0)
            return super().records_of(replace(split, position=max(split.position, gone)), count)

    def create_enumerator(self, context: Any) -> Any:
        self.acknowledged.clear()
        return super().create_enumerator(context)


class SkipsTheLast(GoodSource):
    class reader(Reader):
        def records_of(self, split: Split, count: int) -> list[Any]:
            return [record for record in super().records_of(split, count) if record != 211]


class GivesOneSplitTwice(GoodSource):
    def create_enumerator(self, context: Any) -> Any:
        return Enumerator(context, [*map(Split, self.data), Split("a")], self.bounded)


class TellsOnlyOneReaderOfTheEnd(GoodSource):
    class enumerator(Enumerator):
        def handle_split_request(self, subtask: int, host: str | None) -> None:
            if self.pending or subtask == 0:
                super().handle_split_request(subtask, host)


class AssignsAfterTheEnd(GoodSource):
    class enumerator(Enumerator):
        def handle_split_request(self, subtask: int, host: str | None) -> None:
            self.context.signal_no_more_splits(subtask)
            super().handle_split_request(subtask, host)


class NamesNoSplit(GoodSource):
    class reader(Reader):
        def poll_next(self, output: Any, max_records: int) -> InputStatus:
            output.collect("default", [1])
            return InputStatus.MORE_AVAILABLE


class Blocks(GoodSource):
    class reader(Reader):
        def poll_next(self, output: Any, max_records: int) -> InputStatus:
            status = super().poll_next(output, max_records)
            if status is InputStatus.NOTHING_AVAILABLE and self.asked:
                threading.Event().wait(1)
            return status


class KeepsBusy(GoodSource):
    class reader(Reader):
        def poll_next(self, output: Any, max_records: int) -> InputStatus:
            status = super().poll_next(output, max_records)
            return InputStatus.MORE_AVAILABLE if status is InputStatus.NOTHING_AVAILABLE else status


class EndsAlthoughUnbounded(GoodSource):
    class reader(Reader):
        def poll_next(self, output: Any, max_records: int) -> InputStatus:
            status = super().poll_next(output, max_records)
            return InputStatus.END_OF_INPUT if status is InputStatus.NOTHING_AVAILABLE else status


class LeavesAThread(GoodSource):
    class reader(Reader):
        def start(self) -> None:
            threading.Thread(target=threading.Event().wait, args=(60,), name="left", daemon=True).start()
            super().start()


class LeavesAFile(GoodSource):
    class reader(Reader):
        def start(self) -> None:
            OPEN.append(open("/dev/null"))  # noqa: SIM115, PTH123
            super().start()


OPEN: list[Any] = []


class HoldsALock(GoodSource):
    def __post_init__(self) -> None:
        self.lock = threading.Lock()


class ConnectsInItsConstructor(GoodSource):
    def __post_init__(self) -> None:
        OPEN.append(open("/dev/null"))  # noqa: SIM115, PTH123


class SplitWithALock(Split):
    def __post_init__(self) -> None:
        object.__setattr__(self, "lock", threading.Lock())


class HasSplitsThatCannotTravel(GoodSource):
    def create_enumerator(self, context: Any) -> Any:
        return Enumerator(context, map(SplitWithALock, self.data), self.bounded)


ANYWHERE = "test_killed_anywhere_it_goes_on_from_the_checkpoint"
ONCE = "test_every_record_is_read_once"
SHARED = "test_several_readers_share_the_records"
DESCRIPTION = "test_description_is_pickled_and_opens_nothing"
WAITS = "test_unbounded_source_waits_and_goes_on"
CLOSED = "test_closed_at_any_time_it_leaves_nothing_behind"


@pytest.mark.parametrize(
    ("source", "check", "says"),
    [
        (ForgetsPosition, ANYWHERE, "too often"),
        (SavesWhatItHasFetched, ANYWHERE, "lost"),
        (ForgetsSplitsOfReaders, ANYWHERE, "lost"),
        (ForgetsUnassignedSplits, ANYWHERE, "lost"),
        (ForgetsUnassignedSplits, "test_rescaled_again_and_again", "lost"),
        (BeginsAnew, ANYWHERE, "too often"),
        (NeverTheSameOrder, ANYWHERE, "another order"),
        (DropsWhatWasAcknowledged, "test_rewound_to_any_older_checkpoint", "lost"),
        (SkipsTheLast, ONCE, "1 lost, such as 211"),
        (GivesOneSplitTwice, SHARED, "12 too often"),
        (TellsOnlyOneReaderOfTheEnd, SHARED, "does not go on"),
        (AssignsAfterTheEnd, ONCE, "after it had told it that there are no more"),
        (NamesNoSplit, ONCE, "'default', which it does not have"),
        (HasSplitsThatCannotTravel, ONCE, "a split cannot be pickled"),
        (HoldsALock, DESCRIPTION, "cannot be pickled"),
        (ConnectsInItsConstructor, DESCRIPTION, "/dev/null"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_rule_that_is_broken(source: type[GoodSource], check: str, says: str) -> None:
    report = suite_of(source).run(check)
    assert isinstance(report.failed.get(check), ConformanceError), str(report)
    assert says in str(report.failed[check])


@pytest.mark.parametrize(
    ("source", "check", "says"),
    [
        (Blocks, WAITS, "did not return"),
        (Blocks, "test_without_records", "did not return"),
        (KeepsBusy, WAITS, "a core would be busy"),
        (EndsAlthoughUnbounded, WAITS, "has ended"),
    ],
)
def test_a_rule_for_unbounded_sources_that_is_broken(source: type[GoodSource], check: str, says: str) -> None:
    report = suite_of(source, bounded=False).run(check)
    assert isinstance(report.failed.get(check), ConformanceError), str(report)
    assert says in str(report.failed[check])


@pytest.mark.parametrize(("source", "what"), [(LeavesAThread, "thread 'left'"), (LeavesAFile, "/dev/null")])
def test_what_is_left_behind(source: type[GoodSource], what: str) -> None:
    report = suite_of(source).run(CLOSED)
    assert what in str(report.failed[CLOSED])
    while OPEN:
        OPEN.pop().close()


def test_what_a_source_raises_is_in_the_report() -> None:
    report = suite_of(CannotRestore).run(ANYWHERE)
    assert isinstance(report.failed[ANYWHERE], NotImplementedError)
    assert not report.conforms
    with pytest.raises(ConformanceError, match="0 passed, 1 failed"):
        report.raise_if_failed()


def test_a_source_that_cannot_go_back_is_not_killed() -> None:
    class Socket(GoodSource):
        def can_rewind(self) -> bool:
            return False

    report = suite_of(Socket).run(ANYWHERE, "test_rescaled_again_and_again")
    assert set(report.skipped.values()) == {"the source says that it cannot go back"}


def test_a_harness_is_rescaled_by_hand() -> None:
    with SourceHarness(GoodSource(), 2) as harness:
        harness.run_to(5, max_records=2)
        checkpoint, before = harness.snapshot(), harness.records
    with SourceHarness(GoodSource(), 1, restored=checkpoint) as harness:
        harness.run()
        assert sorted([*before, *harness.records]) == RECORDS
