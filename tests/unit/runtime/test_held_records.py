"""A source whose turns end in the middle of what its reader gave: nothing is lost, late or twice."""

from __future__ import annotations

import pickle
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.model.state_handles import SPLIT, UNION
from firesteel.runtime.operators.base import StateInitializationContext
from firesteel.runtime.operators.held_records import HELD
from firesteel.runtime.operators.source import SPLITS, SourceOperator
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.time.watermark_state import WATERMARKS
from firesteel.testing import WATERMARK, At, TestingSource
from firesteel.testing.operator_context import FakeOperatorContext
from firesteel.testing.source import TestingSplit

BY_TIME = WatermarkStrategy.for_monotonous_timestamps()


class CuttingContext(FakeOperatorContext):
    """Ends turns after a number of records."""

    def __init__(self, cut: Any):
        super().__init__(None)
        self._cut = cut
        self.history: list[tuple[str, Any]] = []

    def emit(self, values: Any, timestamps: Any) -> None:
        super().emit(values, timestamps)
        self.history += [("record", (value, self.output[i - len(values)][1])) for i, value in enumerate(values)]

    def emit_in_turn(self, values: Any, timestamps: Any) -> int:
        taken = min(self._cut(), len(values))
        if taken < len(values):
            self.turn.end()
        self.emit(values[:taken], timestamps and timestamps[:taken])
        self.turn.rest = list(values[taken:])
        return len(values) - taken

    def emit_watermark(self, timestamp: int) -> None:
        super().emit_watermark(timestamp)
        self.history.append(("watermark", timestamp))


class Subtask:
    """One subtask of a source, whose task lets it take turns."""

    def __init__(self, source, subtask, parallelism, cut, splits=(), restored=None, strategy=BY_TIME):
        self.context = CuttingContext(cut)
        self.operator = SourceOperator(pickle.loads(pickle.dumps(source)), strategy, 200)
        self.operator.connect(subtask, parallelism, lambda: None, lambda watermark: None, lambda event: None)
        self.context.operator_state = restored or OperatorStateBackend()
        self.operator.initialize_state(StateInitializationContext(self.context, None if restored is None else 1))
        self.operator.open(self.context)
        self.operator.add_splits([TestingSplit(str(split)) for split in splits])

    def turn(self):
        self.context.turn.begin(1.0)
        if self.operator.has_data(0.0):
            self.operator.poll()
        self.context.turn.finish()
        self.operator.emit_periodic()

    def lists(self):
        backend = OperatorStateBackend()
        self.operator.snapshot_state(1, backend)
        return {name: list(map(pickle.loads, items)) for name, _, items in backend.snapshot().lists}


def restored(lists, index=0, parallelism=1):
    """What a subtask gets: its own splits, or its share of all, and what is for everybody."""
    backend = OperatorStateBackend()
    if parallelism == len(lists):
        splits = lists[index].get(SPLITS, [])
    else:
        splits = [split for entry in lists for split in entry.get(SPLITS, [])][index::parallelism]
    backend._restored[SPLITS] = (SPLIT, splits)
    for name in (WATERMARKS, HELD):
        items = [item for entry in lists for item in entry.get(name, [])]
        if items:
            backend._restored[name] = (UNION, items)
    return backend


def check(histories, expected):
    """Whether every record came once, in the order of its split, and none behind a watermark at or beyond it."""
    seen: dict[str, list[int]] = {}
    for attempt in histories:
        for subtask in attempt:
            watermark = -1
            for kind, what in subtask:
                if kind == "watermark":
                    assert what >= watermark
                    watermark = what
                else:
                    (split, number), time = what
                    assert time > watermark, "late"
                    seen.setdefault(split, []).append(number)
    assert seen == expected


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.integers(0, 1 << 30),
    st.booleans(),
)
def test_nothing_is_lost_late_or_twice(sizes, parallelisms, seed, ends):
    rng = random.Random(seed)
    source = TestingSource.with_splits(
        *([At((str(split), n), 10 * n + 1) for n in range(size)] for split, size in enumerate(sizes))
    )
    lists, histories = None, []
    for attempt, parallelism in enumerate(parallelisms):
        subtasks = []
        for index in range(parallelism):
            state = None if lists is None else restored(lists, index, parallelism)
            splits = range(len(sizes))[index::parallelism] if lists is None else ()
            subtasks.append(Subtask(source, index, parallelism, lambda: rng.choice((0, 1, 1, 2, 50)), splits, state))
            if ends:
                subtasks[-1].operator.no_more_splits()
        is_last = attempt == len(parallelisms) - 1
        for _ in range(200 if is_last else rng.randrange(6)):
            for subtask in subtasks:
                subtask.turn()
        histories.append([subtask.context.history for subtask in subtasks])
        lists = [subtask.lists() for subtask in subtasks]
    if ends:
        assert all(subtask.operator.ended for subtask in subtasks)
    check(histories, {str(split): list(range(size)) for split, size in enumerate(sizes) if size})


