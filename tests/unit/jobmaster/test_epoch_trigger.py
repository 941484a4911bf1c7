"""When the next epoch begins."""

from __future__ import annotations

from firesteel.execution.epochs.trigger import (
    AvailableNowTrigger,
    ContinuousTrigger,
    EpochOutcome,
    IntervalTrigger,
    create_epoch_trigger,
)
from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings, EpochTriggerKind

NOTHING = EpochOutcome()
RECORDS = EpochOutcome(records=5)
FIRST, SECOND = ("source", 0), ("source", 1)


def continuous(now: int = 0) -> ContinuousTrigger:
    return ContinuousTrigger(EpochSettings(idle_interval=200), now)


def interval(now: int = 0) -> IntervalTrigger:
    return IntervalTrigger(EpochSettings(EpochTriggerKind.INTERVAL, interval=1000), now)


def available_now(*sources: tuple[str, int]) -> AvailableNowTrigger:
    return AvailableNowTrigger(EpochSettings(EpochTriggerKind.AVAILABLE_NOW), 0, sources)


def test_the_option_chooses() -> None:
    kinds = [
        type(create_epoch_trigger(EpochSettings(kind), 0, [FIRST]))
        for kind in (EpochTriggerKind.CONTINUOUS, EpochTriggerKind.INTERVAL, EpochTriggerKind.AVAILABLE_NOW)
    ]
    assert kinds == [ContinuousTrigger, IntervalTrigger, AvailableNowTrigger]


def test_continuous_goes_on_at_once_while_there_is_data_or_backlog() -> None:
    trigger = continuous(now=50)
    assert trigger.due == 50
    trigger.epoch_ended(RECORDS, 300)
    assert trigger.due == 300
    trigger.epoch_ended(EpochOutcome(has_backlog=True), 600)
    assert trigger.due == 600


def test_continuous_waits_longer_and_longer_for_nothing() -> None:
    trigger = continuous()
    waits = []
    for now in range(0, 80_000, 10_000):
        trigger.epoch_ended(NOTHING, now)
        waits.append(trigger.due - now)
    assert waits == [200, 400, 800, 1600, 2000, 2000, 2000, 2000]
    trigger.epoch_ended(RECORDS, 80_000)
    trigger.epoch_ended(NOTHING, 80_000)
    assert trigger.due == 80_200


def test_continuous_is_woken_by_a_timer_a_source_or_a_message() -> None:
    trigger = continuous()
    trigger.epoch_ended(EpochOutcome(next_timer=1090), 1000)
    trigger.timer_is_due(1090)
    assert trigger.due == 1090
    trigger.epoch_ended(EpochOutcome(next_timer=99_000), 1100)
    trigger.epoch_ended(EpochOutcome(next_timer=99_000), 1200)
    assert trigger.due == 1200 + 800
    trigger.source_is_ready(1300)
    assert trigger.due == 1300
    trigger.epoch_ended(NOTHING, 1400)
    trigger.task_has_work(FIRST, 1500)
    assert trigger.due == 1500


def test_continuous_pauses_after_a_checkpoint_that_failed() -> None:
    trigger = continuous()
    trigger.epoch_ended(RECORDS, 100)
    trigger.epoch_failed(100)
    assert trigger.due == 300


def test_interval_keeps_to_its_grid() -> None:
    trigger = interval(now=500)
    trigger.epoch_began(500)
    trigger.epoch_ended(RECORDS, 700)
    assert trigger.due == 1500
    trigger.epoch_began(1510)
    trigger.epoch_ended(EpochOutcome(records=5, has_backlog=True), 1600)
    assert trigger.due == 2500


def test_interval_begins_at_once_when_it_is_late_and_then_keeps_to_its_grid_again() -> None:
    trigger = interval()
    trigger.epoch_began(0)
    trigger.epoch_ended(RECORDS, 3_700)
    assert trigger.due <= 3_700
    trigger.epoch_began(3_700)
    trigger.epoch_ended(RECORDS, 3_800)
    assert trigger.due == 4_000


def test_an_interval_epoch_begun_by_a_timer_or_a_user_uses_up_no_turn() -> None:
    trigger = interval()
    trigger.epoch_began(0)
    trigger.epoch_ended(EpochOutcome(records=1, next_timer=300), 100)
    trigger.timer_is_due(300)
    assert trigger.due == 300
    trigger.epoch_began(300)
    trigger.epoch_ended(RECORDS, 350)
    assert trigger.due == 1000


def test_interval_does_not_wait_for_its_first_splits() -> None:
    trigger = interval()
    trigger.epoch_began(0)
    trigger.epoch_ended(NOTHING, 20)
    trigger.task_has_work(FIRST, 30)
    assert trigger.due == 30
    trigger.epoch_began(30)
    trigger.epoch_ended(RECORDS, 40)
    trigger.task_has_work(FIRST, 50)
    trigger.source_is_ready(60)
    assert trigger.due == 1000


def test_available_now_is_over_when_every_source_has_been_dry_once() -> None:
    trigger = available_now(FIRST, SECOND)
    trigger.epoch_ended(EpochOutcome(records=5, dry=frozenset({FIRST})), 10)
    assert not trigger.is_over
    assert trigger.due == 10
    trigger.epoch_ended(EpochOutcome(records=5, dry=frozenset({SECOND})), 20)
    assert trigger.is_over


def test_available_now_reads_the_splits_that_readers_asked_for() -> None:
    trigger = available_now(FIRST)
    trigger.epoch_ended(EpochOutcome(dry=frozenset({FIRST})), 10)
    trigger.task_has_work(FIRST, 11)
    assert not trigger.is_over
    trigger.epoch_ended(EpochOutcome(records=5, dry=frozenset({FIRST})), 20)
    assert trigger.is_over


def test_available_now_does_not_stop_with_a_checkpoint_that_failed() -> None:
    trigger = available_now(FIRST)
    trigger.epoch_failed(10)
    assert not trigger.is_over
    assert trigger.due > 10
