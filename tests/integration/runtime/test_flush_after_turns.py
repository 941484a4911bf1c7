"""Records that wait in an output longer than the buffer timeout leave before their task goes on."""

from __future__ import annotations

import pytest

from firesteel.testing import test_environment
from tests.support.jobs.virtual_slots import VirtualSlots, endless_numbers, spend

STALL_S = 2.0
"""Much longer than the buffer timeout."""
_received: list[int] = []
_received_at_stalls: list[tuple[int, int]] = []


def stall_at_every_tenth(number: int) -> int:
    if number % 10 == 0:
        _received_at_stalls.append((number, len(_received)))
        spend(STALL_S)
    else:
        spend(1e-6)
    return number


def receive(number: int) -> bool:
    _received.append(number)
    return False


@pytest.fixture(autouse=True)
def _nothing_received() -> None:
    _received.clear()
    _received_at_stalls.clear()


def test_a_stall_does_not_delay_results_of_before_the_stall_before_it() -> None:
    env = test_environment(1)
    endless_numbers(env).rebalance().map(stall_at_every_tenth).rebalance().filter(receive).print()
    VirtualSlots(env).run(60.0)
    assert len(_received_at_stalls) > 10
    # all up to the stall before are there, also the record that stalled
    assert [(at, count) for at, count in _received_at_stalls if count < at - 9] == []
