"""When an attempt counts as waiting for other jobs' slots."""

from __future__ import annotations

from firesteel.jobmaster.model.events import SlotsQueued
from firesteel.jobmaster.slots.pool import SlotPool


def test_an_attempt_is_queued_until_the_slots_are_its_own() -> None:
    pool = SlotPool(0, 3)
    assert not pool.is_queued  # it was never told to wait
    pool.queued(SlotsQueued(0, ahead=1, free=4, total=4))
    assert pool.is_queued  # another comes first
    pool.queued(SlotsQueued(0, ahead=0, free=2, total=4))
    assert pool.is_queued
    pool.queued(SlotsQueued(0, ahead=0, free=3, total=4))
    assert not pool.is_queued  # their processes are being started
