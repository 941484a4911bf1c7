"""Which subtask takes over what was in flight when the parallelism changes."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.operators.async_wait.in_flight import PendingRecord, own_elements, snapshot_of
from firesteel.runtime.operators.async_wait.queue import Call


def _partly_emitted(value: Any, results: list[Any], emitted: int) -> Call:
    call = Call(value, 0)
    call.results, call.emitted, call.is_done = results, emitted, True
    return call


def test_results_that_are_left_go_with_the_later_records_of_their_key() -> None:
    items = [_partly_emitted("b", [1, 2, 3], 1), Call("a", 0), Call("b", 0)]
    stored = snapshot_of(items, subtask=0, parallelism=1)
    first, second = (list(own_elements(stored, subtask, 2, lambda value: "ab".index(value))) for subtask in range(2))
    assert first == [PendingRecord("a", 0)]
    left, later = second
    assert (left.results, later) == ([2, 3], PendingRecord("b", 0))  # type: ignore[union-attr]


def test_without_keys_elements_of_a_subtask_stay_together() -> None:
    stored = [item for subtask in range(3) for item in snapshot_of([Call(subtask, 0), Call(-subtask, 0)], subtask, 3)]
    assert [[element.value for element in own_elements(stored, subtask, 2, None)] for subtask in range(2)] == [  # type: ignore[union-attr]
        [0, 0, 2, -2],
        [1, -1],
    ]
