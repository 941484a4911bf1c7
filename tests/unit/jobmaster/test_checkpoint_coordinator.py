"""One test for each rule of the CheckpointCoordinator; savepoints and restoring have a module of their own."""

from __future__ import annotations

import pytest

from firesteel.common.errors import CheckpointError
from firesteel.jobmaster.checkpoints.failures import CheckpointFailureReason
from firesteel.jobmaster.model.instructions import (
    DeleteCheckpoint,
    DeleteFiles,
    FailJob,
    NotifyComplete,
    RequestDone,
    RequestFailed,
    StoreMetadata,
    TriggerTasks,
)
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.state_handles import SPLIT, UNION, InlineBytes
from tests.support.checkpoints.harness import JOB, TASKS, CoordinatorHarness, kinds, list_state, plan, snapshot

SOURCES = (("source", 0), ("source", 1))


# -- triggering --------------------------------------------------------------------------------------


def test_periodic_checkpoints_come_at_the_interval():
    h = CoordinatorHarness(interval=1000)
    h.start()
    started = h.now
    first = h.trigger()
    assert h.now == started + 1000
    h.complete(first)
    h.trigger()
    assert h.now == started + 2000


def test_the_first_checkpoint_comes_after_a_random_part_of_the_interval():
    h = CoordinatorHarness(interval=1000, min_pause=200)
    h.coordinator._random = lambda: 0.0
    h.start()
    assert h.coordinator.next_due() == h.now + 200


def test_nothing_is_triggered_before_all_tasks_run_or_without_an_interval():
    assert CoordinatorHarness().coordinator.next_due() is None
    h = CoordinatorHarness(interval=None)
    h.start()
    assert h.coordinator.next_due() is None


def test_sources_are_triggered_and_all_tasks_awaited():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    [trigger] = h.of(TriggerTasks)
    assert trigger.checkpoint_id == 1
    assert trigger.tasks == SOURCES
    assert trigger.coordinators == ("op-source",)
    assert trigger.timestamp == h.now
    assert trigger.options.kind is SnapshotKind.CHECKPOINT
    assert trigger.options.location.exclusive == f"{JOB}/chk-1"
    h.coordinators(1)
    for task in TASKS[:-1]:
        assert h.ack(1, task) == []
    [store] = h.ack(1, TASKS[-1])
    assert isinstance(store, StoreMetadata)


def test_a_checkpoint_waits_for_its_enumerators():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    for task in TASKS:
        assert h.ack(1, task) == []
    [store] = h.coordinators(1)
    states = {operator.operator_id: operator for operator in store.metadata.operators}
    assert states["op-source"].coordinator == InlineBytes(b"splits")
    assert states["op-sum"].coordinator is None


def test_a_slow_checkpoint_postpones_the_next_and_only_that():
    h = CoordinatorHarness(interval=1000, timeout=60_000)
    h.start()
    h.trigger()
    for _ in range(5):
        assert h.due() == []
    decisions = h.complete(1)
    assert kinds(decisions) == ["NotifyComplete", "TriggerTasks"]
    assert kinds(h.complete(2)) == ["NotifyComplete", "DeleteCheckpoint"]


def test_max_concurrent_checkpoints():
    h = CoordinatorHarness(max_concurrent=2, timeout=60_000)
    h.start()
    assert [h.trigger(), h.trigger()] == [1, 2]
    assert h.due() == []
    assert h.coordinator.pending() == [1, 2]


def test_min_pause_is_counted_from_the_end_of_the_last():
    h = CoordinatorHarness(interval=1000, min_pause=700)
    h.start()
    h.trigger()
    h.now += 600
    h.complete(1)
    completed = h.now
    assert h.due() == []
    assert h.coordinator.next_due() == completed + 700
    assert h.trigger() == 2


def test_a_pause_longer_than_the_interval_is_the_interval():
    h = CoordinatorHarness(interval=100, min_pause=900)
    h.start()
    h.trigger()
    assert h.coordinator.next_due() == h.now + 900


def test_on_demand_checkpoints_ignore_interval_and_pause_but_not_max_concurrent():
    h = CoordinatorHarness(interval=10_000, min_pause=10_000)
    h.start()
    assert kinds(h.call("trigger_checkpoint", "a")) == ["TriggerTasks"]
    assert h.call("trigger_checkpoint", "b") == []
    h.complete(1)
    assert h.coordinator.pending() == [2]
    h.complete(2)
    assert [(done.request_id, done.path) for done in h.of(RequestDone)] == [
        ("a", f"{JOB}/chk-1"),
        ("b", f"{JOB}/chk-2"),
    ]


