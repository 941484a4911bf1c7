"""What ends a job, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.cluster.dispatcher.job_loading import JobLoadError
from firesteel.cluster.ha.services import HighAvailabilityError
from firesteel.common.errors import (
    CheckpointDirectoryError,
    CheckpointStorageError,
    CorruptStateError,
    FiresteelError,
    HostError,
    InvalidProgramError,
    NotEnoughSlotsError,
    StateIncompatibleError,
    TaskFailure,
)
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.end_of_job import CORRUPT_READS, ends_preparation, is_final, may_record, retry_delay_ms
from firesteel.jobmaster.model.events import AttemptAccepted, AttemptEnded, SlotLost, SlotsOffered
from firesteel.jobmaster.restart_strategy import NoRestartStrategy

OF_THE_SHELL = (
    OSError(5, "Input/output error"),
    ConnectionRefusedError("Py4J"),
    MemoryError(),
    RuntimeError("can't start new thread"),
    SystemExit(1),
    CheckpointStorageError("no space left"),
    HighAvailabilityError("cannot be written"),
    HostError("Spark is gone", is_gone=True),
)


@pytest.mark.parametrize("error", OF_THE_SHELL, ids=repr)
@pytest.mark.parametrize("is_recovered", [False, True])
def test_what_breaks_around_a_job_is_no_end(error: BaseException, is_recovered: bool) -> None:
    assert not ends_preparation(error, is_recovered=is_recovered, corrupt_reads=100)


@pytest.mark.parametrize(
    ("error", "ends_recovered"),
    [
        (InvalidProgramError("no sink"), True),
        (StateIncompatibleError("another type"), True),
        (JobLoadError("no module"), False),  # it was loaded before: the machine is another one
        (CheckpointDirectoryError("permission denied"), False),  # it was good enough before
        (FiresteelError("anything else that is said on purpose"), False),
    ],
)
def test_what_is_wrong_with_a_job_ends_it_when_it_is_submitted(error: FiresteelError, ends_recovered: bool) -> None:
    assert ends_preparation(error, is_recovered=False)
    assert ends_preparation(error, is_recovered=True) is ends_recovered


def test_state_is_corrupt_only_if_it_is_so_again_and_again() -> None:
    error = CorruptStateError("cut off")
    reads = [ends_preparation(error, is_recovered=True, corrupt_reads=n) for n in range(1, CORRUPT_READS + 1)]
    assert reads == [False] * (CORRUPT_READS - 1) + [True]
    assert ends_preparation(error, is_recovered=False, corrupt_reads=1)


@pytest.mark.parametrize("status", JobStatus)
@pytest.mark.parametrize("host_lives", [False, True])
def test_an_end_that_may_be_recorded(status: JobStatus, host_lives: bool) -> None:
    ends = {JobStatus.FINISHED, JobStatus.CANCELED} | ({JobStatus.FAILED} if host_lives else set())
    assert may_record(status, host_lives=host_lives) is (status in ends)


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("is_kept", [False, True])
def test_failures_after_which_no_attempt_does_better(has_run: bool, is_kept: bool) -> None:
    def ends(failure: TaskFailure) -> bool:
        return is_final(failure, has_run=has_run, is_kept=is_kept)

    assert not ends(TaskFailure("boom", "ZeroDivisionError"))
    assert not ends(TaskFailure("no space", "CheckpointStorageError"))
    assert ends(TaskFailure("another directory", "CheckpointDirectoryError")) is not has_run
    assert ends(TaskFailure("another type", "StateIncompatibleError"))
    assert ends(TaskFailure("never", cause=NotEnoughSlotsError(4, 2, 0, is_final=True)))
    assert not ends(TaskFailure("not now", cause=NotEnoughSlotsError(4, 2, 0)))
    assert ends(TaskFailure("gone", cause=HostError("gone", is_gone=True))) is not is_kept
    assert not ends(TaskFailure("hiccup", cause=HostError("hiccup")))


# -- what the JobMaster makes of it -----------------------------------------------------------------


def lost_host(is_gone: bool = True) -> TaskFailure:
    return TaskFailure("Spark is gone", cause=HostError("Spark is gone", is_gone=is_gone))


@pytest.fixture
def make_kept(make_harness: Any) -> Any:
    """A job that outlives its process, and whose restart strategy allows nothing."""

    def make(is_kept: bool = True) -> Any:
        h = make_harness()
        h.jm = JobMaster(h.graph, NoRestartStrategy(), replace(h.jm.settings, is_kept=is_kept))
        return h

    return make


def test_a_host_that_is_gone_is_waited_for_with_growing_delays(make_kept: Any) -> None:
    h = make_kept()
    h.start()
    delays = []
    for _ in range(20):
        h.feed(AttemptEnded(h.jm.attempt, lost_host()))
        assert h.status is JobStatus.RESTARTING
        delays.append(h.timers["restart-delay"] - h.now)
        h.fire("restart-delay")
    assert delays == [retry_delay_ms(n) for n in range(1, 21)]
    h.run()
    h.feed(AttemptEnded(h.jm.attempt, lost_host()))
    assert h.timers["restart-delay"] - h.now == retry_delay_ms(1), "it has run meanwhile"


def test_the_slots_that_die_with_the_host_do_not_count_either(make_kept: Any) -> None:
    h = make_kept()
    h.run()
    h.lost(0)
    h.lost(1)
    h.attempt_ended(lost_host())
    assert h.status is JobStatus.RESTARTING


def test_a_slot_that_the_host_cannot_reach_is_no_failure_of_the_job(make_kept: Any) -> None:
    h = make_kept()
    h.run()
    h.feed(SlotLost(0, 1, "nothing can be sent to it", by_host=True))
    assert h.status is JobStatus.RESTARTING


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([], JobStatus.RESTARTING),
        ([AttemptAccepted(0)], JobStatus.FAILING),
        ([AttemptAccepted(0), SlotsOffered(0, 1)], JobStatus.FAILING),
        ([AttemptAccepted(0), SlotsOffered(0, 1), SlotsOffered(0, 2)], JobStatus.RESTARTING),
    ],
    ids=["no answer", "no word of slots", "too few slots", "enough slots"],
)
def test_a_host_that_starts_nothing_is_not_a_lack_of_slots(make_kept: Any, told: list[Any], status: JobStatus) -> None:
    h = make_kept()
    h.start()
    for event in told:
        h.feed(event)
    h.fire("slot-request-timeout")
    assert h.status is status


def test_a_host_that_is_gone_ends_a_job_that_nobody_else_would_run(make_kept: Any) -> None:
    h = make_kept(is_kept=False)
    h.start()
    h.attempt_ended(lost_host())
    assert h.status is JobStatus.FAILED


def test_the_restart_strategy_decides_about_what_the_job_does(make_kept: Any) -> None:
    h = make_kept()
    h.run()
    h.failed(0, TaskFailure("boom", "ZeroDivisionError"))
    h.stopped(1)
    assert h.status is JobStatus.FAILED
