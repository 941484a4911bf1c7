"""Sinks that break one rule each: the suite finds every one of them, by the check that is about it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter
from firesteel.testing.conformance import ConformanceError, SinkConformance


class Table:
    """An outside: rows that are seen, and transactions that are prepared, by id."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.prepared: dict[str, list[Any]] = {}
        self.committed: set[str] = set()


TABLES: dict[str, Table] = {}

REFUSED = ("", None)


def check(values: Sequence[Any]) -> None:
    if any(value in REFUSED for value in values):
        raise ValueError("there is no place for it")


class Writer(SinkWriter[str]):
    def __init__(self, sink: GoodSink, context: Any, restored: Sequence[str] = ()) -> None:
        self.sink = sink
        self.context = context
        self.table = sink.table
        self.buffer: list[Any] = []
        self.name = f"{context.sink_id}/{context.attempt_id}/{context.subtask_index}/{uuid.uuid4().hex}"
        self.number = 0
        self.ready: list[str] = []
        self.uncommitted: list[str] = []
        if context.subtask_index == 0:
            self.tidy_up(set(restored))

    def tidy_up(self, keep: set[str]) -> None:
        for name in list(self.table.prepared):
            sink_id, attempt_id, *_ = name.split("/")
            if sink_id == self.context.sink_id and attempt_id != self.context.attempt_id and name not in keep:
                del self.table.prepared[name]

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        check(values)
        self.buffer += values

    def flush(self, end_of_input: bool) -> None:
        if self.buffer:
            name = f"{self.name}/{self.number}"
            self.number += 1
            self.table.prepared[name], self.buffer = self.buffer, []
            self.ready.append(name)

    def prepare_commit(self) -> list[str]:
        ready, self.ready = self.ready, []
        self.uncommitted += ready
        return ready

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        return self.uncommitted

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.uncommitted = []


class TableCommitter(Committer[str]):
    def __init__(self, sink: GoodSink) -> None:
        self.table = sink.table

    def commit(self, committables: Sequence[str]) -> None:
        for name in committables:
            if name not in self.table.committed:
                self.table.committed.add(name)
                self.table.rows += self.table.prepared.pop(name)


class GoodSink(Sink):
    """Two phases, by the rules."""

    shares_writer_state = True
    writer = Writer
    committer: type[Committer[Any]] | None = TableCommitter
    guarantee = DeliveryGuarantee.EXACTLY_ONCE

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def table(self) -> Table:
        return TABLES[self.key]

    def create_writer(self, context: Any) -> Any:
        return self.writer(self, context)

    def restore_writer(self, context: Any, state: list[Any]) -> Any:
        return self.writer(self, context, state)

    def create_committer(self) -> Any:
        return None if self.committer is None else self.committer(self)  # type: ignore[call-arg]

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        return self.guarantee


def suite_of(sink: type[GoodSink]) -> SinkConformance:
    class Suite(SinkConformance):
        settle_s = 0
        timeout_s = 20
        outside_is_shared = False

        def set_up(self) -> None:
            self.key = uuid.uuid4().hex
            TABLES[self.key] = Table()

        def tear_down(self) -> None:
            del TABLES[self.key]

        def create_sink(self) -> Sink:
            return sink(self.key)

        def visible_records(self) -> list[Any]:
            return list(TABLES[self.key].rows)

        def refused_records(self) -> Sequence[Any]:
            return REFUSED

    return Suite()


class AppendingWriter(Writer):
    """Writes at once."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        check(values)
        self.table.rows += values


class Appending(GoodSink):
    writer = AppendingWriter
    committer = None
    guarantee = DeliveryGuarantee.AT_LEAST_ONCE


class Buffering(Appending):
    """Writes when it is flushed."""

    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            self.table.rows += self.buffer
            self.buffer = []


class BestEffort(Appending):
    guarantee = DeliveryGuarantee.NONE

    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            if end_of_input:
                self.table.rows += self.buffer


class Upserting(Appending):
    """A record replaces its predecessor: repeated or not, it is seen once."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE

    class writer(Writer):
        def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
            check(values)
            self.table.rows += [value for value in values if value not in self.table.rows]