def test_a_full_checkpoint_is_the_one_that_was_asked_to_be():
    h = CoordinatorHarness()
    h.start()
    h.complete(h.trigger())
    h.call("trigger_checkpoint", "full", kind=SnapshotKind.FULL_CHECKPOINT)
    h.call("trigger_checkpoint", "next")
    h.complete(2)
    h.complete(3)
    assert [h.triggered[number].options.kind for number in (1, 2, 3)] == [
        SnapshotKind.CHECKPOINT,
        SnapshotKind.FULL_CHECKPOINT,
        SnapshotKind.CHECKPOINT,
    ]
    assert [done.request_id for done in h.of(RequestDone)] == ["full", "next"]
    assert h.latest_id == 3


def test_requests_for_a_last_checkpoint_are_one_while_they_wait():
    h = CoordinatorHarness(interval=None)
    h.start()
    h.call("trigger_checkpoint", None)
    for _ in range(3):
        assert h.call("trigger_checkpoint", None) == []
    h.complete(1)
    assert h.coordinator.pending() == [2]
    assert kinds(h.complete(2)) == ["NotifyComplete", "DeleteCheckpoint"]


def test_a_last_checkpoint_is_asked_for_again_if_a_task_ends_in_between():
    h = CoordinatorHarness(interval=None)
    h.start()
    h.call("trigger_checkpoint", None)
    decisions = h.call("task_finished", ("source", 0))
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "TriggerTasks"]


def test_unaligned_options():
    h = CoordinatorHarness(unaligned=True)
    h.start()
    h.trigger()
    assert h.triggered[1].options.unaligned
    assert h.triggered[1].options.alignment_timeout is None
    h = CoordinatorHarness(unaligned=True, aligned_timeout=300)
    h.start()
    h.trigger()
    assert not h.triggered[1].options.unaligned
    assert h.triggered[1].options.alignment_timeout == 300
    h.complete(1)
    h.savepoint()
    assert not h.triggered[2].options.unaligned
    assert h.triggered[2].options.alignment_timeout is None


def test_at_least_once():
    h = CoordinatorHarness(exactly_once=False)
    h.start()
    h.trigger()
    assert not h.triggered[1].options.exactly_once


# -- acknowledgements --------------------------------------------------------------------------------


def test_completion_notifies_and_deletes_the_subsumed_checkpoint():
    h = CoordinatorHarness()
    h.start()
    h.complete(h.trigger(), [f"{JOB}/chk-1/a"])
    assert h.latest_id == 1
    decisions = h.complete(h.trigger(), [f"{JOB}/chk-2/b"])
    assert decisions == [NotifyComplete(2), DeleteCheckpoint(f"{JOB}/chk-1")]
    assert h.files == {f"{JOB}/chk-2/b"}
    assert list(h.metadata) == [f"{JOB}/chk-2"]
    assert h.latest_id == 2


def test_num_retained():
    h = CoordinatorHarness(num_retained=2)
    h.start()
    for _ in range(4):
        h.complete(h.trigger())
    assert [each.checkpoint_id for each in h.coordinator._completed] == [3, 4]


def test_duplicate_unknown_and_late_acknowledgements_change_nothing():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    h.ack(1, TASKS[0], [f"{JOB}/shared/a"])
    assert h.ack(1, TASKS[0], [f"{JOB}/shared/a"]) == []
    assert h.ack(99, TASKS[0], [f"{JOB}/shared/b"]) == []
    [discarded] = h.ack(1, ("nobody", 0), [f"{JOB}/shared/c"])
    assert discarded == DeleteFiles((f"{JOB}/shared/c",))
    h.complete(1)
    assert h.ack(1, TASKS[1], [f"{JOB}/shared/a"]) == []
    assert f"{JOB}/shared/a" in h.files


def test_a_late_acknowledgement_of_an_aborted_checkpoint_is_discarded():
    h = CoordinatorHarness(tolerable_failures=9)
    h.start()
    h.complete(h.trigger(), [f"{JOB}/shared/a"])
    h.trigger()
    h.call("decline", 2, *TASKS[0], "no")
    [discarded] = h.ack(2, TASKS[1], [f"{JOB}/shared/a", f"{JOB}/shared/b"])
    assert discarded == DeleteFiles((f"{JOB}/shared/b",))
    assert h.files == {f"{JOB}/shared/a"}


