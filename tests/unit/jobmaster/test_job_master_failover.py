from __future__ import annotations

import pytest

from firesteel.common.errors import NotEnoughSlotsError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionState
from firesteel.jobmaster.model.instructions import SetTimer, StartAttempt
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.model.messages import (
    AddSplits,
    CancelSlot,
    ClientPayload,
    Deploy,
    NoMoreSplits,
    ReaderStarted,
    RequestSplit,
)

BOOM = TaskFailure("boom", error_type="ValueError", operator="map", user_file="job.py", user_line=3)
PEER_LOST = TaskFailure("connection to slot 1 was reset", error_type="ConnectionResetError", task="map (1/2)")
STAGE_FAILED = TaskFailure("stage failed", error_type="SparkException", traceback="exit code 137")


def test_a_task_failure_fails_the_job(harness):
    harness.run()
    harness.task("map", 1, "FAILED", BOOM)
    assert harness.status is JobStatus.FAILING
    assert harness.sent(CancelSlot) == [(slot, CancelSlot("the job failed: boom", job_is_over=True)) for slot in (0, 1)]
    harness.failed(1, BOOM)
    assert harness.done is None
    harness.stopped(0)
    assert harness.done.status is JobStatus.FAILED
    assert harness.done.failure == BOOM
    assert harness.graph.vertex("map", 1).state is ExecutionState.FAILED
    assert harness.graph.vertex("map", 0).state is ExecutionState.CANCELED
    [entry] = harness.jm.exception_history.entries()
    assert (entry.attempt, entry.failure, entry.concurrent) == (0, BOOM, ())


def test_fixed_delay_restarts_and_then_gives_up(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(attempts=1, delay=700))
    harness.run()
    failed_at = harness.now + 1
    assert SetTimer("restart-delay", failed_at + 700) in harness.failed(0, BOOM)
    assert harness.status is JobStatus.RESTARTING
    harness.stopped(1)
    harness.attempt_ended()
    assert harness.started == [0]
    assert StartAttempt(1, 2) in harness.fire("restart-delay")
    assert harness.now == failed_at + 700
    harness.run()
    assert [message.attempt for _, message in harness.sent(Deploy)] == [0, 0, 1, 1]
    assert harness.graph.vertex("map", 0).current.attempt_number == 1

    harness.failed(0, BOOM)
    harness.stopped(1)
    assert harness.status is JobStatus.FAILED
    assert harness.statuses == [
        JobStatus.INITIALIZING,
        JobStatus.CREATED,
        JobStatus.RUNNING,
        JobStatus.RESTARTING,
        JobStatus.CREATED,
        JobStatus.RUNNING,
        JobStatus.FAILING,
        JobStatus.FAILED,
    ]
    assert [entry.attempt for entry in harness.jm.exception_history.entries()] == [0, 1]


def test_a_spark_that_is_too_small_is_no_reason_to_restart(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(attempts=5, delay=700))
    harness.start()
    error = NotEnoughSlotsError(2, 1, 0, is_final=True)
    harness.attempt_ended(TaskFailure(error.message, error_type="NotEnoughSlotsError", cause=error))
    assert harness.status is JobStatus.FAILED
    assert harness.started == [0]
    assert harness.done.failure.message == "The job needs 2 slots but the cluster has 1 (waited 0 s)."


def test_a_restarted_job_can_finish(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(attempts=1, delay=0))
    harness.run()
    harness.say(0, ClientPayload(0, "print", 0, 0, "one"))
    harness.failed(0, BOOM)
    harness.stopped(1, lines=5)
    harness.attempt_ended()
    harness.fire("restart-delay")
    harness.run()
    harness.say(0, ClientPayload(1, "print", 0, 0, "one again"))
    harness.all_tasks("FINISHED")
    harness.stopped(0, lines=1)
    harness.stopped(1, lines=1)
    assert harness.done.status is JobStatus.FINISHED
    assert harness.done.failure is None
    assert harness.done.accumulators == {"lines": 2}
    assert harness.delivered() == ["one", "one again"]


def test_the_next_attempt_waits_until_the_last_one_has_ended(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(attempts=1, delay=0))
    harness.run()
    harness.failed(0, BOOM)
    harness.failed(1, PEER_LOST)
    harness.fire("restart-delay")
    assert harness.started == [0]
    harness.attempt_ended()
    assert harness.started == [0, 1]


