"""Fault points that act from the nth time on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.process import fault_points


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    fault_points.arm("")


def _fails(point: str) -> bool:
    try:
        fault_points.reach(point)
    except OSError:
        return True
    return False


def test_an_action_waits_for_its_number() -> None:
    fault_points.arm("here=raise#3")
    assert [_fails("here") for _ in range(4)] == [False, False, True, True]


def test_with_a_file_it_happens_once_from_its_number_on(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch()
    fault_points.arm(f"here=raise#2@{token}")
    assert [_fails("here") for _ in range(4)] == [False, True, False, False]


def test_arming_again_counts_again() -> None:
    fault_points.arm("here=raise#2")
    assert not _fails("here")
    fault_points.arm("here=raise#2")
    assert not _fails("here")
    assert _fails("here")
