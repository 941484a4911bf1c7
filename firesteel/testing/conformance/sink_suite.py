"""Sink suite: the checks that every sink must pass."""

from __future__ import annotations

import pickle
import time
import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import cloudpickle

from firesteel.process import fault_points
from firesteel.spi.sink import DeliveryGuarantee, Sink
from firesteel.testing.conformance.differences import difference, missing_or_foreign
from firesteel.testing.conformance.errors import ConformanceError
from firesteel.testing.conformance.guarded_thread import GuardedThread
from firesteel.testing.conformance.kill_points import KillPoint
from firesteel.testing.conformance.killed_process import write_and_kill
from firesteel.testing.conformance.open_resources import nothing_left_behind
from firesteel.testing.conformance.sink_attempt import SinkAttempt, StandaloneContext, copy_of
from firesteel.testing.conformance.sink_jobs import run_sink_job
from firesteel.testing.conformance.suite import ConformanceSuite
from firesteel.testing.snapshots import HarnessSnapshot

__all__ = ["SinkConformance"]

_FIRST, _SECOND, _ALL = 10, 20, 30
"""How many records there are up to the first checkpoint, up to the second, and at the end."""


class SinkConformance(ConformanceSuite):
    """Runs a sink through checkpoints, failures at every step, and rescaling, and looks at it from outside.

    A subclass makes a sink over an empty outside, and lists what can be seen there::

        class TestMySink(SinkConformance):
            def set_up(self) -> None: ...                        # an empty outside
            def create_sink(self) -> Sink: ...
            def visible_records(self) -> Sequence[Any]: ...

    What must be seen after a failure is what the sink promises: with EXACTLY_ONCE every record once, with
    AT_LEAST_ONCE every record, with NONE no record that was never written.
    """

    parallelisms: Sequence[int] = (1, 2, 3)
    """How many writers are tried."""

    kill_points: Sequence[KillPoint] = tuple(KillPoint)
    """Where an attempt is killed; fewer where each takes seconds."""

    visible_after_checkpoint: bool = True
    """Whether what was written is seen once a checkpoint is complete, and not only at the end."""

    survives_zombies: bool = True
    """Whether a new attempt can go on while a task of the one before has not noticed that it is dead. Not so where
    the outside waits for the old one, for instance for its locks, until its connection breaks."""

    outside_is_shared: bool = True
    """Whether another process on this machine can write to the outside of this check."""

    settle_s: float = 5.0
    """How long the outside may take to show what was committed."""

    runs_jobs: bool = True
    """Whether whole jobs are run, in this process."""

    # -- defined by the connector's author -------------------------------------------------------------

    @abstractmethod
    def create_sink(self) -> Sink:
        """A sink that writes to the outside of this check; called once or more in a check."""
        raise NotImplementedError

    @abstractmethod
    def visible_records(self) -> Sequence[Any]:
        """What a reader sees there now, in any order, as ``create_record`` made it."""
        raise NotImplementedError

    def create_record(self, number: int) -> Any:
        """The record with this number: different for each, and picklable."""
        return f"record-{number}"

    def create_other_sink(self) -> Sink:
        """A sink of another job that writes to the same place; where jobs must be distinguished by a name, with one of
        its own."""
        return self.create_sink()

    def refused_records(self) -> Sequence[Any]:
        """Records that the outside has no place for, as different as can be; none leaves out the check."""
        return ()

    # -- checks ---------------------------------------------------------------------------------------

    def test_description_is_pickled_and_opens_nothing(self) -> None:
        """A sink travels with the program; connections are for writers and committers."""
        with nothing_left_behind("Making the sink", timeout_s=self.left_timeout_s):
            sink = self.create_sink()
            try:
                copy = pickle.loads(cloudpickle.dumps(sink, 5))
            except Exception as error:
                raise ConformanceError(f"The sink cannot be pickled: {error}") from error
            if copy.get_delivery_guarantee() is not sink.get_delivery_guarantee():
                raise ConformanceError("A pickled copy of the sink gives another guarantee.")

    def test_all_is_visible_at_the_end(self) -> None:
        """Without checkpoints and failures: every record once, with any guarantee."""
        written: list[Any] = []
        for parallelism in self.parallelisms:
            records = self._records(len(written), len(written) + 10)
            with self._attempt(self.create_sink(), parallelism, checkpointing=False) as attempt:
                attempt.write(records)
                attempt.finish()
                attempt.close()
            written += records
            self._check_all(written, f"{parallelism} writers, no failure")

    def test_nothing_is_visible_before_its_commit(self) -> None:
        """What was written, flushed and prepared is still to be taken back if the checkpoint fails."""
        sink = self.create_sink()
        if sink.create_committer() is None:
            self._skip("the sink has no committer: it writes in one phase")
        with self._attempt(sink, 2) as attempt:
            attempt.write(self._records(0, _FIRST))
            self._check_invisible("while it was written")
            attempt.snapshot(1)
            self._check_invisible("when it was prepared, before its checkpoint was complete")

    def test_visible_after_each_checkpoint(self) -> None:
        """Each complete checkpoint makes visible what was written before it."""
        if not self.visible_after_checkpoint:
            self._skip("visible_after_checkpoint is False")
        with self._attempt(self.create_sink(), 2) as attempt:
            for checkpoint in (1, 2, 3):
                attempt.write(self._records((checkpoint - 1) * _FIRST, checkpoint * _FIRST))
                attempt.snapshot(checkpoint)
                attempt.complete(checkpoint)
                self._check_all(self._records(0, checkpoint * _FIRST), f"checkpoint {checkpoint} complete")
            attempt.finish_with_checkpoint(4)
        self._check_all(self._records(0, 3 * _FIRST), "the job has ended")

    def test_aborted_checkpoint_goes_with_the_next(self) -> None:
        """What was prepared for a checkpoint that was never complete must not be forgotten."""
        with self._attempt(self.create_sink(), 2) as attempt:
            attempt.write(self._records(0, _FIRST))
            attempt.snapshot(1)
            attempt.abort(1)
            attempt.write(self._records(_FIRST, _SECOND))
            attempt.snapshot(2)
            attempt.complete(2)
            attempt.finish_with_checkpoint(3)
        self._check_all(self._records(0, _SECOND), "the first of two checkpoints aborted")

    def test_without_records(self) -> None:
        """Checkpoints, a restart and an end without a record leave nothing to be seen."""
        sink, job_id = self.create_sink(), uuid.uuid4().hex
        with self._attempt(sink, 2, job_id) as attempt:
            checkpoint = attempt.snapshot(1)
            attempt.complete(1)
        with self._attempt(sink, 1, job_id, checkpoint, 1) as attempt:
            attempt.snapshot(2)
            attempt.complete(2)
            attempt.finish_with_checkpoint(3)
        self._check_invisible("although nothing was written")

    def test_killed_at_any_step(self) -> None:
        """The job continues from its last complete checkpoint, and closes what was left of the previous attempt."""
        for number, point in enumerate(self.kill_points):
            self._play(point, number * _ALL, zombie=False)

    def test_killed_without_being_closed(self) -> None:
        """Like a process that was killed; it comes round when the next attempt has ended."""
        if not self.survives_zombies:
            self._skip("survives_zombies is False")
        with nothing_left_behind("Closing what a later attempt has replaced", tolerated_files=2), ExitStack() as late:
            for number, point in enumerate(self.kill_points):
                late.callback(_close_late, self._play(point, number * _ALL, zombie=True))
        self._check(
            self._records(0, len(self.kill_points) * _ALL), "killed, and closed when the next attempt had ended"
        )

    def test_killed_with_its_process(self) -> None:
        """Nothing is closed, nothing flushed, all connections break: right before and right after a commit."""
        if not self.outside_is_shared:
            self._skip("outside_is_shared is False")
        for number, point in enumerate(("sink.commit", "sink.committed")):
            start, sink, job_id = number * _ALL, self.create_sink(), uuid.uuid4().hex
            checkpoint = write_and_kill(sink, self._records(start, start + _FIRST), job_id, point, self.timeout_s)
            where = f"its process killed at {point}"
            self._go_on(sink, job_id, checkpoint, 1, 2, start + _FIRST, start + _ALL)
            self._check(self._records(0, start + _ALL), where)

    def test_killed_while_it_is_restored(self) -> None:
        """Again and again from the same checkpoint, before and after it has committed what was in it."""
        sink, job_id = self.create_sink(), uuid.uuid4().hex
        with self._attempt(sink, 2, job_id) as attempt:
            attempt.write(self._records(0, _FIRST))
            checkpoint = attempt.snapshot(1)
        for number, point in enumerate(("sink.commit", "sink.committed", "", ""), 1):
            fault_points.arm(f"{point}=raise" if point else "")
            try:
                with suppress(OSError), self._attempt(sink, 2, job_id, checkpoint, number) as attempt:
                    attempt.write(self._records(_FIRST, _FIRST + 5))
            finally:
                fault_points.arm("")
        self._go_on(sink, job_id, checkpoint, 5, 2, _FIRST, _ALL)
        self._check(self._records(0, _ALL), "restored five times from one checkpoint")

    def test_rescaled(self) -> None:
        """What one writer has prepared, another one of more or fewer commits."""
        start = 0
        for before, after in ((2, 1), (1, 3), (3, 2)):
            sink, job_id = self.create_sink(), uuid.uuid4().hex
            with self._attempt(sink, before, job_id) as attempt:
                attempt.write(self._records(start, start + _FIRST))
                attempt.snapshot(1)
                attempt.complete(1)
                attempt.write(self._records(start + _FIRST, start + _SECOND))
                checkpoint = attempt.snapshot(2)
            self._go_on(sink, job_id, checkpoint, 1, after, start + _SECOND, start + _ALL)
            start += _ALL
            self._check(self._records(0, start), f"{after} writers where {before} had prepared")

    def test_committed_in_another_process(self) -> None:
        """By who has nothing but the pickled sink and the pickled committables; and again, as after a failure."""
        sink = self.create_sink()
        if sink.create_committer() is None:
            self._skip("the sink has no committer: it writes in one phase")
        task, elsewhere = GuardedThread(self.timeout_s), GuardedThread(self.timeout_s)
        try:
            writer = task.call("create_writer()", copy_of(sink).create_writer, StandaloneContext())
            task.call("write_batch()", writer.write_batch, self._records(0, _FIRST), None)
            task.call("flush()", writer.flush, True)
            committables = task.call("prepare_commit()", writer.prepare_commit)
            try:
                pickled = cloudpickle.dumps(committables, 5)
                pickle.loads(pickled)
            except Exception as error:
                raise ConformanceError(f"What is to be committed cannot be pickled: {error}") from error
            task.call("SinkWriter.close()", writer.close)
            for name in ("commit", "recommit", "recommit"):
                committer = elsewhere.call("create_committer()", copy_of(sink).create_committer)
                try:
                    elsewhere.call(f"{name}()", getattr(committer, name), pickle.loads(pickled))
                finally:
                    elsewhere.call("Committer.close()", committer.close)
                self._check_all(self._records(0, _FIRST), f"{name}() elsewhere, after the writer was closed")
        finally:
            task.close()
            elsewhere.close()

    def test_what_is_refused_is_refused_before_its_checkpoint(self) -> None:
        """A job can leave such a record out and go on; one that has it in its checkpoint can go on from none."""
        refused = self.refused_records()
        if not refused:
            self._skip("refused_records() gives none")
        for number, record in enumerate(refused):
            start, sink, job_id = number * _ALL, self.create_sink(), uuid.uuid4().hex
            checkpoint = None
            with self._attempt(sink, 2, job_id) as attempt:
                attempt.write(self._records(start, start + _FIRST))
                checkpoint = attempt.snapshot(1)
                attempt.complete(1)
                was_refused = self._refuses(attempt, record)
                if was_refused:
                    _close_late(attempt)
            if not was_refused:
                raise ConformanceError(f"{record!r:.200} is to be refused, but was written.")
            self._go_on(sink, job_id, checkpoint, 1, 2, start + _FIRST, start + _ALL)
            self._check(self._records(0, start + _ALL), f"without the record {record!r:.200}, which was refused")

    def test_another_job_is_left_alone(self) -> None:
        """A job that starts or restarts tidies up behind itself, not behind others that write to the same place."""
        with self._attempt(self.create_other_sink(), 1) as neighbour:
            neighbour.write(self._records(0, _FIRST))
            neighbour.snapshot(1)
            sink, job_id = self.create_sink(), uuid.uuid4().hex
            with self._attempt(sink, 1, job_id) as attempt:
                attempt.write(self._records(_FIRST, _SECOND))
                checkpoint = attempt.snapshot(1)
            self._go_on(sink, job_id, checkpoint, 1, 1, _SECOND, _ALL)
            neighbour.complete(1)
            neighbour.finish_with_checkpoint(2)
        self._check(self._records(0, _ALL), "two jobs, one of which was restarted")

    def test_closed_at_any_time_it_leaves_nothing_behind(self) -> None:
        """No thread and no connection."""
        number = 0
        for warm_up in (True, False):
            for stop in ("at once", "while writing", "when prepared", "at the end"):
                files = 100 if warm_up else 0
                with nothing_left_behind(f"A sink closed {stop}", tolerated_files=files, timeout_s=self.left_timeout_s):
                    with self._attempt(self.create_sink(), 2) as attempt:
                        if stop != "at once":
                            attempt.write(self._records(number, number + 6))
                        if stop == "when prepared":
                            attempt.snapshot(1)
                        if stop == "at the end":
                            attempt.finish_with_checkpoint(1)
                number += 6

    def test_job_that_fails_and_restarts(self) -> None:
        """A whole job with checkpoints: a function fails on its way, and so does a commit."""
        self._run_job("pipelined")

    def test_job_in_epochs(self) -> None:
        """The same where commits are made by another process than writes."""
        self._run_job("epochs")

    def test_job_in_batch(self) -> None:
        """Without checkpoints: everything is committed at the end, once, although tasks have failed."""
        self._run_job("batch")

    # -- how --------------------------------------------------------------------------------------------

    def _run_job(self, execution: str) -> None:
        if not self.runs_jobs:
            self._skip("runs_jobs is False")
        records = self._records(0, 60)
        run_sink_job(self.create_sink(), records, execution, self.timeout_s)
        self._check(records, f"a job ({execution}) that has failed on its way")

    def _play(self, point: KillPoint, start: int, *, zombie: bool) -> SinkAttempt:
        """An attempt that is killed somewhere, and one that continues to the end; with records of its own."""
        sink, job_id = self.create_sink(), uuid.uuid4().hex
        with self._attempt(sink, 2, job_id, closes=not zombie) as attempt:
            attempt.write(self._records(start, start + _FIRST))
            first = attempt.snapshot(1)
            attempt.complete(1)
            attempt.write(self._records(start + _FIRST, start + _SECOND))
            checkpoint = point.reach(attempt, first)
            if point is KillPoint.WRITING_ON:
                attempt.write(self._records(start + _SECOND, start + _SECOND + 5))
        position = start + (_FIRST if checkpoint is first else _SECOND)
        try:
            self._go_on(sink, job_id, checkpoint, 1, 2, position, start + _ALL)
            self._check(self._records(0, start + _ALL), f"killed {point.value}")
        except BaseException:
            _close_late(attempt)
            raise
        return attempt

    def _refuses(self, attempt: SinkAttempt, record: Any) -> bool:
        """Whether a record fails the task that writes it; a ConformanceError if it only fails the commit."""
        try:
            attempt.write([record])
            attempt.snapshot(2)
        except ConformanceError:
            raise
        except Exception:  # noqa: BLE001 - however it is refused
            return True
        try:
            attempt.complete(2)
        except Exception as error:
            raise ConformanceError(
                f"{record!r:.200} was refused when it was committed: {error}. The checkpoint has it, and each time the "
                "job goes on from there it fails again. Try what a commit does before prepare_commit() returns."
            ) from error
        return False

    def _go_on(
        self,
        sink: Sink,
        job_id: str,
        checkpoint: HarnessSnapshot,
        number: int,
        parallelism: int,
        position: int,
        end: int,
    ) -> None:
        """An attempt from a checkpoint, which is at a position in the records, to their end."""
        with self._attempt(sink, parallelism, job_id, checkpoint, number) as attempt:
            middle = (position + end) // 2
            attempt.write(self._records(position, middle))
            attempt.snapshot(3)
            attempt.complete(3)
            attempt.write(self._records(middle, end))
            attempt.finish_with_checkpoint(4)

    @contextmanager
    def _attempt(
        self,
        sink: Sink,
        parallelism: int,
        job_id: str | None = None,
        restored: HarnessSnapshot | None = None,
        number: int = 0,
        checkpointing: bool = True,
        closes: bool = True,
    ) -> Iterator[SinkAttempt]:
        attempt = SinkAttempt(
            sink,
            parallelism,
            job_id=job_id or uuid.uuid4().hex,
            number=number,
            restored=restored,
            checkpointing=checkpointing,
            timeout_s=self.timeout_s,
        )
        try:
            yield attempt
        except BaseException:
            _close_late(attempt)
            raise
        if closes:
            attempt.close()

    def _records(self, start: int, stop: int) -> list[Any]:
        return [self.create_record(number) for number in range(start, stop)]

    def _check_invisible(self, when: str) -> None:
        found = self.visible_records()
        if found:
            raise ConformanceError(
                f"{len(found)} records were visible {when}, such as {found[0]!r}. If the job failed now they would be "
                "written again."
            )

    def _check_all(self, expected: Sequence[Any], where: str) -> None:
        """Every record once: nothing has failed."""
        wrong = difference(expected, self._settled(len(expected)))
        if wrong is not None:
            raise ConformanceError(f"Not every record was written exactly once ({where}): {wrong}.")

    def _check(self, expected: Sequence[Any], where: str) -> None:
        """What the sink promises, after a failure."""
        guarantee = self.create_sink().get_delivery_guarantee()
        found = self._settled(len(expected))
        if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            wrong = difference(expected, found)
        elif guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            wrong = missing_or_foreign(expected, found)
        else:
            wrong = missing_or_foreign(expected, [*expected, *found])
        if wrong is not None:
            raise ConformanceError(f"The sink promises {guarantee.value} but, {where}, of its records were {wrong}.")

    def _settled(self, count: int) -> Sequence[Any]:
        """What is visible, once there are so many records or the outside has had its time."""
        deadline = time.monotonic() + self.settle_s
        while True:
            found = self.visible_records()
            if len(found) >= count or time.monotonic() > deadline:
                return found
            time.sleep(0.02)


def _close_late(attempt: SinkAttempt) -> None:
    """Closes an attempt after which another one has begun: it may well find that it has lost everything."""
    with suppress(Exception):
        attempt.close()