@pytest.mark.parametrize("sink", [GoodSink, Appending, Buffering, BestEffort, Upserting])
def test_a_sink_by_the_rules_conforms(sink: type[GoodSink]) -> None:
    suite = suite_of(sink)
    if sink is BestEffort:
        suite.visible_after_checkpoint = False
        checks = ["test_all_is_visible_at_the_end", "test_killed_at_any_step", "test_without_records"]
        suite.run(*checks).raise_if_failed()
        return
    report = suite.run()
    report.raise_if_failed()
    one_phase = {"test_nothing_is_visible_before_its_commit", "test_committed_in_another_process"}
    expected = {"test_killed_with_its_process"} | (set() if sink is GoodSink else one_phase)
    assert set(report.skipped) == expected


class PromisesTooMuch(Appending):
    """Repeats records after a failure, but says that it does not."""

    guarantee = DeliveryGuarantee.EXACTLY_ONCE


class NeverFlushes(Appending):
    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            if end_of_input:
                self.table.rows += self.buffer


class LosesTheEnd(Appending):
    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            if not end_of_input:
                self.table.rows += self.buffer
                self.buffer = []


class IsSeenTooEarly(GoodSink):
    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            self.table.rows += self.buffer
            super().flush(end_of_input)

    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            pass


class CommitsTwice(GoodSink):
    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            for name in committables:
                self.table.rows += self.table.prepared[name]


class FailsToCommitTwice(GoodSink):
    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            for name in committables:
                self.table.rows += self.table.prepared.pop(name)


class CommitsOnlyItsOwn(GoodSink):
    """Keeps what it has prepared in the writer's memory: gone with it."""

    class writer(Writer):
        def close(self) -> None:
            for name in self.uncommitted:
                self.table.prepared.pop(name, None)

    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            super().commit([name for name in committables if name in self.table.prepared])


class ForgetsAbortedCheckpoints(GoodSink):
    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            for name in self.uncommitted:
                self.table.prepared[name] = []
            super().flush(end_of_input)


class TidiesUpWhatIsRestored(GoodSink):
    class writer(Writer):
        def tidy_up(self, keep: set[str]) -> None:
            super().tidy_up(set())

    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            super().commit([name for name in committables if name in self.table.prepared])


class TidiesUpBehindOthers(GoodSink):
    class writer(Writer):
        def tidy_up(self, keep: set[str]) -> None:
            for name in list(self.table.prepared):
                if name not in keep:
                    del self.table.prepared[name]

    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            super().commit([name for name in committables if name in self.table.prepared])


class CommitsWhenClosed(GoodSink):
    class writer(Writer):
        def close(self) -> None:
            self.table.rows += self.buffer


class UsesNamesAgain(GoodSink):
    """Of another attempt: what is under the name was committed, so the new one is taken for done."""

    class writer(Writer):
        def __init__(self, sink: GoodSink, context: Any, restored: Sequence[str] = ()) -> None:
            super().__init__(sink, context, restored)
            self.name = f"{context.sink_id}/x/{context.subtask_index}"

        def tidy_up(self, keep: set[str]) -> None:
            pass


class UsesNamesAgainWithinAnAttempt(GoodSink):
    """A task that is loaded anew, or run a second time, counts from 0 again."""

    class writer(Writer):
        def __init__(self, sink: GoodSink, context: Any, restored: Sequence[str] = ()) -> None:
            super().__init__(sink, context, restored)
            self.name = f"{context.sink_id}/{context.attempt_id}/{context.subtask_index}"


class RemovesItsOutputWhenClosedLate(GoodSink):
    class writer(Writer):
        def close(self) -> None:
            if self.buffer or self.uncommitted:
                self.table.rows = [row for row in self.table.rows if row not in self.buffer]


