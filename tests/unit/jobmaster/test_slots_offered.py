"""What the JobMaster says when the host has too few slots, or enough that others hold."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError, NotEnoughSlotsError
from firesteel.jobmaster.model.events import SlotsOffered


@pytest.mark.parametrize(
    ("offers", "available", "held_by_others"),
    [
        ([], 0, False),
        ([(0, 0)], 0, False),
        ([(0, 0), (0, 1)], 1, False),
        ([(0, 1), (0, 2)], 0, True),
        ([(7, 1)], 0, False),  # another attempt's
    ],
)
def test_the_slots_there_are(harness: Any, offers: list[tuple[int, int]], available: int, held_by_others: bool) -> None:
    harness.start()
    for attempt, count in offers:
        harness.feed(SlotsOffered(attempt, count))
    harness.fire("slot-request-timeout")
    harness.attempt_ended()
    error = JobExecutionError("job", harness.done.failure).__cause__
    assert isinstance(error, NotEnoughSlotsError)
    assert (error.needed, error.available) == (2, available)
    assert ("held by others" in (error.hint or "")) is held_by_others


def test_an_offer_after_the_end_is_ignored(harness: Any) -> None:
    harness.cancel()
    harness.feed(SlotsOffered(0, 5))
    assert harness.done.failure is None
