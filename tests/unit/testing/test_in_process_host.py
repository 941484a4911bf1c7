"""The host that runs all slots of a job in one thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.runtime.model import messages
from firesteel.testing.in_process import InProcessHost


@pytest.mark.parametrize(("attempt", "is_delivered"), [(1, False), (2, True), (3, False)])
def test_only_calls_for_the_present_attempt_reach_its_slots(attempt: int, is_delivered: bool) -> None:
    # calls for an attempt that has ended may come late: sends and starts are made by two threads
    delivered: list[Any] = []
    host = InProcessHost()
    host._executor = SimpleNamespace(deliver=delivered.append)  # type: ignore[assignment]
    host._attempt = SimpleNamespace(number=2)  # type: ignore[assignment]
    host.send(attempt, 0, messages.ClientAck("collect", 0, 7))
    host.kill(attempt, "a test")
    assert len(delivered) == (2 if is_delivered else 0)
