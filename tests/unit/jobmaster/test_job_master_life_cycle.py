from __future__ import annotations

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.model.events import AttemptEnded, ClientConsumed, MessageReceived, TimerFired
from firesteel.jobmaster.model.instructions import JobDone, KillAttempt, SendToSlot, SetTimer, StartAttempt
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.model.story import InvalidStatusTransitionError
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.model.messages import (
    CancelSlot,
    ClientAck,
    ClientPayload,
    Deploy,
    Heartbeat,
    MetricReport,
    Shutdown,
    SlotStopped,
    TaskStateChanged,
)

BOOM = TaskFailure("boom", error_type="ValueError", user_file="job.py", user_line=3)


def test_a_job_runs_from_start_to_finished(harness):
    assert StartAttempt(0, 2) in harness.start()
    assert harness.status is JobStatus.CREATED
    harness.register(1)
    assert harness.sent(Deploy) == []
    harness.register(0)
    assert harness.status is JobStatus.RUNNING
    deploy = Deploy(0, {0: ("host", 5000), 1: ("host", 5001)}, 2)
    assert harness.sent(Deploy) == [(0, deploy), (1, deploy)]

    harness.all_tasks("INITIALIZING")
    harness.all_tasks("RUNNING")
    harness.task("source", 0, "FINISHED")
    harness.task("source", 1, "FINISHED")
    harness.task("map", 0, "FINISHED")
    assert harness.sent(Shutdown) == []
    harness.task("map", 1, "FINISHED")
    assert harness.sent(Shutdown) == [(0, Shutdown()), (1, Shutdown())]

    harness.stopped(0, lines=3)
    assert harness.done is None
    harness.stopped(1, lines=4, words=1)
    assert harness.done == JobDone(JobStatus.FINISHED, None, {"lines": 7, "words": 1})
    assert harness.statuses == [
        JobStatus.INITIALIZING,
        JobStatus.CREATED,
        JobStatus.RUNNING,
        JobStatus.FINISHED,
    ]
    assert set(harness.jm.status_timestamps) == {JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED}


def test_the_host_may_report_the_end_before_the_slots_do(harness):
    harness.run()
    harness.all_tasks("FINISHED")
    harness.attempt_ended()
    assert harness.status is JobStatus.RUNNING
    harness.stopped(0)
    harness.stopped(1)
    assert harness.status is JobStatus.FINISHED


def test_slots_that_do_not_stop_fail_the_job(harness):
    harness.run()
    harness.all_tasks("FINISHED")
    harness.stopped(0)
    harness.fire("shutdown-timeout")
    assert harness.status is JobStatus.FAILING
    reason = f"the job failed: {harness.jm.failure.message}"
    assert harness.sent(CancelSlot) == [(1, CancelSlot(reason, job_is_over=True))]
    harness.fire("cancellation-timeout")
    harness.attempt_ended()
    assert harness.status is JobStatus.FAILED
    assert "slot 1 (host host, pid 101, executor exec-1) did not stop" in harness.done.failure.message


def test_missing_slots_are_reported_with_both_numbers(harness):
    harness.start()
    harness.register(0)
    harness.fire("slot-request-timeout")
    assert harness.status is JobStatus.FAILING
    harness.stopped(0)
    assert KillAttempt(0, "the remaining slots cannot be stopped") in harness.instructions
    harness.attempt_ended()
    failure = harness.done.failure
    assert failure.error_type == "NotEnoughSlotsError"
    assert failure.message == "The job needs 2 slots but the cluster has 1 (waited 20 s)."
    assert failure.hint


def test_cancel_before_start(harness):
    harness.cancel()
    assert harness.done == JobDone(JobStatus.CANCELED, None, {})


def test_cancel_before_any_slot_registered_kills_the_attempt(harness):
    harness.start()
    harness.cancel()
    assert harness.killed == {0}
    harness.attempt_ended(TaskFailure("job group was cancelled"))
    assert harness.statuses[-2:] == [JobStatus.CANCELLING, JobStatus.CANCELED]


def test_cancel_while_some_slots_have_registered(harness):
    harness.start()
    harness.register(0)
    harness.cancel()
    assert harness.sent(CancelSlot) == [(0, CancelSlot("cancelled by the user", job_is_over=True))]
    assert not harness.killed
    harness.register(1)
    assert harness.sent(CancelSlot)[1:] == [(1, CancelSlot("cancelled by the user", job_is_over=True))]
    harness.stopped(0)
    harness.stopped(1)
    assert harness.status is JobStatus.CANCELED


