"""With how many slots a job starts and when it is rescaled: the decisions alone, the time given.

The job wants 4 slots in one slot sharing group unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import NotEnoughSlotsError
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.model.instructions import FailJob, RequestSlots, RestartJob, Say, TakeCheckpoint
from firesteel.jobmaster.model.settings import AdaptiveSettings
from firesteel.jobmaster.slots.adaptive_scheduler import AdaptiveScheduler, SchedulingInstruction

SETTINGS = AdaptiveSettings(
    resource_wait_timeout=300,
    submission_stabilization_timeout=10,
    cooldown=30,
    stabilization_timeout=60,
    max_checkpoint_failures=2,
    max_delay=40,
    checkpointing=True,
)


class Scheduled:
    """A scheduler and its clock. ``decisions`` are what it wanted at which time; timers fire on the way."""

    def __init__(self, groups: Sequence[int] = (4,), settings: AdaptiveSettings = SETTINGS):
        self.scheduler = AdaptiveScheduler(groups, settings)
        self.now = 0
        self.decisions: list[tuple[int, SchedulingInstruction]] = []

    def wait(self) -> Scheduled:
        self.scheduler.wait_for_slots(self.now)
        return self.step()

    def available(self, slots: int) -> Scheduled:
        self.scheduler.slots_available(slots)
        return self.step()

    def step(self) -> Scheduled:
        while (decision := self.scheduler.decide(self.now)) is not None:
            self.decisions.append((self.now, decision))
        due = self.scheduler.next_due()
        assert due is None or due > self.now, "it would be asked again and again"
        return self

    def until(self, time: int) -> Scheduled:
        """Lets time pass; asks the scheduler only when it says so."""
        while (due := self.scheduler.next_due()) is not None and due <= time:
            self.now = due
            self.step()
        self.now = time
        return self

    def completed(self) -> Scheduled:
        self.scheduler.checkpoint_completed()
        return self.step()

    def failed(self) -> Scheduled:
        self.scheduler.checkpoint_failed()
        return self.step()

    def running(self, slots: int) -> Scheduled:
        """Executes with so many slots since now; nothing is decided yet."""
        self.available(slots).wait()
        self.until(self.now + SETTINGS.submission_stabilization_timeout)
        assert self.decisions[-1][1] == RequestSlots(slots)
        self.scheduler.executing(self.now)
        self.step()
        self.decisions.clear()
        return self


def rescale(before: int, slots: int) -> RestartJob:
    return RestartJob(f"the job is rescaled from {before} to {slots} slots")


# -- waiting for slots ---------------------------------------------------------------------------------


def test_with_all_slots_a_job_starts_at_once() -> None:
    assert Scheduled().available(4).wait().decisions == [(0, RequestSlots(4))]


def test_more_slots_than_it_wants_change_nothing() -> None:
    assert Scheduled().available(400).wait().decisions == [(0, RequestSlots(4))]


def test_nothing_is_decided_before_the_number_is_known() -> None:
    assert Scheduled().wait().until(299).decisions == []


def test_fewer_slots_are_taken_when_they_have_been_enough_for_a_while() -> None:
    assert Scheduled().wait().until(5).available(3).until(100).decisions == [(15, RequestSlots(3))]


def test_the_last_slots_end_the_wait() -> None:
    waiting = Scheduled().wait().available(2).until(5).available(3).until(7)
    assert waiting.available(4).decisions == [(7, RequestSlots(4))]


def test_what_comes_while_it_waits_is_used_but_does_not_make_it_wait_longer() -> None:
    assert Scheduled().available(1).wait().until(9).available(3).until(50).decisions == [(10, RequestSlots(3))]


def test_slots_that_go_again_start_the_wait_anew() -> None:
    waiting = Scheduled((4, 4)).available(2).wait().until(5).available(1).until(8).available(3)
    assert waiting.until(100).decisions == [(18, RequestSlots(2))]


def test_too_few_slots_for_too_long() -> None:
    waiting = Scheduled((4, 4)).available(1).wait()
    [(at, failed)] = waiting.until(1000).decisions
    assert at == 300
    assert isinstance(failed, FailJob)
    assert isinstance(failed.failure.cause, NotEnoughSlotsError)
    assert (failed.failure.cause.needed, failed.failure.cause.available) == (2, 1)
    assert "0.3 s" in failed.failure.message
    assert waiting.scheduler.next_due() is None


def test_the_wait_timeout_ends_a_long_stabilization() -> None:
    patient = replace(SETTINGS, submission_stabilization_timeout=10_000)
    assert Scheduled(settings=patient).available(2).wait().until(500).decisions == [(300, RequestSlots(2))]


def test_a_negative_wait_timeout_is_none() -> None:
    waiting = Scheduled(settings=replace(SETTINGS, resource_wait_timeout=-1)).available(0).wait()
    assert waiting.scheduler.next_due() is None
    assert waiting.until(10**9).available(4).decisions == [(10**9, RequestSlots(4))]


def test_slots_lost_before_the_tasks_run_are_not_waited_for() -> None:
    starting = Scheduled().available(4).wait().until(3).available(3)
    assert starting.decisions == [
        (0, RequestSlots(4)),
        (3, RestartJob("of the 4 requested slots, 3 are left")),
    ]
    assert starting.wait().until(50).decisions[2:] == [(13, RequestSlots(3))]


# -- executing -----------------------------------------------------------------------------------------


def test_all_slots_are_back_a_checkpoint_and_the_job_is_rescaled() -> None:
    job = Scheduled().running(2)
    start = job.now
    job.until(start + 35).available(4)
    assert job.decisions == [(start + 35, TakeCheckpoint())]
    job.until(start + 37).completed()
    assert job.decisions[1:] == [(start + 37, rescale(2, 4))]


def test_what_follows_a_rescale_does_not_wait_for_more() -> None:
    job = Scheduled().running(1)
    job.until(job.now + 100).available(3).until(job.now + 60).completed()
    assert job.decisions[-1][1] == rescale(1, 3)
    restarted = job.now
    assert job.wait().decisions[-1] == (restarted, RequestSlots(3))
    # but what follows a failure does
    job.scheduler.stopped()
    assert job.wait().until(restarted + 10).decisions[-1] == (restarted + 10, RequestSlots(3))


def test_during_the_cooldown_nothing_happens() -> None:
    job = Scheduled().running(2)
    start = job.now
    job.available(4).until(start + 29)
    assert job.decisions == []
    job.until(start + 30)
    assert job.decisions == [(start + 30, TakeCheckpoint())]


def test_some_of_the_slots_wait_for_the_others() -> None:
    job = Scheduled().running(1)
    start = job.now
    job.until(start + 50).available(2).until(start + 109)
    assert job.decisions == []
    job.until(start + 110).completed()
    assert job.decisions == [(start + 110, TakeCheckpoint()), (start + 110, rescale(1, 2))]


def test_slots_that_go_again_were_nothing() -> None:
    job = Scheduled().running(1)
    start = job.now
    job.until(start + 50).available(2).until(start + 80).available(1).until(start + 90).available(2)
    job.until(start + 149)
    assert job.decisions == []
    job.until(start + 150)
    assert job.decisions == [(start + 150, TakeCheckpoint())]


def test_slots_that_cannot_be_used_are_no_reason() -> None:
    job = Scheduled((4, 4)).running(2)
    assert job.available(3).until(job.now + 1000).decisions == []


def test_a_checkpoint_from_before_does_not_count() -> None:
    job = Scheduled().running(2)
    job.until(job.now + 40).completed()
    job.until(job.now + 10).available(4)
    assert [decision for _, decision in job.decisions] == [TakeCheckpoint()]


def test_failed_checkpoints_do_not_hold_up_for_ever() -> None:
    job = Scheduled().running(2)
    job.until(job.now + 40).failed().failed()
    job.available(4).until(job.now + 5).failed().until(job.now + 5)
    assert [decision for _, decision in job.decisions] == [TakeCheckpoint()]
    assert job.failed().decisions[1:] == [(job.now, rescale(2, 4))]


def test_nor_does_a_checkpoint_that_does_not_end() -> None:
    job = Scheduled().running(2)
    asked = job.now + 40
    job.until(asked).available(4).until(asked + 1000)
    assert job.decisions == [(asked, TakeCheckpoint()), (asked + 40, rescale(2, 4))]


def test_without_checkpoints_a_job_stays_as_it_is_and_that_is_said_once() -> None:
    job = Scheduled(settings=replace(SETTINGS, checkpointing=False)).running(2)
    job.available(3).until(job.now + 500).available(4).until(job.now + 500)
    [(_, said)] = job.decisions
    assert isinstance(said, Say)
    assert said.text.startswith(
        "The job runs with 2 of 4 requested slots. 3 are available now, but without checkpoints"
    )


def test_fewer_slots_while_it_runs_are_no_matter_until_one_is_lost() -> None:
    job = Scheduled().running(4)
    assert job.available(2).until(job.now + 1000).decisions == []
    job.scheduler.stopped()
    assert job.available(4).until(job.now + 1000).decisions == []


@given(
    groups=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    events=st.lists(
        st.one_of(
            st.tuples(st.just("slots"), st.integers(0, 12)),
            st.tuples(st.sampled_from(["pass", "completed", "failed", "stop"]), st.integers(1, 100)),
        ),
        max_size=40,
    ),
)
def test_whatever_happens_it_asks_only_for_slots_that_are_there(
    groups: list[int], events: list[tuple[str, int]]
) -> None:
    job = Scheduled(groups).wait()
    available: int | None = None
    seen = slots = 0
    for what, number in events:
        if what == "slots":
            available = number
            job.available(number)
        elif what == "completed":
            job.completed()
        elif what == "failed":
            job.failed()
        elif what == "stop":
            job.scheduler.stopped()
            job.wait()
        else:
            job.until(job.now + number)
        for _, decision in job.decisions[seen:]:
            if isinstance(decision, RequestSlots):
                assert available is not None
                assert len(groups) <= decision.slots <= min(available, sum(groups))
                slots = decision.slots
                job.scheduler.executing(job.now)
            elif isinstance(decision, RestartJob):
                if "rescaled" in decision.reason:
                    assert available is not None
                    more = range(slots + 1, min(available, sum(groups)) + 1)
                    assert decision in [rescale(slots, number) for number in more]
                job.wait()
            elif isinstance(decision, FailJob):
                job.wait()
        seen = len(job.decisions)


# -- settings ------------------------------------------------------------------------------------------


def test_the_default_scheduler_is_not_adaptive() -> None:
    assert AdaptiveSettings.from_configuration(Configuration()) is None


def test_flinks_defaults() -> None:
    config = Configuration().set_string("jobmanager.scheduler", "adaptive")
    assert AdaptiveSettings.from_configuration(config) == AdaptiveSettings(300_000, 10_000, 30_000, 60_000, 2, 0, False)


@pytest.mark.parametrize(("max_delay", "expected"), [(None, 4_000), ("7 s", 7_000)])
def test_how_long_a_checkpoint_is_waited_for(max_delay: str | None, expected: int) -> None:
    config = Configuration().set_string("jobmanager.scheduler", "adaptive")
    config.set_string("execution.checkpointing.interval", "1 s")
    config.set_string("jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures", "3")
    if max_delay is not None:
        config.set_string("jobmanager.adaptive-scheduler.rescale-trigger.max-delay", max_delay)
    settings = AdaptiveSettings.from_configuration(config)
    assert settings is not None
    assert (settings.max_delay, settings.checkpointing) == (expected, True)
