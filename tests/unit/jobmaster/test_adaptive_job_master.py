"""What the JobMaster does about the adaptive scheduler's decisions; the test plays the host and the slots."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError, NotEnoughSlotsError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.graph.rescaling import with_parallelism
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.events import MetadataStored, RescaleJob, SlotsAvailable, TriggerSavepoint
from firesteel.jobmaster.model.instructions import KillAttempt, Say, StartAttempt, StoreMetadata
from firesteel.jobmaster.model.settings import AdaptiveSettings
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy, NoRestartStrategy
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    CancelSlot,
    Deploy,
    NotifyCheckpointComplete,
    ReaderStarted,
    TriggerCheckpoint,
)
from firesteel.runtime.model.state_handles import TaskStateSnapshot
from tests.support.checkpoints.harness import location_of, savepoint_location_of
from tests.support.jobs.random_events import explore, machine

ADAPTIVE = AdaptiveSettings(
    resource_wait_timeout=60_000,
    submission_stabilization_timeout=1_000,
    cooldown=3_000,
    stabilization_timeout=6_000,
    max_delay=40_000,
    checkpointing=True,
)


@pytest.fixture
def make_adaptive(make_harness: Any, make_source: Any) -> Any:
    """A harness whose JobMaster is adaptive and takes checkpoints, though hardly ever by itself."""

    class RestorableSource(make_source):  # type: ignore[misc]
        def restore_enumerator(self, context: Any, state: Any) -> Any:
            return self.create_enumerator(context)

    class AdaptiveHarness(make_harness):  # type: ignore[misc]
        def __init__(self, restart_strategy: Any = None, parallelism: int = 4, adaptive: Any = ADAPTIVE) -> None:
            super().__init__(restart_strategy, RestorableSource(), parallelism=parallelism)
            interval = 3_600_000 if adaptive.checkpointing else None
            coordinator = CheckpointCoordinator(
                CheckpointSettings(interval=interval),
                "job-id",
                "job",
                location_of=location_of,
                savepoint_location_of=savepoint_location_of,
                random_source=lambda: 0.9,
            )
            jm_settings = replace(self.jm.settings, adaptive=adaptive, checkpointing=adaptive.checkpointing)
            strategy = restart_strategy or NoRestartStrategy()
            self.jm = JobMaster(self.graph, strategy, jm_settings, coordinator)

        @property
        def graph(self) -> Any:
            return self.jm.execution_graph if hasattr(self, "jm") else self._first_graph

        @graph.setter
        def graph(self, graph: Any) -> None:
            self._first_graph = graph

        def available(self, slots: int) -> Any:
            return self.feed(SlotsAvailable(slots))

        def run_with(self, slots: int) -> None:
            """All tasks of the attempt that was asked for run."""
            assert StartAttempt(self.jm.attempt, slots) in self.instructions
            self.slots = slots
            self.run()
            for slot in range(slots):
                self.say(slot, ReaderStarted(self.jm.attempt, "source", "op-source", slot))

        def acknowledge(self) -> Any:
            """All tasks acknowledge the checkpoint that was triggered last; its metadata is stored."""
            checkpoint_id = self.sent(TriggerCheckpoint)[-1][1].checkpoint_id
            for vertex in ("source", "map"):
                for slot in range(self.slots):
                    state, metrics = TaskStateSnapshot({}), CheckpointMetrics()
                    ack = AcknowledgeCheckpoint(self.jm.attempt, checkpoint_id, vertex, slot, state, metrics)
                    self.say(slot, ack)
            assert isinstance(self.instructions[-1], StoreMetadata)
            return self.feed(MetadataStored(checkpoint_id, f"/ckp/chk-{checkpoint_id}"))

    return AdaptiveHarness


def rescaled(h: Any, parallelism: int) -> RescaleJob:
    return RescaleJob(with_parallelism(h.jm.snapshot.wanted_job_graph, dict.fromkeys(("source", "map"), parallelism)))


def test_a_rescaling_to_more_slots_than_there_are_restarts_nothing_until_they_come(make_adaptive: Any) -> None:
    h = make_adaptive(parallelism=2)
    h.start()
    h.available(2)
    h.run_with(2)
    h.feed(rescaled(h, 4))
    assert h.status is JobStatus.RUNNING
    assert not h.sent(TriggerCheckpoint)
    h.available(4)
    h.fire("slots")
    h.acknowledge()
    assert h.status is JobStatus.RESTARTING
    h.attempt_ended()
    assert StartAttempt(1, 4) in h.instructions


def test_a_rescaling_that_is_taken_back_in_time_restarts_nothing(make_adaptive: Any) -> None:
    h = make_adaptive(parallelism=2)
    h.start()
    h.available(2)
    h.run_with(2)
    h.feed(rescaled(h, 1))
    assert h.sent(TriggerCheckpoint)
    h.feed(rescaled(h, 2))
    h.acknowledge()
    assert h.status is JobStatus.RUNNING


def test_it_waits_in_created_until_it_has_its_slots(make_adaptive: Any) -> None:
    h = make_adaptive()
    h.start()
    assert (h.status, h.started) == (JobStatus.CREATED, [])
    h.available(2)
    assert h.started == []
    h.fire("slots")
    assert StartAttempt(0, 2) in h.instructions
    h.run_with(2)
    assert h.status is JobStatus.RUNNING
    assert [message.slots_total for _, message in h.sent(Deploy)] == [2, 2]
    assert {len(vertex.task_vertices) for vertex in h.graph.job_vertices.values()} == {2}


def test_more_slots_a_checkpoint_and_a_restart_that_is_no_failure(make_adaptive: Any) -> None:
    h = make_adaptive()
    h.start()
    h.available(2)
    h.fire("slots")
    h.run_with(2)
    h.available(4)
    assert not h.sent(TriggerCheckpoint), "it has run for a moment only"
    h.fire("slots")
    assert len(h.sent(TriggerCheckpoint)) == 2
    told = h.acknowledge()
    assert h.status is JobStatus.RESTARTING
    messages = [type(each.message) for each in told if hasattr(each, "message")]
    assert messages == [NotifyCheckpointComplete] * 2 + [CancelSlot] * 2
    assert "restart-delay" not in h.timers
    # what the slots say while they end is no failure either
    h.failed(0, TaskFailure("interrupted"))
    h.stopped(1)
    h.attempt_ended(TaskFailure("stage failed"))
    assert StartAttempt(1, 4) in h.instructions
    h.run_with(4)
    assert h.jm.failure is None
    assert h.jm.exception_history.entries() == ()
    assert [vertex.current.attempt_number for vertex in h.graph.job_vertices["map"].task_vertices] == [1, 1, 0, 0]
    assert "slots" not in h.timers


def test_after_a_loss_it_goes_on_with_what_is_left(make_adaptive: Any) -> None:
    h = make_adaptive(FixedDelayRestartStrategy(1, 500))
    h.start()
    h.available(4)
    h.run_with(4)
    h.available(3)
    h.lost(3)
    h.fire("failure-grace")
    h.attempt_ended()
    h.fire("restart-delay")
    assert (h.status, h.started) == (JobStatus.CREATED, [0])
    h.fire("slots")
    h.run_with(3)
    assert h.status is JobStatus.RUNNING
    assert h.jm.failure.error_type == "SlotLost"


def test_slots_that_vanish_while_the_attempt_starts_are_not_waited_for(make_adaptive: Any) -> None:
    h = make_adaptive()
    h.start()
    h.available(4)
    assert KillAttempt(0, "the remaining slots cannot be stopped") in h.available(2)
    assert h.status is JobStatus.RESTARTING
    h.attempt_ended()
    h.fire("slots")
    h.run_with(2)
    assert h.status is JobStatus.RUNNING


def test_without_slots_it_fails_by_the_restart_strategy(make_adaptive: Any) -> None:
    h = make_adaptive(FixedDelayRestartStrategy(1, 500))
    h.start()
    h.available(0)
    h.fire("slots")
    h.fire("restart-delay")
    h.fire("slots")
    error = JobExecutionError("job", h.done.failure).__cause__
    assert isinstance(error, NotEnoughSlotsError)
    assert (error.needed, error.available) == (1, 0)
    assert h.started == []


def test_a_job_that_stops_with_a_savepoint_is_not_rescaled(make_adaptive: Any) -> None:
    h = make_adaptive()
    h.start()
    h.available(2)
    h.fire("slots")
    h.run_with(2)
    h.available(4)
    h.feed(TriggerSavepoint(1, SnapshotKind.SAVEPOINT, "/savepoints", StopMode.SUSPEND))
    h.now += 100_000
    assert "slots" not in h.timers
    h.acknowledge()
    assert h.status is JobStatus.RUNNING
    h.all_tasks("FINISHED")
    for slot in range(2):
        h.stopped(slot)
    assert h.status is JobStatus.FINISHED


def test_without_checkpoints_it_says_once_that_it_stays_as_it_is(make_adaptive: Any) -> None:
    h = make_adaptive(adaptive=replace(ADAPTIVE, checkpointing=False))
    h.start()
    h.available(2)
    h.fire("slots")
    h.run_with(2)
    (said,) = [instruction for instruction in h.available(3) if isinstance(instruction, Say)]
    assert "2 of 4 requested slots" in said.text
    assert h.available(4) == []


@pytest.mark.parametrize("restarts", [0, 2])
def test_any_order_of_events_ends_in_one_terminal_status_with_slots_that_come_and_go(
    make_adaptive: Any, restarts: int
) -> None:
    chance = random.Random(restarts)

    class ComingAndGoing(make_adaptive):  # type: ignore[misc]
        """Before some events the number of slots changes."""

        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            super().feed(SlotsAvailable(2))

        def feed(self, event: Any, after: int = 1) -> Any:
            if self.done is None and chance.random() < 0.05:
                super().feed(SlotsAvailable(chance.choice([0, 1, 2])))
            return super().feed(event, after)

    seen: set[Any] = set()
    events = machine(ComingAndGoing, restarts, seen)

    class Events(events):  # type: ignore[misc, valid-type]
        def teardown(self) -> None:
            """Restarts without a failure come on top of the others, so there may be more of them."""
            for _ in range(1000):
                if self.h.done is not None:
                    break
                self.first_timer()
            assert self.h.status.is_terminal_state(), f"never ended:\n{self.h.jm.story}"
            seen.add((self.h.status, "end"))

    ends = {(status, "end") for status in (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)}
    explore(Events, 150, 30, seen, ends)