class WritesHeaders(GoodSink):
    class writer(Writer):
        def __init__(self, sink: GoodSink, context: Any, restored: Sequence[str] = ()) -> None:
            super().__init__(sink, context, restored)
            self.table.rows.append("header")


class LeavesAThread(GoodSink):
    class writer(Writer):
        def flush(self, end_of_input: bool) -> None:
            threading.Thread(target=threading.Event().wait, args=(60,), name="left", daemon=True).start()
            super().flush(end_of_input)


class HasCommittablesThatCannotTravel(GoodSink):
    class writer(Writer):
        def prepare_commit(self) -> list[Any]:
            return [threading.Lock()]


class RefusesAtTheCommit(GoodSink):
    class writer(Writer):
        def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
            self.buffer += values

    class committer(TableCommitter):
        def commit(self, committables: Sequence[str]) -> None:
            for name in committables:
                check(self.table.prepared.get(name, ()))
            super().commit(committables)


class TakesAnything(GoodSink):
    class writer(Writer):
        def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
            self.buffer += values


class HoldsALock(GoodSink):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.lock = threading.Lock()


KILLED = "test_killed_at_any_step"
REFUSES = "test_what_is_refused_is_refused_before_its_checkpoint"
ZOMBIE = "test_killed_without_being_closed"
ELSEWHERE = "test_committed_in_another_process"


@pytest.mark.parametrize(
    ("sink", "check", "says"),
    [
        (PromisesTooMuch, KILLED, "promises exactly-once but, killed while writing, of its records were 10 too often"),
        (CommitsTwice, "test_job_that_fails_and_restarts", "too often"),
        (NeverFlushes, KILLED, "lost"),
        (LosesTheEnd, "test_all_is_visible_at_the_end", "lost"),
        (IsSeenTooEarly, "test_nothing_is_visible_before_its_commit", "before its checkpoint was complete"),
        (CommitsTwice, KILLED, "too often"),
        (CommitsTwice, ELSEWHERE, "too often"),
        (CommitsOnlyItsOwn, ELSEWHERE, "lost"),
        (CommitsOnlyItsOwn, "test_rescaled", "lost"),
        (ForgetsAbortedCheckpoints, "test_aborted_checkpoint_goes_with_the_next", "lost"),
        (TidiesUpWhatIsRestored, "test_rescaled", "lost"),
        (TidiesUpBehindOthers, "test_another_job_is_left_alone", "lost"),
        (CommitsWhenClosed, KILLED, "too often"),
        (UsesNamesAgain, KILLED, "lost"),
        (UsesNamesAgainWithinAnAttempt, "test_job_in_epochs", "lost"),
        (RemovesItsOutputWhenClosedLate, ZOMBIE, "killed, and closed when the next attempt had ended"),
        (WritesHeaders, "test_without_records", "although nothing was written"),
        (RefusesAtTheCommit, REFUSES, "refused when it was committed: there is no place for it"),
        (TakesAnything, REFUSES, "'' is to be refused, but was written"),
        (HasCommittablesThatCannotTravel, ELSEWHERE, "cannot be pickled"),
        (HoldsALock, "test_description_is_pickled_and_opens_nothing", "cannot be pickled"),
    ],
)
def test_a_rule_that_is_broken(sink: type[GoodSink], check: str, says: str) -> None:
    report = suite_of(sink).run(check)
    assert isinstance(report.failed.get(check), ConformanceError), str(report)
    assert says in str(report.failed[check])


@pytest.mark.parametrize("check", [KILLED, ELSEWHERE, "test_killed_while_it_is_restored"])
def test_a_commit_that_raises_the_second_time(check: str) -> None:
    report = suite_of(FailsToCommitTwice).run(check)
    assert isinstance(report.failed[check], KeyError)


def test_a_thread_that_is_left_behind() -> None:
    suite = suite_of(LeavesAThread)
    suite.left_timeout_s = 0.05
    check = "test_closed_at_any_time_it_leaves_nothing_behind"
    assert "thread 'left'" in str(suite.run(check).failed[check])
