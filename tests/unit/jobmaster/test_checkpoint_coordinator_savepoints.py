"""Rules of the CheckpointCoordinator for savepoints, restoring, and the end of the job."""

from __future__ import annotations

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.checkpoints.settings import CheckpointRetention
from firesteel.jobmaster.model.instructions import (
    DeleteCheckpoint,
    FailJob,
    NotifyAborted,
    RequestDone,
    RequestFailed,
    Say,
)
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from tests.support.checkpoints.harness import JOB, TASKS, CoordinatorHarness, kinds

# -- savepoints --------------------------------------------------------------------------------------


def test_savepoints_are_not_complete_checkpoints():
    h = CoordinatorHarness(max_concurrent=2, timeout=60_000)
    h.start()
    h.complete(h.trigger(), [f"{JOB}/shared/a"])
    second = h.trigger()
    assert kinds(h.savepoint("sp")) == ["TriggerTasks"]
    directory = h.triggered[3].options.location.exclusive
    decisions = h.complete(3, [f"{directory}/x"])
    assert decisions == [RequestDone("sp", directory, 3)]
    assert h.coordinator.pending() == [second]
    assert h.latest_id == 1
    assert f"{directory}/x" not in h.coordinator.needed_files()
    h.complete(second)
    assert f"{directory}/x" in h.files


def test_savepoints_do_not_wait_for_checkpoints():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    assert kinds(h.savepoint()) == ["TriggerTasks"]
    assert h.coordinator.pending() == [1, 2]


def test_savepoints_wait_for_unaligned_checkpoints():
    h = CoordinatorHarness(unaligned=True)
    h.start()
    h.trigger()
    assert h.savepoint() == []
    assert kinds(h.complete(1)) == ["NotifyComplete", "TriggerTasks"]
    assert h.triggered[2].options.kind is SnapshotKind.SAVEPOINT


def test_a_savepoint_counts_for_the_pause():
    h = CoordinatorHarness(interval=1000, min_pause=900)
    h.start()
    h.now += 500
    h.savepoint()
    h.complete(1)
    completed = h.now
    assert h.due() == []
    assert h.coordinator.next_due() == completed + 900


def test_a_failed_savepoint_is_deleted_and_the_user_told():
    h = CoordinatorHarness(interval=None)
    h.start()
    h.savepoint("sp")
    directory = h.triggered[1].options.location.exclusive
    h.ack(1, TASKS[0], [f"{directory}/x"])
    decisions = h.due()
    assert kinds(decisions) == ["NotifyAborted", "RequestFailed", "DeleteCheckpoint", "Say"]
    assert not h.files
    assert not h.of(FailJob), "a savepoint that expires does not fail the job"


def test_a_savepoint_that_a_task_declines_counts():
    h = CoordinatorHarness(interval=None)
    h.start()
    h.savepoint()
    assert kinds(h.call("decline", 1, *TASKS[0], "no"))[-1] == "FailJob"


def test_savepoints_need_running_tasks():
    h = CoordinatorHarness()
    [failed] = h.savepoint("sp")
    assert failed == RequestFailed("sp", "Not all required tasks are running.")


def test_waiting_savepoints_fail_with_the_attempt():
    h = CoordinatorHarness(unaligned=True)
    h.start()
    h.trigger()
    h.savepoint("waiting")
    decisions = h.call("stop", "a task failed")
    assert decisions[0] == RequestFailed("waiting", "Checkpoints have been suspended. a task failed")
    assert kinds(decisions) == ["RequestFailed", "NotifyAborted", "DeleteCheckpoint"]
    assert h.coordinator.next_due() is None


def test_stop_with_savepoint():
    h = CoordinatorHarness(timeout=60_000)
    h.start()
    h.trigger()
    decisions = h.savepoint("stop", stop=StopMode.SUSPEND)
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "TriggerTasks"]
    assert h.triggered[2].options.stop is StopMode.SUSPEND
    assert h.savepoint("other") == [
        RequestFailed("other", "Checkpoints have been suspended. The job is being stopped with a savepoint.")
    ]
    assert h.call("trigger_checkpoint", None) == []
    decisions = h.complete(2)
    assert kinds(decisions) == ["NotifyComplete", "RequestDone"]
    assert h.coordinator.next_due() is None


def test_an_attempt_that_fails_after_its_last_savepoint_is_restored_from_that():
    h = CoordinatorHarness()
    h.start()
    h.complete(h.trigger())
    h.savepoint("stop", stop=StopMode.DRAIN)
    h.complete(2)
    h.call("stop", "a sink failed to close")
    assert h.latest_id == 2
    h.start()
    h.trigger()
    assert h.triggered[3].options.kind is SnapshotKind.FULL_CHECKPOINT
    directory = h.triggered[2].options.location.exclusive
    h.complete(3)
    assert directory in h.metadata
    assert h.latest_id == 3


def test_a_stop_with_savepoint_that_fails_fails_the_attempt():
    h = CoordinatorHarness(interval=None)
    h.start()
    h.savepoint("stop", stop=StopMode.SUSPEND)
    decisions = h.due()
    assert kinds(decisions) == ["NotifyAborted", "RequestFailed", "DeleteCheckpoint", "Say", "FailJob"]