def test_an_attempt_that_does_not_end_is_killed_before_the_next(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(attempts=1, delay=0))
    harness.run()
    harness.failed(0, BOOM)
    harness.fire("restart-delay")
    harness.fire("cancellation-timeout")
    assert harness.killed == {0}
    harness.fire("kill-timeout")
    assert harness.started == [0, 1]


def test_a_lost_slot_fails_the_job_after_the_grace_period(harness):
    harness.run()
    harness.lost(1)
    assert harness.status is JobStatus.RUNNING
    harness.fire("failure-grace")
    assert harness.status is JobStatus.FAILING
    assert "slot 1 (host host, pid 101, executor exec-1)" in harness.jm.failure.message
    assert harness.sent(CancelSlot)[0][0] == 0
    harness.stopped(0)
    # Nobody knows whether the lost slot's process is gone.
    assert harness.killed == {0}
    harness.attempt_ended(STAGE_FAILED)
    assert harness.status is JobStatus.FAILED


def test_the_hosts_account_completes_that_of_a_lost_slot(harness):
    harness.run()
    harness.lost(1)
    harness.task("map", 0, "FAILED", PEER_LOST)
    harness.lost(0)
    harness.attempt_ended(STAGE_FAILED)
    # Nobody is left to name a cause, so there is nothing to wait for.
    assert harness.done.status is JobStatus.FAILED
    assert harness.done.failure.error_type == "SlotLost"
    assert "slot 1" in harness.done.failure.message
    assert harness.done.failure.traceback == "exit code 137"


@pytest.mark.parametrize(
    "consequence",
    [
        lambda harness: harness.task("map", 0, "FAILED", PEER_LOST),
        lambda harness: harness.failed(0, PEER_LOST),
        lambda harness: harness.lost(0),
        lambda harness: harness.attempt_ended(STAGE_FAILED),
    ],
)
@pytest.mark.parametrize("when", ["before", "after", "after the grace period"])
def test_a_consequence_does_not_mask_the_cause(harness, consequence, when):
    harness.run()
    if when == "after":
        harness.failed(1, BOOM)
        consequence(harness)
    else:
        consequence(harness)
        assert harness.status is JobStatus.RUNNING
        if when == "after the grace period":
            harness.fire("failure-grace")
            if harness.done is not None:
                return  # the host has said that nobody is left
            assert harness.status is JobStatus.FAILING
        harness.failed(1, BOOM)
    if harness.done is None:
        harness.attempt_ended()
    assert harness.done.failure == BOOM
    [entry] = harness.jm.exception_history.entries()
    assert entry.failure == BOOM
    assert BOOM not in entry.concurrent


def test_the_first_of_two_causes_counts(harness):
    harness.run()
    second = TaskFailure("second", error_type="KeyError")
    harness.task("map", 0, "FAILED", BOOM)
    harness.task("map", 1, "FAILED", second)
    harness.attempt_ended()
    assert harness.done.failure == BOOM
    assert harness.jm.exception_history.entries()[0].concurrent == (second,)


def test_a_connection_error_in_user_code_is_a_cause(harness):
    harness.run()
    failure = TaskFailure("reset", error_type="ConnectionResetError", user_file="job.py", user_line=4)
    harness.task("map", 0, "FAILED", failure)
    assert harness.status is JobStatus.FAILING


def test_an_attempt_that_ends_before_any_slot_registered_fails_at_once(harness):
    harness.start()
    harness.attempt_ended(STAGE_FAILED)
    assert harness.done.failure == STAGE_FAILED


def test_an_attempt_that_ends_without_an_error_is_a_failure_too(harness):
    harness.run()
    harness.attempt_ended()
    harness.fire("failure-grace")
    assert harness.done.failure.error_type == "AttemptEnded"


def test_a_slot_that_stops_too_early_is_a_failure(harness):
    harness.run()
    harness.stopped(1)
    harness.fire("failure-grace")
    harness.stopped(0)
    assert harness.done.failure.error_type == "SlotLost"


def test_a_lost_slot_before_deployment_is_a_failure(harness):
    harness.start()
    harness.register(0)
    harness.lost(0)
    harness.register(1)
    assert harness.sent(Deploy) == []
    harness.fire("failure-grace")
    assert harness.status is JobStatus.FAILING