def test_a_repeated_acknowledgement_of_a_savepoint_does_not_harm_it():
    h = CoordinatorHarness()
    h.start()
    h.savepoint()
    [trigger] = h.of(TriggerTasks)
    path = f"{trigger.options.location.exclusive}/a"
    h.complete(1, [path])
    assert h.ack(1, TASKS[0], [path]) == []
    assert h.files == {path}


def test_an_acknowledgement_that_refers_to_a_deleted_file_is_not_believed():
    h = CoordinatorHarness(tolerable_failures=9)
    h.start()
    h.complete(h.trigger(), [f"{JOB}/shared/old"])
    for _ in range(3):
        h.complete(h.trigger())
    assert DeleteFiles((f"{JOB}/shared/old",)) in h.decisions
    h.trigger()
    decisions = h.call("acknowledge", 5, *TASKS[0], snapshot([f"{JOB}/shared/old"]), metrics=None)
    assert kinds(decisions)[0] == "NotifyAborted"
    assert "has been deleted" in decisions[0].reason
    assert h.latest_id == 4


def test_operators_without_state_and_their_names_stand_in_the_metadata():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    h.ack_all(1, ["a"])
    metadata = h.storing[1].metadata
    assert [(each.name, each.uid, each.parallelism, each.max_parallelism) for each in metadata.operators] == [
        ("numbers", "numbers-uid", 2, 128),
        ("sum", "sum-uid", 2, 128),
    ]
    assert [sorted(each.subtasks) for each in metadata.operators] == [[0, 1], [0, 1]]
    assert metadata.kind is SnapshotKind.CHECKPOINT
    assert (metadata.job_id, metadata.job_name) == ("job", "a job")


# -- failures ----------------------------------------------------------------------------------------


def test_a_declined_checkpoint_is_aborted_and_what_it_wrote_deleted():
    h = CoordinatorHarness(tolerable_failures=1)
    h.start()
    h.trigger()
    h.ack(1, TASKS[0], [f"{JOB}/chk-1/a", f"{JOB}/shared/b"])
    decisions = h.call("decline", 1, *TASKS[1], "disk full")
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "Say"]
    assert "disk full" in decisions[0].reason
    assert decisions[1] == DeleteCheckpoint(f"{JOB}/chk-1", (f"{JOB}/shared/b",))
    assert not h.files


def test_checkpoint_expired():
    h = CoordinatorHarness(interval=60_000, timeout=5_000)
    h.start()
    h.trigger()
    at = h.now
    h.ack(1, TASKS[0])
    decisions = h.due()
    assert h.now == at + 5000
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "Say", "FailJob"]
    assert "3 tasks had not acknowledged it: source (1), sum (0), sum (1)" in decisions[0].reason


def test_the_timeout_covers_the_metadata_too():
    h = CoordinatorHarness(interval=60_000, tolerable_failures=9)
    h.start()
    h.trigger()
    h.ack_all(1, [f"{JOB}/chk-1/a"])
    assert kinds(h.due()) == ["NotifyAborted", "Say"]
    assert h.files, "deleted while it may yet become complete"
    assert kinds(h.store(1)) == ["DeleteCheckpoint"]
    assert not h.files
    assert not h.metadata
    assert h.latest_id is None


def test_tolerable_failures_are_those_in_a_row():
    h = CoordinatorHarness(tolerable_failures=1)
    h.start()
    h.call("decline", h.trigger(), *TASKS[0], "no")
    h.complete(h.trigger())
    h.call("decline", h.trigger(), *TASKS[0], "no")
    assert not h.of(FailJob)
    h.call("decline", h.trigger(), *TASKS[0], "no")
    [failure] = h.of(FailJob)
    assert "Exceeded checkpoint tolerable failure threshold" in failure.failure.message
    assert h.coordinator.next_due() is None


def test_nothing_is_triggered_between_a_failure_and_the_next_attempt():
    h = CoordinatorHarness()
    h.start()
    h.call("trigger_checkpoint", "a")
    h.call("trigger_checkpoint", "b")
    decisions = h.call("decline", 1, *TASKS[0], "no")
    assert kinds(decisions)[-1] == "FailJob"
    assert h.call("stop", "it fails") == [RequestFailed("b", "Checkpoints have been suspended. it fails")]
    h.start()
    assert h.trigger() == 2