def test_a_checkpoint_keeps_what_is_left_beside_the_position():
    source = TestingSource([At(n, n) for n in range(5)])
    subtask = Subtask(source, 0, 1, lambda: 2, [0])
    subtask.turn()
    assert [value for value, _ in subtask.context.output] == [0, 1]
    assert subtask.operator.records == 2
    lists = subtask.lists()
    assert [item.held.values for item in lists[HELD]] == [[2, 3, 4]]
    again = Subtask(source, 0, 1, lambda: 9, restored=restored([lists]))
    again.turn()
    again.turn()
    assert [value for value, _ in again.context.output] == [2, 3, 4]
    assert HELD not in again.lists()


def test_watermarks_of_the_reader_keep_their_place():
    source = TestingSource([At("a", 1), At("b", 2), WATERMARK(2), At("c", 3), WATERMARK(3)])
    subtask = Subtask(source, 0, 1, lambda: 1, [0], strategy=WatermarkStrategy.no_watermarks())
    for _ in range(9):
        subtask.turn()
    assert subtask.context.history == [
        ("record", ("a", 1)),
        ("record", ("b", 2)),
        ("watermark", 2),
        ("record", ("c", 3)),
        ("watermark", 3),
    ]


def test_a_split_with_records_left_is_not_idle():
    strategy = BY_TIME.with_idleness(1000)
    subtask = Subtask(TestingSource([At(n, n) for n in range(5)]), 0, 1, lambda: 1, [0], strategy=strategy)
    for _ in range(4):
        subtask.turn()
        subtask.context.clock.advance(5000)
    assert "idle" not in subtask.context.events


def test_what_is_held_gets_its_timestamps_in_parts():
    calls = []
    strategy = BY_TIME.with_timestamp_assigner(lambda value, _time: calls.append(value) or value)
    subtask = Subtask(TestingSource(list(range(500))), 0, 1, lambda: 2, [0], strategy=strategy)
    subtask.operator.poll()
    assert len(calls) == 500
    while not subtask.operator.ended and len(calls) < 10_000:
        subtask.operator.no_more_splits()
        subtask.context.turn.begin(1.0)
        subtask.operator.poll(4)
        subtask.context.turn.finish()
    assert [value for value, _ in subtask.context.output] == list(range(500))
    assert len(calls) <= 3 * 500


def test_the_end_of_a_stopped_job_comes_behind_what_is_left():
    subtask = Subtask(TestingSource([At(n, n) for n in range(5)]), 0, 1, lambda: 2, [0])
    subtask.turn()
    subtask.operator.finish()
    records = [what[0] for kind, what in subtask.context.history if kind == "record"]
    assert records == [0, 1, 2, 3, 4]
    assert subtask.context.history[-1][0] == "watermark"


@pytest.mark.parametrize("owned", [False, True])
def test_a_reader_may_change_what_it_gave(owned):
    records = [[1], [2], [3]]

    subtask = Subtask(TestingSource([]), 0, 1, lambda: 1)
    subtask.operator.emits_own_records = owned
    subtask.operator.collect("0", records)
    if not owned:
        records[2].append("changed")
    records.clear()
    for _ in range(3):
        subtask.turn()
    assert [value for value, _ in subtask.context.output] == [[1], [2], [3]]


@pytest.mark.parametrize("is_picklable", [True, False])
def test_held_records_that_no_checkpoint_can_keep_are_processed_before_the_barrier(is_picklable):
    subtask = Subtask(TestingSource.with_splits([]), 0, 1, lambda: 2, splits=[0])
    records = [(n, None if is_picklable else threading.Lock()) for n in range(5)]
    subtask.context.turn.begin(1.0)
    subtask.operator.collect("0", records, list(range(5)))
    subtask.context.turn.finish()
    subtask.operator.prepare_snapshot_pre_barrier(1)
    assert [value for value, _time in subtask.context.output] == records[: 2 if is_picklable else 5]
    kept = [item.held.values for item in subtask.lists().get(HELD, [])]
    assert kept == ([records[2:]] if is_picklable else [])
