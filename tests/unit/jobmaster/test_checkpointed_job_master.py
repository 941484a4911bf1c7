"""What the JobMaster does around checkpoints: rescaling, stopping, last checkpoints of tasks, splits in snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.graph.rescaling import with_parallelism
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.events import CheckpointWanted, MetadataStored, RescaleJob, TriggerSavepoint
from firesteel.jobmaster.model.instructions import RequestDone, RequestFailed, SendToSlot, StartAttempt, StoreMetadata
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    AddSplits,
    DeclineCheckpoint,
    ReaderStarted,
    Shutdown,
    TaskAwaitsCheckpoint,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import TaskStateSnapshot
from tests.support.checkpoints.harness import location_of, savepoint_location_of

STOP = TriggerSavepoint(1, SnapshotKind.SAVEPOINT, "/savepoints", StopMode.SUSPEND)


@pytest.fixture
def make_running(make_harness: Any, make_source: Any) -> Any:
    """A job that runs and takes checkpoints, though hardly ever by itself."""

    class RestorableSource(make_source):  # type: ignore[misc]
        def restore_enumerator(self, context: Any, state: Any) -> Any:
            return self.create_enumerator(context)

    class CheckpointingHarness(make_harness):  # type: ignore[misc]
        def __init__(self, **source: Any) -> None:
            super().__init__(None, RestorableSource(**source), parallelism=2)
            coordinator = CheckpointCoordinator(
                CheckpointSettings(interval=3_600_000),
                "job-id",
                "job",
                location_of=location_of,
                savepoint_location_of=savepoint_location_of,
                random_source=lambda: 0.9,
            )
            settings = replace(self.jm.settings, checkpointing=True)
            self.jm = JobMaster(self.graph, FixedDelayRestartStrategy(10, 0), settings, coordinator)
            self.run_all()

        def run_all(self) -> None:
            self.run()
            for slot in range(self.slots):
                self.say(slot, ReaderStarted(self.jm.attempt, "source", "op-source", slot))

        def rescale(self, parallelism: int) -> None:
            graph = with_parallelism(self.jm.snapshot.wanted_job_graph, {"map": parallelism, "source": parallelism})
            self.feed(RescaleJob(graph, "the job is rescaled"))

        def acknowledge(self) -> None:
            """All tasks acknowledge the checkpoint that was triggered last."""
            for vertex in ("source", "map"):
                for slot in range(self.slots):
                    state, metrics = TaskStateSnapshot({}), CheckpointMetrics()
                    ack = AcknowledgeCheckpoint(self.jm.attempt, self.last_triggered, vertex, slot, state, metrics)
                    self.say(slot, ack)
            assert isinstance(self.instructions[-1], StoreMetadata)

        def complete(self) -> None:
            """The checkpoint that was triggered last completes."""
            self.acknowledge()
            self.feed(MetadataStored(self.last_triggered, f"/ckp/chk-{self.last_triggered}"))

        @property
        def last_triggered(self) -> int:
            return int(self.sent(TriggerCheckpoint)[-1][1].checkpoint_id)

        def finish(self) -> None:
            """All tasks and slots end."""
            self.all_tasks("FINISHED")
            for slot in range(self.slots):
                self.stopped(slot)

        def answers(self) -> list[type]:
            return [type(each) for each in self.instructions if isinstance(each, (RequestDone, RequestFailed))]

    return CheckpointingHarness


@pytest.mark.parametrize("rescaled_before", [True, False], ids=["rescale, then stop", "stop, then rescale"])
def test_a_job_that_is_rescaled_while_it_stops_is_stopped(make_running: Any, rescaled_before: bool) -> None:
    h = make_running()
    if rescaled_before:
        h.rescale(3)
    h.feed(STOP)
    if not rescaled_before:
        h.rescale(3)
    assert h.status is JobStatus.RUNNING
    h.complete()
    assert h.answers() == [RequestDone]
    h.finish()
    assert h.status is JobStatus.FINISHED
    assert h.started == [0]


def test_a_job_that_is_rescaled_while_its_slots_shut_down_ends(make_running: Any) -> None:
    h = make_running()
    h.all_tasks("FINISHED")
    assert h.sent(Shutdown)
    h.rescale(3)
    for slot in range(h.slots):
        h.stopped(slot)
    assert h.status is JobStatus.FINISHED


def test_a_stop_that_fails_leaves_a_job_with_its_new_parallelism(make_running: Any) -> None:
    h = make_running()
    h.feed(STOP)
    h.rescale(3)
    h.say(0, DeclineCheckpoint(h.jm.attempt, h.last_triggered, "map", 0, "cannot"))
    assert h.answers() == [RequestFailed]
    for slot in range(h.slots):
        h.stopped(slot)
    h.attempt_ended()
    h.fire("restart-delay")
    assert StartAttempt(1, 3) in h.instructions


def test_a_rescaled_job_restarts_once_its_checkpoint_has_completed(make_running: Any) -> None:
    h = make_running()
    h.rescale(3)
    h.complete()
    assert h.status is JobStatus.RESTARTING


def test_tasks_that_ended_with_a_checkpoint_are_not_remembered_by_checkpoint(make_running: Any) -> None:
    h = make_running()
    h.say(0, TaskAwaitsCheckpoint(0, "source", 0))
    for _ in range(20):
        h.feed(CheckpointWanted(0))
        h.complete()
    assert not h.jm.checkpoints._ending
    assert not h.jm.checkpoints._awaiting


def test_the_last_checkpoint_does_not_wait_for_a_task_whose_own_last_one_has_completed(make_running: Any) -> None:
    h = make_running()
    tasks = [(vertex, slot) for vertex in ("source", "map") for slot in range(2)]
    h.say(0, TaskAwaitsCheckpoint(0, *tasks[0]))
    h.feed(CheckpointWanted(0))
    h.complete()  # the first task is about to finish
    before = h.last_triggered
    for vertex, slot in tasks[1:]:
        h.say(slot, TaskAwaitsCheckpoint(0, vertex, slot))
    assert h.last_triggered == before + 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_split_assigned_in_a_snapshot_reaches_its_reader_before_the_barrier(
    make_running: Any, list_enumerator: Any, make_split: Any, fails: bool
) -> None:
    class AssignsInSnapshot(list_enumerator):  # type: ignore[misc]
        def snapshot_state(self, checkpoint_id: int) -> Any:
            self.context.assign_split(self.left.pop(0), 1)
            if fails:
                raise OSError("the database is away")
            return list(self.left)

    h = make_running(make_enumerator=AssignsInSnapshot)
    told = h.feed(CheckpointWanted(0))
    sent = [(each.slot_index, each.message) for each in told if isinstance(each, SendToSlot)]
    assert sent[0] == (1, AddSplits("op-source", 1, (make_split("split-0"),)))
    triggered = [type(message) for _, message in sent[1:]]
    assert (TriggerCheckpoint in triggered) is not fails
