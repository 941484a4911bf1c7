"""Source suite: the checks that every source must pass."""

from __future__ import annotations

import pickle
import random
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cloudpickle

from firesteel.common.typeinfo import TypeInformation
from firesteel.spi.source import Boundedness, InputStatus, Source
from firesteel.testing.conformance.differences import difference
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.open_resources import nothing_left_behind
from firesteel.testing.conformance.sample_values import draw_value, extremes
from firesteel.testing.conformance.source_harness import SourceHarness, SourceSnapshot
from firesteel.testing.conformance.source_jobs import run_source_job
from firesteel.testing.conformance.suite import ConformanceSuite

__all__ = ["SourceConformance"]

_IDLE_POLLS = 20
_DRAWN = 10
_SPINS = 200


class SourceConformance(ConformanceSuite):
    """Runs a source through reading, killing, rewinding and rescaling.

    A subclass makes a source over an outside with known records, at best several dozen in several splits::

        class TestMySource(SourceConformance):
            def create_source(self) -> Source: ...
            def expected_records(self) -> Sequence[Any]: ...

    A bounded source must give exactly those and end; an unbounded one must give them and go on.
    """

    parallelisms: Sequence[int] = (1, 2, 3)
    """How many readers are tried."""

    kills: int = 6
    """At how many places, spread over the records, the source is killed."""

    rewinds_to_older_checkpoints: bool = True
    """Whether the outside keeps what was read before the last complete checkpoint: not so for message queues."""

    position_types: Sequence[TypeInformation] = ()
    """Types whose values can be the bounds of splits, or positions in them; see :meth:`create_source_by`."""

    runs_jobs: bool = True
    """Whether whole jobs are run, in this process; a source made of what cannot be pickled by value cannot."""

    # -- defined by the connector's author -------------------------------------------------------------

    @abstractmethod
    def create_source(self) -> Source[Any]:
        """A source that reads :meth:`expected_records`; called once or more in a check."""
        raise NotImplementedError

    @abstractmethod
    def expected_records(self) -> Sequence[Any]:
        """All that is there to be read, in any order."""
        raise NotImplementedError

    def create_empty_source(self) -> Source[Any] | None:
        """A source like it over an outside without records; None leaves out the check."""
        return None

    def add_records(self) -> Sequence[Any] | None:
        """Adds records outside while the source is read and returns them; None leaves out the check."""
        return None

    def create_source_by(self, type_info: TypeInformation, values: Sequence[Any]) -> Source[Any]:
        """A source of records that are numbered from 0 on, and have these values, all different.

        It is to cut its splits by the values and to find its place again by them. Called for ``position_types``.
        """
        raise NotImplementedError

    def number_of(self, record: Any) -> int:
        """The number of a record of such a source."""
        return int(record)

    def can_hold(self, type_info: TypeInformation, value: Any) -> bool:
        """Whether the outside has a place for a value of one of the ``position_types``."""
        return True

    # -- checks ---------------------------------------------------------------------------------------

    def test_description_is_pickled_and_opens_nothing(self) -> None:
        """A source travels with the program; connections are for readers and enumerators."""
        with nothing_left_behind("Making the source", timeout_s=self.left_timeout_s):
            source = self.create_source()
            try:
                copy = pickle.loads(cloudpickle.dumps(source, 5))
            except Exception as error:
                raise ConformanceError(f"The source cannot be pickled: {error}") from error
            if copy.get_boundedness() is not source.get_boundedness():
                raise ConformanceError("A pickled copy of the source has another boundedness.")

    def test_every_record_is_read_once(self) -> None:
        """By one reader, one record at a time as well as many."""
        source = self.create_source()
        for max_records in (1000, 1):
            with self._harness(source) as harness:
                self._read_all(harness, max_records=max_records)
                self._check(harness.records, f"one reader that is asked for {max_records} at a time")

    def test_several_readers_share_the_records(self) -> None:
        """Whatever the parallelism, also where there are more readers than splits."""
        source = self.create_source()
        for parallelism in self.parallelisms:
            with self._harness(source, parallelism) as harness:
                self._read_all(harness)
                self._check(harness.records, f"{parallelism} readers")

    def test_killed_anywhere_it_goes_on_from_the_checkpoint(self) -> None:
        """Records from before the checkpoint do not come again, and those after it do, in the same order."""
        self._needs_rewind()
        source, expected = self.create_source(), len(self.expected_records())
        chunk = max(1, expected // (2 * self.kills))
        for parallelism in self.parallelisms[:2]:
            for kill in range(self.kills):
                with self._harness(source, parallelism) as harness:
                    harness.run_to(expected * kill // self.kills, chunk, self.timeout_s)
                    checkpoint, before = harness.snapshot(), harness.records
                    harness.poll_all(chunk)
                    harness.poll_all(chunk)
                    lost = _behind(harness)
                    if kill % 2:
                        # a task that was killed; else one whose end was not noticed yet
                        harness.close()
                    with self._harness(source, parallelism, checkpoint) as restored:
                        self._read_all(restored, len(before))
                        where = f"{parallelism} readers, killed after a checkpoint at {len(before)} records"
                        self._check([*before, *restored.records], where)
                        _check_order(lost, restored.by_split(), where)

    def test_rewound_to_any_older_checkpoint(self) -> None:
        """A checkpoint can be restored long after, when others are complete and all has been read."""
        self._needs_rewind()
        if not self.rewinds_to_older_checkpoints:
            self._skip("the outside does not keep what was read")
        source, expected = self.create_source(), len(self.expected_records())
        chunk = max(1, expected // (2 * self.kills))
        taken: list[tuple[SourceSnapshot, list[Any]]] = []
        with self._harness(source, 2) as harness:
            while harness.count < expected and len(taken) < 4 * self.kills:
                number = len(taken) + 1
                taken.append((harness.snapshot(number), harness.records))
                harness.run_to(harness.count + 1, chunk, self.timeout_s)
                harness.notify_checkpoint_complete(number)
            self._read_all(harness)
        for checkpoint, before in reversed(taken[:: max(1, len(taken) // 4)]):
            with self._harness(source, 2, checkpoint) as restored:
                self._read_all(restored, len(before))
                self._check([*before, *restored.records], f"rewound to the checkpoint at {len(before)} records")

    def test_rescaled_again_and_again(self) -> None:
        """Each time from a checkpoint, to more or fewer readers."""
        self._needs_rewind()
        source, expected = self.create_source(), self.expected_records()
        for seed in range(3):
            chance = random.Random(seed)
            checkpoint: SourceSnapshot | None = None
            seen: list[Any] = []
            for attempt in range(self.kills):
                parallelism = chance.choice(self.parallelisms)
                with self._harness(source, parallelism, checkpoint, attempt) as harness:
                    for _ in range(chance.randint(0, 3)):
                        harness.poll_all(chance.choice([1, 2, max(1, len(expected) // 8)]))
                    checkpoint = harness.snapshot(attempt + 1)
                    seen += harness.records
                    harness.poll_all(1)
            with self._harness(source, chance.choice(self.parallelisms), checkpoint, self.kills) as harness:
                self._read_all(harness, len(seen))
                self._check([*seen, *harness.records], f"rescaled {self.kills} times (seed {seed})")

    def test_any_value_bounds_splits_and_positions(self) -> None:
        """Whatever the values are that rows are cut and found by: none is in no split, or in two."""
        if not self.position_types:
            self._skip("position_types is empty")
        chance = random.Random(1)
        for type_info in self.position_types:
            values: list[Any] = []
            for value in (*extremes(type_info), *(draw_value(type_info, chance) for _ in range(_DRAWN))):
                if value not in values and self.can_hold(type_info, value):
                    values.append(value)
            source, numbers = self.create_source_by(type_info, values), range(len(values))
            for parallelism in self.parallelisms[:2]:
                with self._harness(source, parallelism) as harness:
                    harness.run(timeout_s=self.timeout_s)
                    self._check_numbers(harness.records, values, f"{type_info}, {parallelism} readers")
            for kill in range(0, len(numbers), max(1, len(numbers) // (2 * self.kills))):
                with self._harness(source) as harness:
                    harness.run_to(kill, 1, self.timeout_s)
                    checkpoint, before = harness.snapshot(), harness.records
                with self._harness(source, restored=checkpoint) as restored:
                    restored.run(timeout_s=self.timeout_s)
                    where = f"{type_info}, killed after {len(before)} records"
                    self._check_numbers([*before, *restored.records], values, where)

    def test_without_records(self) -> None:
        """A bounded source ends at once; an unbounded one waits, without being asked all the time."""
        source = self.create_empty_source()
        if source is None:
            self._skip("create_empty_source() gives none")
            return
        with self._harness(source, 2) as harness:
            if source.get_boundedness() is Boundedness.BOUNDED:
                harness.run(timeout_s=self.timeout_s)
            else:
                self._check_idle(harness)
            if harness.records:
                raise ConformanceError(f"There is nothing to read, but {harness.records[:3]!r} came.")

    def test_unbounded_source_waits_and_goes_on(self) -> None:
        """It neither ends nor keeps its task busy, and reads what comes later."""
        source = self.create_source()
        if source.get_boundedness() is Boundedness.BOUNDED:
            self._skip("the source is bounded")
        with self._harness(source, 2) as harness:
            self._read_all(harness)
            self._check_idle(harness)
            added = self.add_records()
            if added is None:
                return
            self._read_all(harness, -len(added))
            self._check(harness.records, "two readers, with records that came later", added)

    def test_closed_at_any_time_it_leaves_nothing_behind(self) -> None:
        """No thread and no connection, whether closed at once, half way or at the end."""
        source, expected = self.create_source(), len(self.expected_records())
        # what a library opens once and for good does not count
        with self._harness(source, 2) as harness:
            self._read_all(harness)
        for until in (0, expected // 2, expected):
            with nothing_left_behind(f"A source closed after {until} records", timeout_s=self.left_timeout_s):
                with self._harness(source, 2) as harness:
                    harness.run_to(until, max(1, expected // 8), self.timeout_s)

    def test_job_that_fails_and_restarts(self) -> None:
        """A whole job with checkpoints, with a function that fails on its way."""
        self._needs_rewind()
        self._run_job("pipelined")

    def test_job_in_epochs(self) -> None:
        """The same with readers that are only polled now and then."""
        self._needs_rewind()
        self._run_job("epochs")

    def test_job_in_batch(self) -> None:
        """Splits are all handed out before any is read."""
        if self.create_source().get_boundedness() is not Boundedness.BOUNDED:
            self._skip("the source is not bounded")
        self._run_job("batch")

    # -- how --------------------------------------------------------------------------------------------

    def _run_job(self, execution: str) -> None:
        if not self.runs_jobs:
            self._skip("runs_jobs is False")
        expected = self.expected_records()
        found = run_source_job(self.create_source(), len(expected), execution, self.timeout_s)
        self._check(found, f"a job ({execution})")

    @contextmanager
    def _harness(
        self, source: Source[Any], parallelism: int = 1, restored: SourceSnapshot | None = None, attempt: int = 0
    ) -> Iterator[SourceHarness]:
        with SourceHarness(
            source, parallelism, restored=restored, attempt=attempt, call_timeout_s=self.call_timeout_s
        ) as harness:
            yield harness

    def _needs_rewind(self) -> None:
        if not self.create_source().can_rewind():
            self._skip("the source says that it cannot go back")

    def _read_all(self, harness: SourceHarness, seen: int = 0, max_records: int = 100) -> None:
        """Reads to the end; or, of a source without one, all that is there, and looks whether more comes."""
        left = len(self.expected_records()) - seen
        bounded = harness.source.get_boundedness() is Boundedness.BOUNDED
        harness.run(
            until=None if bounded else lambda: harness.count >= left, max_records=max_records, timeout_s=self.timeout_s
        )
        if not bounded:
            for _ in range(_IDLE_POLLS):
                harness.poll_all(max_records)
                time.sleep(0.001)

    def _check(self, found: Sequence[Any], where: str, added: Sequence[Any] = ()) -> None:
        wrong = difference([*self.expected_records(), *added], found)
        if wrong is not None:
            raise ConformanceError(f"Not every record was read exactly once ({where}): {wrong}.")

    def _check_numbers(self, records: Sequence[Any], values: Sequence[Any], where: str) -> None:
        found = list(map(self.number_of, records))
        wrong = sorted(set(range(len(values))) ^ set(found)) or [n for n in set(found) if found.count(n) > 1]
        if wrong:
            raise ConformanceError(
                f"Not every record was read exactly once ({where}): record {wrong[0]}, whose value is "
                f"{values[wrong[0]]!r}, came {found.count(wrong[0])} times."
            )

    def _check_idle(self, harness: SourceHarness) -> None:
        """Nothing to read: readers say so instead of ending, and when to ask again, if at all."""
        busy = 0
        for _ in range(_SPINS):
            subtasks = [subtask for subtask in range(harness.parallelism) if not harness.ended[subtask]]
            statuses = [harness.poll(subtask) for subtask in subtasks]
            if any(ended and not harness.may_end(subtask) for subtask, ended in enumerate(harness.ended)):
                raise ConformanceError("A reader has ended although it was not told that there are no more splits.")
            now = time.monotonic()
            moments = [harness.readers[subtask].available_at() for subtask in subtasks if not harness.ended[subtask]]
            busy += InputStatus.MORE_AVAILABLE in statuses or any(
                moment is not None and moment <= now for moment in moments
            )
        if busy > _SPINS // 2:
            raise ConformanceError(
                f"With nothing to read, {busy} of {_SPINS} polls said that there is more now: a core would be busy "
                "asking. Return NOTHING_AVAILABLE, and say in available_at() when to ask again."
            )


def _behind(harness: SourceHarness) -> dict[str, list[Any]]:
    """What came of each split after the checkpoint."""
    return {
        split_id: records[harness.at_snapshot.get(split_id, 0) :] for split_id, records in harness.by_split().items()
    }


def _check_order(lost: dict[str, list[Any]], again: dict[str, list[Any]], where: str) -> None:
    """What was lost with a task comes again as it was: one of the two begins with the other."""
    for split_id, records in lost.items():
        repeated = again.get(split_id, [])
        length = min(len(records), len(repeated))
        if records[:length] != repeated[:length]:
            raise ConformanceError(
                f"Split {split_id!r} was read in another order after the restart ({where}): {repeated[:5]!r}, where it "
                f"was {records[:5]!r} before. Functions that depend on the order give other results then."
            )
