"""The host of epochs with a real JobMaster and a runner that runs nothing: it does what a list says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.common.errors import JobCancelledError, JobExecutionError
from firesteel.jobmaster.model.events import MessageReceived
from firesteel.process import fault_points
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.messages import (
    AddSplits,
    Deploy,
    Heartbeat,
    NoMoreSplits,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    TaskStateChanged,
    TriggerCheckpoint,
)
from firesteel.testing import FakeClock, eventually
from tests.support.epochs.scripted import DEADLINE_S, Epoch, Fails, RecordingSink, ScriptedJob, Waits, committed

RESTARTS = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"}
ENDED = Epoch(ended=True)


@pytest.fixture(autouse=True)
def _nothing_committed() -> Iterator[None]:
    committed.clear()
    RecordingSink.failures = 0
    yield
    fault_points.arm("")


def kinds(messages: list[Any]) -> list[type]:
    return [type(message) for message in messages]


def restored(command: Any) -> int | None:
    return None if command.restore is None else command.restore.checkpoint_id


class TestEpochs:
    def test_a_job_runs_epoch_after_epoch_until_its_tasks_have_ended(self) -> None:
        job = ScriptedJob(Epoch(records=5), Epoch(records=5), ENDED).start()
        job.result()
        assert job.runner.status() is JobStatus.FINISHED
        assert [run.epoch for run in job.stages.runs] == [1, 2, 3]
        assert job.runner.checkpoint_statistics()["counts"]["completed"] == 3
        assert job.stages.closed == 1

    def test_every_task_gets_an_order_with_the_trigger_at_its_end(self) -> None:
        job = ScriptedJob(ENDED, parallelism=3).start()
        job.result()
        commands = job.stages.runs[0].commands
        assert len(commands) == 6, "more tasks than this machine may have cores"
        for task, command in commands.items():
            trigger = command.messages[-1]
            assert isinstance(trigger, TriggerCheckpoint)
            assert trigger.tasks == (task,)
            assert (command.epoch, command.version, command.is_restorable) == (1, None, True)

    def test_the_state_is_that_of_the_last_epoch_and_can_be_loaded_from_its_checkpoint(self) -> None:
        job = ScriptedJob(Epoch(records=1), Epoch(records=1), ENDED).start()
        job.result()
        commands = [job.stages.commands(run, vertex=1) for run in range(3)]
        assert [command.version for command in commands] == [None, 1, 2]
        assert [restored(command) for command in commands] == [None, 1, 2]
        assert all(command.is_restorable for command in commands)
        assert all(command.restore.reusable for command in commands[1:])

    def test_readers_are_told_what_the_enumerator_gives_them_and_that_there_is_no_more_each_time(self) -> None:
        job = ScriptedJob(Epoch(requests=1), Epoch(records=1), ENDED).start()
        job.result()
        assert kinds(job.stages.said(0)) == [Deploy, TriggerCheckpoint]
        assert kinds(job.stages.said(1)) == [
            Deploy,
            AddSplits,
            NoMoreSplits,
            NotifyCheckpointComplete,
            TriggerCheckpoint,
        ]
        assert kinds(job.stages.said(2)) == [Deploy, NoMoreSplits, NotifyCheckpointComplete, TriggerCheckpoint]
        assert kinds(job.stages.said(1, vertex=1)) == [Deploy, NotifyCheckpointComplete, TriggerCheckpoint]

    def test_workers_make_sure_of_the_checkpoint_directory(self) -> None:
        job = ScriptedJob(ENDED).start()
        job.result()
        deploy = job.stages.said(0)[0]
        assert isinstance(deploy, Deploy)
        assert deploy.storage_token == job.job.storage_token
        assert not deploy.restore
        assert not deploy.peers

    def test_credits_are_limited_and_a_source_is_limited_in_time(self) -> None:
        settings = {"execution.epoch.max-records": "7", "execution.epoch.target-duration": "300 ms"}
        job = ScriptedJob(ENDED, settings=settings).start()
        job.result()
        assert job.stages.commands(0).quota == 7
        assert job.stages.commands(0).budget_ms == 600

    def test_metrics_tell_of_the_epoch_and_the_backlog(self) -> None:
        job = ScriptedJob(Epoch(records=3, used_up=True, pending=42), Waits()).start()

        def is_told() -> None:
            values = [metrics for metrics in job.runner.metrics().values() if "lastEpochRecords" in metrics]
            assert len(values) == 2
            assert all(each["lastEpochRecords"] == 3 for each in values)
            assert all(each["pendingRecords"] == 42 for each in values)
            assert all({"lastEpochDuration", "epochCredits"} <= each.keys() for each in values)

        eventually(is_told)
        job.cancel()

    def test_an_epoch_longer_than_the_heartbeat_timeout_is_no_failure(self) -> None:
        wait = Waits()
        job = ScriptedJob(wait, ENDED, settings={"heartbeat.timeout": "2 s"}).start()
        assert wait.began.wait(DEADLINE_S)

        def has_beaten() -> None:
            beats = [e for e in job.host.posted if isinstance(e, MessageReceived) and isinstance(e.message, Heartbeat)]
            assert len(beats) > 2 * 5, "four for each slot within the timeout"

        eventually(has_beaten)
        wait.go_on.set()
        job.result()


class TestFailures:
    def test_what_a_task_says_of_its_failure_is_the_jobs(self) -> None:
        job = ScriptedJob(Epoch(records=1), Fails("no such key", by_task=True)).start()
        with pytest.raises(JobExecutionError) as caught:
            job.result()
        assert caught.value.failure.message == "no such key"
        assert caught.value.failure.operator == "Source: numbers"

    def test_a_run_that_fails_without_a_word_of_a_task_is_told_readably(self) -> None:
        job = ScriptedJob(Fails("Executor 3 was lost.")).start()
        with pytest.raises(JobExecutionError) as caught:
            job.result()
        assert caught.value.failure.message == "Executor 3 was lost."
        assert caught.value.failure.error_type == "StageError"

    def test_so_is_anything_else_that_goes_wrong_in_the_runner(self) -> None:
        job = ScriptedJob(RuntimeError("Spark is gone")).start()
        with pytest.raises(JobExecutionError, match="Spark is gone"):
            job.result()

    @pytest.mark.parametrize("failure", [Fails("x", by_task=True), Fails("x"), RuntimeError("x"), Epoch(mixed=True)])
    @pytest.mark.parametrize("parallelism", [1, 2])
    def test_the_next_attempt_starts_from_the_last_checkpoint(self, failure: Any, parallelism: int) -> None:
        steps = Epoch(records=1), Epoch(records=1), failure, Epoch(records=1), ENDED
        job = ScriptedJob(*steps, settings=RESTARTS, parallelism=parallelism).start()
        job.result()
        commands = [job.stages.commands(run) for run in range(5)]
        assert [command.version for command in commands] == [None, 1, 2, None, commands[3].epoch]
        assert restored(commands[3]) == 2
        assert commands[3].is_restorable
        assert [command.descriptor.task.attempt for command in commands] == [0, 0, 0, 1, 1]

    def test_the_next_attempt_goes_on_with_what_was_learned_of_the_cost_of_records(self) -> None:
        full = Epoch(records=20_000, used_up=True)
        # no epoch is too long, so that the quota grows as fast as it may
        settings = {**RESTARTS, "execution.epoch.target-duration": "1 h"}
        job = ScriptedJob(full, full, full, Fails("x"), ENDED, settings=settings).start()
        job.result()
        # nothing is learned from the first epoch, and the next attempt begins with a quarter
        assert [job.stages.commands(run).quota for run in range(5)] == [20_000, 20_000, 80_000, 320_000, 80_000]

    def test_a_run_whose_tasks_have_read_from_different_runs_is_not_completed(self) -> None:
        job = ScriptedJob(Epoch(mixed=True)).start()
        with pytest.raises(JobExecutionError, match="that is not the one that counts"):
            job.result()
        assert job.runner.checkpoint_statistics()["counts"]["completed"] == 0

    def test_cancelling_ends_the_run(self) -> None:
        wait = Waits()
        job = ScriptedJob(wait).start()
        assert wait.began.wait(DEADLINE_S)
        job.cancel()
        with pytest.raises(JobCancelledError):
            job.result()
        assert job.stages.cancelled
        assert job.stages.closed == 1

    def test_cancelling_ends_a_wait(self) -> None:
        clock = FakeClock()
        job = ScriptedJob(clock=clock).start()
        eventually(lambda: job.host.rests() is not None)
        job.cancel()
        assert job.runner.status() is JobStatus.CANCELED

    def test_without_its_checkpoint_the_job_goes_on_but_cannot_be_loaded(self) -> None:
        steps = Epoch(records=1), Epoch(records=1, declined="the disk is full"), Epoch(records=1), ENDED
        settings = {"execution.checkpointing.tolerable-failed-checkpoints": "3"}
        job = ScriptedJob(*steps, settings=settings).start()
        job.result()
        commands = [job.stages.commands(run) for run in range(4)]
        assert [command.version for command in commands] == [None, 1, 2, 3]
        assert [command.is_restorable for command in commands] == [True, True, False, True]
        assert restored(commands[3]) == 3
        assert kinds(job.stages.said(2))[-2:] == [NotifyCheckpointAborted, TriggerCheckpoint]

    @pytest.mark.parametrize("tolerable", ["0", "1000"])
    def test_an_epoch_that_does_not_end_is_ended_with_its_checkpoint(self, tolerable: str) -> None:
        settings = {
            **RESTARTS,
            "execution.checkpointing.timeout": "2 s",  # the first epoch must do with it, however slow the machine
            "execution.checkpointing.tolerable-failed-checkpoints": tolerable,
        }
        job = ScriptedJob(Epoch(records=1), Waits(), ENDED, settings=settings).start()
        job.result()
        assert [job.stages.commands(run).descriptor.task.attempt for run in range(3)] == [0, 0, 1]
        assert restored(job.stages.commands(2)) == 1
        assert job.stages.cancelled

    def test_without_its_checkpoint_the_job_restarts_where_none_may_fail(self) -> None:
        steps = Epoch(records=1), Epoch(records=1, declined="the disk is full"), ENDED
        job = ScriptedJob(*steps, settings=RESTARTS).start()
        job.result()
        assert job.stages.commands(2).version is None
        assert restored(job.stages.commands(2)) == 1


class TestCommits:
    def test_sinks_commit_here_once_the_checkpoint_is_complete(self) -> None:
        steps = Epoch(records=1, prepared=("a", "b")), Epoch(records=1, prepared=("c",)), Epoch(), ENDED
        job = ScriptedJob(*steps).start()
        job.result()
        assert committed == [["a", "b"], ["c"], "closed"]

    def test_what_a_failed_checkpoint_prepared_goes_with_the_next(self) -> None:
        steps = Epoch(prepared=("a",), declined="no"), Epoch(records=1, prepared=("b",)), ENDED
        job = ScriptedJob(*steps, settings={"execution.checkpointing.tolerable-failed-checkpoints": "3"}).start()
        job.result()
        assert committed == [["a", "b"], "closed"]

    def test_a_commit_that_fails_fails_the_job_and_names_the_sink(self) -> None:
        RecordingSink.failures = 1
        job = ScriptedJob(Epoch(prepared=("a",))).start()
        with pytest.raises(JobExecutionError) as caught:
            job.result()
        failure = caught.value.failure
        assert (failure.operator, failure.error_type, failure.message) == ("Sink: out", "OSError", "the store is full")
        assert failure.during == "commit()"

    @pytest.mark.parametrize("point", ["sink.commit", "sink.committed"])
    def test_the_next_attempt_starts_from_the_checkpoint_that_was_to_be_committed(
        self, point: str, tmp_path: Path
    ) -> None:
        once = tmp_path / "once"
        once.touch()
        fault_points.arm(f"{point}=raise@{once}")
        job = ScriptedJob(Epoch(records=1), Epoch(prepared=("a",)), ENDED, settings=RESTARTS).start()
        job.result()
        again = job.stages.commands(2, vertex=1)
        assert (again.version, restored(again)) == (None, 2)
        (assigned,) = again.restore.operators.popitem()[1].operator if again.restore else ()  # type: ignore[attr-defined]
        assert assigned.items == 1, "the task has it, and commits it when it opens"


class TestSavepoints:
    def test_a_savepoint_does_not_wait_for_the_next_epoch(self, tmp_path: Path) -> None:
        job = ScriptedJob(Epoch(), clock=FakeClock()).start()
        eventually(lambda: job.host.rests() is not None)
        path = job.runner.trigger_savepoint(str(tmp_path)).result(DEADLINE_S)
        assert storage.load(path).kind is SnapshotKind.SAVEPOINT
        assert job.stages.commands(1).quota == 0
        job.cancel()

    def test_after_a_savepoint_the_state_can_be_loaded_only_once_a_checkpoint_has_followed(
        self, tmp_path: Path
    ) -> None:
        clock = FakeClock()
        job = ScriptedJob(Epoch(), Epoch(prepared=("a",)), clock=clock).start()
        eventually(lambda: job.host.rests() is not None)
        job.runner.trigger_savepoint(str(tmp_path)).result(DEADLINE_S)
        assert committed == []
        for epochs in (3, 4):
            clock.advance(5000)
            job.host.wakeup()
            eventually(lambda epochs=epochs: len(job.stages.runs) >= epochs and job.host.rests() is not None)
        commands = [job.stages.commands(run) for run in range(4)]
        assert [command.version for command in commands] == [None, 1, 2, 3]
        assert [command.is_restorable for command in commands] == [True, True, False, True]
        assert committed == [["a"]]
        job.cancel()

    @pytest.mark.parametrize("drain", [False, True])
    def test_stopping_with_a_savepoint_commits_and_finishes(self, drain: bool, tmp_path: Path) -> None:
        job = ScriptedJob(Epoch(), Epoch(prepared=("a",), ended=drain), clock=FakeClock()).start()
        eventually(lambda: job.host.rests() is not None)
        path = job.runner.stop_with_savepoint(drain, str(tmp_path)).result(DEADLINE_S)
        job.result()
        assert job.runner.status() is JobStatus.FINISHED
        assert storage.load(path).checkpoint_id == 2
        trigger = job.stages.said(1)[-1]
        assert isinstance(trigger, TriggerCheckpoint)
        assert trigger.options.stop is (StopMode.DRAIN if drain else StopMode.SUSPEND)
        assert committed == [["a"], "closed"]

    def test_stopping_while_an_epoch_runs_waits_for_it(self, tmp_path: Path) -> None:
        wait = Waits()
        job = ScriptedJob(wait).start()
        assert wait.began.wait(DEADLINE_S)
        stopped = job.runner.stop_with_savepoint(False, str(tmp_path))
        eventually(lambda: bool(job.host._current and job.host._current._tasks.planned))
        wait.go_on.set()
        stopped.result(DEADLINE_S)
        job.result()
        assert [job.stages.commands(run).version for run in range(2)] == [None, 1]
        assert not job.stages.commands(1).is_restorable

    def test_a_checkpoint_can_be_asked_for(self) -> None:
        job = ScriptedJob(Epoch(), clock=FakeClock()).start()
        eventually(lambda: job.host.rests() is not None)
        assert job.runner.trigger_checkpoint().result(DEADLINE_S).endswith("chk-2")
        eventually(lambda: job.host.rests() is not None)
        assert job.runner.trigger_checkpoint(full=True).result(DEADLINE_S).endswith("chk-3")
        triggers = [job.stages.said(run)[-1] for run in (1, 2)]
        assert [trigger.options.kind for trigger in triggers if isinstance(trigger, TriggerCheckpoint)] == [
            SnapshotKind.CHECKPOINT,
            SnapshotKind.FULL_CHECKPOINT,
        ]
        job.cancel()


class TestTriggers:
    def test_an_idle_job_is_not_run_until_its_time_has_come(self) -> None:
        clock = FakeClock()
        job = ScriptedJob(Epoch(records=1), Epoch(), clock=clock).start()
        eventually(lambda: job.host.rests() is not None)
        assert len(job.stages.runs) == 2
        clock.advance(199)
        job.host.wakeup()
        eventually(lambda: job.host.rests() is not None)
        assert len(job.stages.runs) == 2
        clock.advance(1)
        job.host.wakeup()
        eventually(lambda: len(job.stages.runs) == 3)
        job.cancel()

    def test_a_timer_wakes_it(self) -> None:
        clock = FakeClock()
        job = ScriptedJob(Epoch(timer=30), clock=clock).start()
        eventually(lambda: job.host.rests() is not None)
        clock.advance(30)
        job.host.wakeup()
        eventually(lambda: len(job.stages.runs) == 2)
        job.cancel()

    def test_a_source_that_is_ready_wakes_it(self) -> None:
        job = ScriptedJob(Epoch(ready_in_ms=20), clock=FakeClock()).start()
        eventually(lambda: len(job.stages.runs) == 2)
        job.cancel()

    def test_splits_wake_it(self) -> None:
        job = ScriptedJob(Epoch(requests=1), Epoch(), clock=FakeClock()).start()
        eventually(lambda: len(job.stages.runs) == 2 and job.host.rests() is not None)
        job.cancel()

    def test_the_interval_trigger_runs_once_per_interval(self) -> None:
        clock = FakeClock()
        settings = {"execution.epoch.trigger": "interval", "execution.epoch.interval": "10 s"}
        job = ScriptedJob(Epoch(records=1, used_up=True), Epoch(records=1), settings=settings, clock=clock).start()
        for epochs in (1, 2, 3):
            eventually(lambda epochs=epochs: len(job.stages.runs) == epochs and job.host.rests() is not None)
            clock.advance(9_999)
            job.host.wakeup()
            eventually(lambda: job.host.rests() is not None)
            assert len(job.stages.runs) == epochs
            clock.advance(1)
            job.host.wakeup()
        job.cancel()

    def test_available_now_stops_when_all_is_read(self) -> None:
        steps = Epoch(requests=1), Epoch(records=5, used_up=True), Epoch(records=2), Epoch(records=99)
        job = ScriptedJob(*steps, settings={"execution.epoch.trigger": "available-now"}).start()
        job.result()
        assert job.runner.status() is JobStatus.FINISHED
        assert [job.stages.commands(run).is_last for run in range(len(job.stages.runs))] == [False] * 3 + [True]
        assert job.stages.commands(3).quota == 0


class TestResuming:
    def settings(self, directory: Path, **more: str) -> dict[str, str]:
        settings = {"execution.epoch.trigger": "available-now", "execution.checkpointing.dir": str(directory)}
        return settings | {key.replace("_", "-").replace("--", "."): value for key, value in more.items()}

    def test_the_next_run_goes_on_where_the_last_one_stopped(self, tmp_path: Path) -> None:
        first = ScriptedJob(Epoch(records=5), settings=self.settings(tmp_path)).start()
        first.result()
        (directory,) = tmp_path.iterdir()
        assert [path.name for path in directory.glob("chk-*")] == ["chk-2"]
        second = ScriptedJob(Epoch(records=5, used_up=True), Epoch(), settings=self.settings(tmp_path)).start()
        second.result()
        assert second.job.job_graph.job_id == first.job.job_graph.job_id
        assert restored(second.stages.commands(0)) == 2
        assert [run.epoch for run in second.stages.runs] == [3, 4, 5]
        assert [path.name for path in directory.glob("chk-*")] == ["chk-5"], "older ones are not kept"

    def test_another_job_in_the_same_directory_begins_anew(self, tmp_path: Path) -> None:
        ScriptedJob(Epoch(), settings=self.settings(tmp_path)).start().result()
        other = ScriptedJob(Epoch(), settings=self.settings(tmp_path), name="another").start()
        other.result()
        assert other.stages.commands(0).restore is None

    def test_what_it_is_told_to_start_from_goes_before_what_it_has_left(self, tmp_path: Path) -> None:
        savepoints = tmp_path / "savepoints"
        job = ScriptedJob(Epoch(), clock=FakeClock()).start()
        eventually(lambda: job.host.rests() is not None)
        path = job.runner.stop_with_savepoint(False, str(savepoints)).result(DEADLINE_S)
        job.result()
        directory = tmp_path / "checkpoints"
        steps = [Epoch(records=1, used_up=True)] * 4
        ScriptedJob(*steps, settings=self.settings(directory)).start().result()
        back = self.settings(directory) | {"execution.state-recovery.path": path}
        again = ScriptedJob(Epoch(), settings=back).start()
        again.result()
        assert [run.epoch for run in again.stages.runs] == [7, 8], "its number is not that of one that is there"
        (job_directory,) = directory.iterdir()
        assert [each.name for each in job_directory.glob("chk-*")] == ["chk-8"]

    def test_it_can_be_switched_off_and_on(self, tmp_path: Path) -> None:
        off = self.settings(tmp_path) | {"execution.epoch.resume": "false"}
        ScriptedJob(Epoch(), settings=off).start().result()
        assert not list(tmp_path.iterdir())
        on = {"execution.checkpointing.dir": str(tmp_path), "execution.epoch.resume": "true"}
        ScriptedJob(ENDED, settings=on).start().result()
        again = ScriptedJob(ENDED, settings=on).start()
        again.result()
        assert restored(again.stages.commands(0)) == 1


def test_task_states_are_those_of_slots() -> None:
    job = ScriptedJob(ENDED, parallelism=1).start()
    job.result()
    states = [e.message for e in job.host.posted if isinstance(e, MessageReceived)]
    names = [message.state for message in states if isinstance(message, TaskStateChanged)]
    assert names == ["INITIALIZING", "RUNNING"] * 2 + ["FINISHED"] * 2