def test_cancel_while_running(harness):
    harness.run()
    harness.cancel()
    harness.task("source", 0, "RUNNING")  # crossed the CancelSlot on the wire
    harness.task("source", 0, "CANCELED")
    harness.task("map", 0, "FINISHED")
    harness.stopped(0, lines=1)
    harness.stopped(1, lines=1)
    assert harness.done == JobDone(JobStatus.CANCELED, None, {"lines": 2})


def test_cancel_while_failing(harness):
    harness.run()
    harness.task("map", 0, "FAILED", BOOM)
    harness.cancel()
    harness.failed(0, BOOM)
    harness.stopped(1)
    assert harness.statuses[-3:] == [JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.CANCELED]
    assert harness.done.failure is None


def test_cancel_while_restarting(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(5, 60_000))
    harness.run()
    harness.failed(0, BOOM)
    harness.stopped(1)
    harness.attempt_ended()
    assert harness.status is JobStatus.RESTARTING
    harness.cancel()
    assert harness.status is JobStatus.CANCELED
    assert harness.started == [0]


@pytest.mark.parametrize("end", ["finished", "failed", "canceled"])
def test_cancel_after_the_end_changes_nothing(harness, end):
    harness.run()
    if end == "failed":
        harness.failed(0, BOOM)
    elif end == "canceled":
        harness.cancel()
        harness.stopped(0)
    else:
        harness.all_tasks("FINISHED")
        harness.stopped(0)
    harness.stopped(1)
    assert harness.status.name == end.upper()
    assert harness.cancel() == []
    assert harness.attempt_ended() == []


def test_cancel_twice_kills(harness):
    harness.run()
    harness.cancel()
    assert not harness.killed
    harness.cancel()
    assert harness.killed == {0}
    harness.cancel()
    harness.attempt_ended()
    assert harness.status is JobStatus.CANCELED


def test_slots_that_ignore_the_cancellation_are_killed(harness):
    harness.run()
    harness.cancel()
    harness.stopped(0)
    harness.fire("cancellation-timeout")
    assert harness.killed == {0}
    harness.fire("kill-timeout")
    assert harness.status is JobStatus.CANCELED


def test_a_cancellation_timeout_of_zero_waits_for_ever(make_harness):
    harness = make_harness(settings=JobMasterSettings(cancellation_timeout=0))
    harness.run()
    with pytest.raises(AssertionError, match="nothing would wake"):
        harness.cancel()


def test_a_slot_that_registers_after_the_end_is_turned_away(harness):
    harness.cancel()
    [instruction] = harness.register(1, attempt=0)
    assert isinstance(instruction, SendToSlot)
    assert isinstance(instruction.message, CancelSlot)


def test_two_processes_cannot_be_the_same_slot(harness):
    harness.run()
    harness.register(1)
    assert harness.status is JobStatus.FAILING
    assert "slot 1" in harness.jm.failure.message


def test_messages_of_an_older_attempt_are_ignored(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(3, 10))
    harness.run()
    harness.failed(0, BOOM)
    harness.stopped(1)
    harness.attempt_ended()
    harness.fire("restart-delay")
    harness.run()
    assert (harness.status, harness.jm.attempt) == (JobStatus.RUNNING, 1)
    for slot, message in [
        (0, TaskStateChanged(0, "map", 0, "FAILED", BOOM)),
        (1, SlotStopped(0, 1, {("map", 1): {"lines": 100}})),
        (0, ClientPayload(0, "print", 0, 0, "old")),
        (0, MetricReport(0, 0, {("map", "", 0): {"numRecordsIn": 9}})),
    ]:
        harness.now += 1
        assert harness.jm.handle(MessageReceived(slot, message), harness.now) == []
    assert harness.feed(AttemptEnded(0, BOOM)) == []
    assert harness.status is JobStatus.RUNNING
    assert harness.jm.metrics.snapshot().accumulators() == {}
    assert harness.jm.metrics.snapshot().by_scope() == {}