def test_a_stop_that_cannot_begin_leaves_checkpoints_on():
    h = CoordinatorHarness(after_tasks_finish=False)
    h.start(finished=[TASKS[0]])
    assert kinds(h.savepoint("stop", stop=StopMode.SUSPEND)) == ["RequestFailed"]
    assert h.coordinator.next_due() is not None


# -- restoring ---------------------------------------------------------------------------------------


def completed_metadata(path="/old/chk-7", files=("/old/chk-7/a", "/old/shared/b"), kind=SnapshotKind.CHECKPOINT):
    h = CoordinatorHarness()
    h.coordinator.next_id = 7
    h.start()
    h.trigger()
    h.ack_all(7, files)
    return h.storing[7].metadata


def test_no_claim_takes_full_checkpoints_until_one_is_complete_and_deletes_nothing():
    h = CoordinatorHarness(tolerable_failures=9)
    h.files = {"/old/chk-7/a", "/old/shared/b"}
    h.call("restored", completed_metadata(), "/old/chk-7", False)
    assert h.latest_id == 7
    h.start()
    assert h.trigger() == 8
    assert h.triggered[8].options.kind is SnapshotKind.FULL_CHECKPOINT
    h.call("decline", 8, *TASKS[0], "no")
    h.complete(h.trigger(), [f"{JOB}/shared/c"])
    assert h.triggered[9].options.kind is SnapshotKind.FULL_CHECKPOINT
    h.complete(h.trigger(), [f"{JOB}/shared/c"])
    assert h.triggered[10].options.kind is SnapshotKind.CHECKPOINT
    h.call("job_ended", JobStatus.FINISHED)
    assert h.files == {"/old/chk-7/a", "/old/shared/b"}


def test_claim_takes_a_checkpoint_over():
    h = CoordinatorHarness()
    h.files = {"/old/chk-7/a", "/old/shared/b"}
    h.call("restored", completed_metadata(), "/old/chk-7", True)
    h.start()
    h.complete(h.trigger(), ["/old/chk-7/a", f"{JOB}/shared/c"])
    assert h.triggered[8].options.kind is SnapshotKind.CHECKPOINT
    h.complete(h.trigger(), ["/old/chk-7/a"])
    assert DeleteCheckpoint("/old/chk-7", (), whole=False) in h.decisions
    assert "/old/chk-7/a" in h.files
    for _ in range(3):
        h.complete(h.trigger())
    assert not h.files
    assert DeleteCheckpoint("/old/chk-7") in h.decisions


def test_the_next_older_checkpoint_is_used_if_the_latest_is_corrupt():
    h = CoordinatorHarness(num_retained=2)
    h.start()
    h.complete(h.trigger(), [f"{JOB}/chk-1/a"])
    h.complete(h.trigger(), [f"{JOB}/chk-2/b"])
    h.call("stop", "restart")
    [said] = h.coordinator.unusable(2, "chk-2/b is cut off")
    assert isinstance(said, Say)
    assert h.latest_id == 1
    h.start()
    h.complete(h.trigger())
    assert [each.checkpoint_id for each in h.coordinator._completed] == [1, 3]
    assert h.files == {f"{JOB}/chk-1/a"}


def test_numbers_go_on_after_those_of_the_checkpoints_found():
    h = CoordinatorHarness(num_retained=2)
    metadata = completed_metadata()
    h.coordinator.recover([(metadata, f"{JOB}/chk-7")])
    h.start()
    assert h.trigger() == 8


# -- the end of the job ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention", "kept_after"),
    [
        (CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS, {"SUSPENDED"}),
        (CheckpointRetention.DELETE_ON_CANCELLATION, {"FAILED", "SUSPENDED"}),
        (CheckpointRetention.RETAIN_ON_CANCELLATION, {"CANCELED", "FAILED", "SUSPENDED"}),
    ],
)
@pytest.mark.parametrize("status", ["FINISHED", "CANCELED", "FAILED", "SUSPENDED"])
def test_externalized_checkpoint_retention(retention, kept_after, status):
    h = CoordinatorHarness(retention=retention, num_retained=2)
    h.start()
    for name in "abc":
        h.complete(h.trigger(), [f"{JOB}/shared/{name}", f"{JOB}/shared/all"])
    h.trigger()
    h.ack(4, TASKS[0], [f"{JOB}/shared/d"])
    h.call("job_ended", JobStatus[status])
    kept = {f"{JOB}/shared/{name}" for name in ("b", "c", "all")} if status in kept_after else set()
    assert h.files == kept
    assert len(h.metadata) == (2 if kept else 0)
    assert h.coordinator.next_due() is None


def test_what_was_aborted_is_not_deleted_twice_over_with_others():
    h = CoordinatorHarness(tolerable_failures=9)
    h.start()
    h.complete(h.trigger(), [f"{JOB}/shared/a"])
    h.trigger()
    h.ack(2, TASKS[0], [f"{JOB}/shared/a", f"{JOB}/shared/b"])
    h.call("decline", 2, *TASKS[1], "no")
    assert h.of(NotifyAborted)
    assert h.files == {f"{JOB}/shared/a"}