@pytest.mark.parametrize("reason", CheckpointFailureReason)
def test_which_failures_count(reason):
    h = CoordinatorHarness()
    h.start()
    h.call("decline", h.trigger(), *TASKS[0], "no", failure=reason)
    assert bool(h.of(FailJob)) == (
        reason.name
        in {
            "IO_EXCEPTION",
            "CHECKPOINT_ASYNC_EXCEPTION",
            "CHECKPOINT_DECLINED",
            "CHECKPOINT_EXPIRED",
            "FINALIZE_CHECKPOINT_FAILURE",
        }
    )


def test_metadata_that_cannot_be_stored_fails_the_checkpoint():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    h.ack_all(1, [f"{JOB}/shared/a"])
    h.storing.clear()
    decisions = h.call("store_failed", 1, "no space left")
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "Say", "FailJob"]
    assert not h.files


def test_an_enumerator_that_fails_does_not_count():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    assert kinds(h.call("trigger_failed", 1, "bug")) == ["NotifyAborted", "DeleteCheckpoint"]


def test_metadata_nobody_asked_for_is_a_bug():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    with pytest.raises(CheckpointError):
        h.call("stored", 1, "x")


# -- several at once ---------------------------------------------------------------------------------


def test_a_later_checkpoint_subsumes_earlier_ones_under_way():
    h = CoordinatorHarness(max_concurrent=3, timeout=60_000)
    h.start()
    first, second = h.trigger(), h.trigger()
    h.ack(first, TASKS[0], [f"{JOB}/shared/a"])
    decisions = h.complete(second)
    assert kinds(decisions) == ["NotifyAborted", "DeleteCheckpoint", "NotifyComplete"]
    assert decisions[0].checkpoint_id == first
    assert not h.files
    assert not h.of(FailJob)


def test_metadata_may_be_stored_in_another_order():
    h = CoordinatorHarness(max_concurrent=2, timeout=60_000)
    h.start()
    first, second = h.trigger(), h.trigger()
    h.ack_all(first, [f"{JOB}/shared/a"])
    h.ack_all(second, [f"{JOB}/shared/b"])
    h.store(second)
    assert h.files == {f"{JOB}/shared/a", f"{JOB}/shared/b"}
    h.store(first)
    assert h.files == {f"{JOB}/shared/b"}
    assert list(h.metadata) == [f"{JOB}/chk-{second}"]
    assert h.latest_id == second


def test_files_of_a_subsumed_checkpoint_outlive_snapshots_that_may_build_on_them():
    #  1 ----------- complete (a)
    #      2 ------------- complete (b): subsumes 1
    #           3 ------------------------ complete (a, c): its tasks had heard of 1, not of 2
    h = CoordinatorHarness(max_concurrent=2, timeout=60_000)
    h.start()
    a, b, c = (f"{JOB}/shared/{name}" for name in "abc")
    h.complete(h.trigger(), [a])
    second, third = h.trigger(), h.trigger()
    h.complete(second, [b])
    assert a in h.files
    h.complete(third, [a, c])
    assert {a, c} <= h.files
    h.complete(h.trigger(), [c])
    h.complete(h.trigger(), [c])
    h.complete(h.trigger(), [c])
    assert h.files == {c}


def test_a_barrier_may_overtake_the_news_of_completion():
    h = CoordinatorHarness()
    h.start()
    a, b = f"{JOB}/shared/a", f"{JOB}/shared/b"
    h.complete(h.trigger(), [a])
    h.complete(h.trigger(), [b])
    third = h.trigger()
    h.complete(third, [a])  # its task had not heard of 2
    assert a in h.files


def test_an_aborted_checkpoint_takes_nothing_with_it_that_others_may_build_on():
    h = CoordinatorHarness(max_concurrent=3, timeout=60_000, tolerable_failures=9)
    h.start()
    a = f"{JOB}/shared/a"
    h.complete(h.trigger(), [a])
    second, third, fourth = h.trigger(), h.trigger(), h.trigger()
    h.complete(second)
    h.ack(third, TASKS[0], [a])
    h.call("decline", third, *TASKS[1], "no")
    h.ack(third, TASKS[2], [a])
    assert a in h.files
    h.complete(fourth, [a])
    assert a in h.files
    assert h.latest_id == fourth


# -- tasks that finish -------------------------------------------------------------------------------


def test_tasks_whose_producers_have_all_finished_are_triggered():
    h = CoordinatorHarness()
    h.start(plan(forward=True))
    h.call("task_finished", ("source", 0))
    h.trigger()
    assert h.triggered[1].tasks == (("source", 1), ("sum", 0))
    h.coordinators(1)
    for task in [("source", 1), ("sum", 0), ("sum", 1)]:
        h.ack(1, task)
    source, total = h.storing[1].metadata.operators
    assert source.finished == {0}
    assert set(source.subtasks) == {1}
    assert total.finished == frozenset()