def test_silence_is_a_failure_and_heartbeats_prevent_it(harness):
    harness.run()
    harness.now += 3_000
    for slot in (0, 1):
        harness.say(slot, Heartbeat(0, slot, harness.now))
    harness.fire("heartbeat-timeout")
    assert harness.status is JobStatus.RUNNING
    harness.now += 1_000
    harness.say(0, Heartbeat(0, 0, harness.now))
    harness.fire("heartbeat-timeout")  # when it was set, slot 0 had been silent longest
    harness.fire("heartbeat-timeout")
    assert harness.status is JobStatus.FAILING
    assert harness.jm.failure.error_type == "HeartbeatTimeout"
    assert "slot 1" in harness.jm.failure.message
    assert "slot 0" not in harness.jm.failure.message


def test_a_timer_that_was_cancelled_does_nothing_and_one_that_is_early_is_set_again(harness):
    harness.start()
    due = harness.timers["slot-request-timeout"]
    assert harness.feed(TimerFired("slot-request-timeout")) == [SetTimer("slot-request-timeout", due)]
    harness.run()
    assert harness.feed(TimerFired("slot-request-timeout"), after=10**6) == []
    assert harness.status is JobStatus.RUNNING


def test_client_payloads_are_delivered_in_order_and_acknowledged_when_consumed(harness):
    harness.run()
    harness.say(1, ClientPayload(0, "collect", 1, 1, "second"))
    assert harness.delivered() == []
    harness.say(1, ClientPayload(0, "collect", 1, 0, "first"))
    harness.say(1, ClientPayload(0, "collect", 1, 0, "first"))
    assert harness.delivered() == ["first", "second"]
    assert harness.sent(ClientAck) == []
    harness.feed(ClientConsumed(0, "collect", 1, 0))
    assert harness.sent(ClientAck) == [(1, ClientAck("collect", 1, 0))]
    harness.feed(ClientConsumed(7, "collect", 1, 1))
    assert len(harness.sent(ClientAck)) == 1
    harness.say(1, ClientPayload(0, "collect", 1, 0, "first"))
    assert harness.sent(ClientAck)[1:] == [(1, ClientAck("collect", 1, 0))]


def test_nothing_is_acknowledged_to_a_slot_that_is_gone(harness):
    harness.run()
    harness.say(1, ClientPayload(0, "collect", 1, 0, "first"))
    harness.say(0, ClientPayload(0, "collect", 0, 0, "first"))
    harness.all_tasks("FINISHED")
    harness.stopped(1)
    assert harness.feed(ClientConsumed(0, "collect", 1, 0)) == []
    harness.attempt_ended()
    assert harness.feed(ClientConsumed(0, "collect", 0, 0)) == []


def test_a_slot_that_registers_after_its_attempt_ended_is_turned_away(harness):
    harness.start()
    harness.register(0)
    harness.attempt_ended()
    assert [instruction.message for instruction in harness.register(1)] == [
        CancelSlot("attempt 0 has no use for slot 1 any more")
    ]
    harness.fire("failure-grace")
    assert harness.status is JobStatus.FAILED


def test_failures_after_a_cancellation_are_not_remembered(make_harness):
    harness = make_harness(FixedDelayRestartStrategy(1, 0))
    harness.run()
    harness.failed(0, BOOM)
    harness.attempt_ended()
    harness.fire("restart-delay")
    harness.run()
    harness.cancel()
    harness.failed(0, TaskFailure("interrupted"))
    harness.stopped(1)
    assert harness.status is JobStatus.CANCELED
    [entry] = harness.jm.exception_history.entries()
    assert (entry.failure, entry.concurrent) == (BOOM, ())


def test_a_report_that_makes_no_sense_fails_the_job_with_the_story(harness):
    harness.run()
    harness.task("source", 0, "FINISHED")
    harness.task("source", 0, "RUNNING")
    assert harness.status is JobStatus.FAILING
    assert "FINISHED to RUNNING" in harness.jm.failure.message
    assert "RegisterSlot" in harness.jm.failure.traceback


def test_a_report_about_an_unknown_task_fails_the_job(harness):
    harness.run()
    harness.task("nobody", 0, "RUNNING")
    assert harness.status is JobStatus.FAILING
    assert "no such task" in harness.jm.failure.message


def test_an_invalid_transition_prints_the_story(harness):
    harness.start()
    with pytest.raises(InvalidStatusTransitionError, match="CREATED to FINISHED") as raised:
        harness.jm._transition(JobStatus.FINISHED)
    assert "StartJob" in str(raised.value)
    assert "INITIALIZING -> CREATED" in str(raised.value)