def test_nothing_is_deployed_while_a_failure_waits_for_its_cause(harness):
    harness.start()
    harness.register(0)
    harness.task("map", 0, "FAILED", PEER_LOST)
    harness.register(1)
    assert harness.sent(Deploy) == []
    harness.fire("failure-grace")
    assert harness.jm.failure == PEER_LOST


def test_a_task_cannot_run_before_it_is_deployed(harness):
    harness.start()
    harness.register(0)
    harness.task("map", 0, "RUNNING")
    assert harness.status is JobStatus.FAILING
    assert "before any task was deployed" in harness.jm.failure.message


def test_the_exception_history_is_bounded(make_harness):
    settings = JobMasterSettings(exception_history_size=2)
    harness = make_harness(FixedDelayRestartStrategy(attempts=3, delay=0), settings=settings)
    for _ in range(4):
        harness.run()
        harness.failed(0, BOOM)
        harness.attempt_ended()
        if harness.done is None:
            harness.fire("restart-delay")
    assert [entry.attempt for entry in harness.jm.exception_history.entries()] == [2, 3]


def test_readers_get_splits_and_a_new_attempt_begins_anew(make_harness, make_source, make_split):
    harness = make_harness(FixedDelayRestartStrategy(1, 0), make_source(count=2))
    for attempt in (0, 1):
        harness.run()
        for subtask in (0, 1):
            harness.say(subtask, ReaderStarted(attempt, "source", "op-source", subtask))
            harness.say(subtask, RequestSplit(attempt, "source", "op-source", subtask, "host"))
        harness.say(1, RequestSplit(attempt, "source", "op-source", 1, "host"))
        assert harness.sent(AddSplits, attempt) == [
            (subtask, AddSplits("op-source", subtask, (make_split(f"split-{subtask}"),))) for subtask in (0, 1)
        ]
        assert harness.sent(NoMoreSplits, attempt) == [(1, NoMoreSplits("op-source", 1))]
        if attempt == 0:
            harness.failed(0, BOOM)
            harness.attempt_ended()
            harness.fire("restart-delay")
    assert len(harness.source.enumerators) == 2


def test_a_source_that_cannot_start_fails_before_slots_are_asked_for(make_harness, make_source):
    def fail(context, splits):
        raise FileNotFoundError("no such file: in.txt")

    harness = make_harness(FixedDelayRestartStrategy(1, 50), make_source(make_enumerator=fail))
    harness.start()
    assert harness.started == []
    assert harness.status is JobStatus.RESTARTING
    harness.fire("restart-delay")
    assert harness.done.status is JobStatus.FAILED
    failure = harness.done.failure
    assert (failure.error_type, failure.operator, failure.uid) == (
        "FileNotFoundError",
        "source",
        "uid-source",
    )
    assert failure.defined_at == "job.py:7"
    assert "in.txt" in failure.message


def test_an_enumerator_that_fails_later_fails_the_job(make_harness, make_source, list_enumerator):
    class Broken(list_enumerator):
        def handle_split_request(self, subtask, host):
            raise KeyError("lost my splits")

    harness = make_harness(source=make_source(make_enumerator=Broken))
    harness.run()
    harness.say(0, ReaderStarted(0, "source", "op-source", 0))
    harness.say(0, RequestSplit(0, "source", "op-source", 0))
    assert harness.status is JobStatus.FAILING
    failure = harness.jm.failure
    assert failure.operator == "source"
    assert failure.user_file == __file__
    assert failure.user_source == 'raise KeyError("lost my splits")'
    assert "KeyError" in failure.traceback


def test_a_reader_of_an_unknown_source_fails_the_job(harness):
    harness.run()
    harness.say(0, ReaderStarted(0, "source", "op-other", 0))
    assert harness.status is JobStatus.FAILING
    assert "op-other" in harness.jm.failure.message


def test_a_lost_connection_says_more_than_an_attempt_that_just_ended(harness):
    harness.run()
    harness.task("map", 0, "FAILED", PEER_LOST)
    harness.attempt_ended()
    harness.lost(0)
    harness.lost(1)
    assert harness.jm.failure is not None
    assert harness.jm.failure.error_type != "AttemptEnded"