def test_tasks_behind_an_exchange_wait_for_all_producers():
    h = CoordinatorHarness()
    h.start(finished=[("source", 0)])
    h.trigger()
    assert h.triggered[1].tasks == (("source", 1),)
    h.call("task_finished", ("source", 1))
    h.trigger()
    assert h.triggered[2].tasks == (("sum", 0), ("sum", 1))
    assert h.triggered[2].coordinators == ()
    h.ack(2, ("sum", 0))
    h.ack(2, ("sum", 1))
    assert h.storing[2].metadata.operators[0].finished == {0, 1}


def test_a_task_that_finishes_without_acknowledging_aborts_but_does_not_count():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    h.ack(1, TASKS[0])
    assert h.call("task_finished", TASKS[0]) == []
    assert kinds(h.call("task_finished", TASKS[1])) == ["NotifyAborted", "DeleteCheckpoint"]


def test_checkpoints_after_tasks_finish_can_be_switched_off():
    h = CoordinatorHarness(after_tasks_finish=False)
    h.start()
    h.call("task_finished", TASKS[0])
    assert h.due() == []
    [failed] = h.savepoint()
    assert "checkpoints-after-tasks-finish" in failed.reason


def test_no_checkpoint_when_all_tasks_have_finished():
    h = CoordinatorHarness()
    h.start(finished=TASKS)
    assert h.due() == []


@pytest.mark.parametrize(("mode", "possible"), [(UNION, False), (SPLIT, True)])
def test_union_list_state_cannot_be_had_of_a_vertex_that_is_partly_finished(mode, possible):
    h = CoordinatorHarness()
    h.start(plan(forward=True), finished=[("source", 0)])
    h.trigger()
    h.coordinators(1)
    h.ack(1, ("sum", 0))
    h.ack(1, ("sum", 1))
    decisions = h.ack(1, ("source", 1), state=list_state(mode, "f", "op-source"))
    assert kinds(decisions) == (["StoreMetadata"] if possible else ["NotifyAborted", "DeleteCheckpoint"])


def test_the_union_list_state_of_subtasks_that_are_gone_is_that_of_the_checkpoint_before():
    h = CoordinatorHarness()
    h.start(plan(forward=True))
    for checkpoint_id in (1, 2):
        h.trigger()
        h.coordinators(checkpoint_id)
        for task in TASKS:
            if task == ("source", 0) and checkpoint_id == 2:
                continue
            state = list_state(UNION, f"f{checkpoint_id}", "op-source") if task[0] == "source" else snapshot()
            h.ack(checkpoint_id, task, state=state)
        source = h.storing[checkpoint_id].metadata.operators[0]
        assert sorted(source.subtasks) == [0, 1]
        h.store(checkpoint_id)
        h.call("task_finished", ("source", 0))
    assert source.subtasks[0].operator[0].data.path == "f1"
    assert source.subtasks[1].operator[0].data.path == "f2"
    assert "f1" in h.coordinator.needed_files()
    # a full checkpoint cannot have them: they are in files of another
    h.call("trigger_checkpoint", "full", kind=SnapshotKind.FULL_CHECKPOINT)
    h.coordinators(3)
    for task in TASKS[1:]:
        decisions = h.ack(3, task, state=list_state(UNION, "f3", "op-source") if task[0] == "source" else snapshot())
    assert kinds(decisions) == ["NotifyAborted", "RequestFailed", "DeleteCheckpoint"]


def test_a_task_that_has_ended_but_left_state_is_not_finished():
    h = CoordinatorHarness()
    h.start()
    h.trigger()
    h.coordinators(1)
    h.ack(1, ("source", 0), state=snapshot(finished=True))
    h.ack(1, ("source", 1), state=list_state(SPLIT, "f", "op-source", finished=True))
    h.ack(1, ("sum", 0))
    h.ack(1, ("sum", 1))
    assert h.storing[1].metadata.operators[0].finished == {0}


def test_a_drained_task_is_not_finished():
    h = CoordinatorHarness()
    h.start()
    h.savepoint(stop=StopMode.DRAIN)
    h.coordinators(1)
    for task in TASKS:
        h.ack(1, task, state=snapshot(finished=True))
    assert all(not operator.finished for operator in h.storing[1].metadata.operators)
