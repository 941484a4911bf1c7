"""A source operator through checkpoints: its splits, and how far event time had come."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.checkpoint.handles import SPLIT, UNION
from firesteel.runtime.operators.base import StateInitializationContext
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.state.operator_state import OperatorStateBackend
from firesteel.runtime.time.watermark_state import WATERMARKS
from firesteel.testing import ABORT, PAUSE, WATERMARK, At, FakeClock, TestingSource
from firesteel.testing.operator_context import FakeOperatorContext
from firesteel.testing.source import TestingSplit

INTERVAL = 200


class Subtask:
    """One subtask of a source, with the enumerator's part played by the test."""

    def __init__(
        self, source, splits=(), subtask=0, parallelism=1, strategy=None, restored=None, attempt=0, clock=None
    ):
        self.context = FakeOperatorContext(None, clock)
        self.context.runtime_context.get_attempt_number = lambda: attempt
        strategy = strategy or WatermarkStrategy.no_watermarks()
        self.operator = SourceOperator(pickle.loads(pickle.dumps(source)), strategy, INTERVAL)
        self.requests = 0
        self.operator.connect(subtask, parallelism, self._request, lambda watermark: None, lambda event: None)
        state = self.context.operator_state = restored or OperatorStateBackend()
        checkpoint_id = None if restored is None else 1
        self.operator.initialize_state(StateInitializationContext(self.context, checkpoint_id))
        assert state.restored("_splits") == []
        self.operator.open(self.context)
        self.operator.add_splits([TestingSplit(str(split)) for split in splits])

    def _request(self):
        self.requests += 1

    def poll(self, times=1):
        for _ in range(times):
            self.operator.poll()
        return self

    def lists(self):
        """What a snapshot keeps: name → (mode, items)."""
        backend = OperatorStateBackend()
        self.operator.snapshot_state(1, backend)
        return {name: (mode, list(map(pickle.loads, items))) for name, mode, items in backend.snapshot().lists}

    @property
    def values(self):
        return [value for value, _ in self.context.output]


def restored_from(*subtasks, share=slice(None)):
    """The state a new subtask gets: its share of the splits, and all watermarks."""
    backend = OperatorStateBackend()
    lists = [subtask.lists() for subtask in subtasks]
    splits = [split for entry in lists for split in entry.get("_splits", ("", []))[1]]
    backend._restored["_splits"] = (SPLIT, splits[share])
    backend._restored[WATERMARKS] = (UNION, [item for entry in lists for item in entry[WATERMARKS][1]])
    return backend


def test_splits_go_on_at_their_next_record():
    source = TestingSource([1, PAUSE(1000), 2, 3])
    first = Subtask(source, [0]).poll()
    assert first.lists()["_splits"] == (SPLIT, [TestingSplit("0", 1)])
    again = Subtask(source, restored=restored_from(first)).poll(2)
    assert again.values == []
    again.context.clock.advance(1000)
    assert again.poll().values == [2, 3]


def test_a_reader_has_its_splits_before_it_starts():
    again = Subtask(TestingSource([1, 2]), restored=restored_from(Subtask(TestingSource([1, 2]), [0])))
    assert again.operator.has_data(0.0)
    assert again.poll().values == [1, 2]


def test_an_ended_source_keeps_nothing():
    ended = Subtask(TestingSource([1]), [0])
    ended.operator.no_more_splits()
    ended.poll(3)
    assert ended.operator.ended
    assert ended.lists() == {}


def test_event_time_goes_on_where_it_was():
    source = TestingSource([At("a", 100), WATERMARK(100), PAUSE(1), At("b", 50)])
    first = Subtask(source, [0]).poll(4)
    assert first.context.watermarks == [100]
    again = Subtask(source, restored=restored_from(first))
    assert again.context.watermarks == [], "not before the first poll: outputs may not be there yet"
    again.poll(3)
    again.context.clock.advance(1)
    again.poll()
    assert (again.context.watermarks, again.values) == ([100], ["b"])


def test_a_checkpoint_before_the_first_poll_keeps_what_was_restored():
    source = TestingSource([At("a", 100), WATERMARK(100), PAUSE(1), "b"])
    first = Subtask(source, [0]).poll(3)
    second = Subtask(source, restored=restored_from(first))
    third = Subtask(source, restored=restored_from(second)).poll()
    assert third.context.watermarks == [100]


def test_every_split_keeps_its_own_watermark_wherever_it_is_read():
    source = TestingSource.with_splits([WATERMARK(10), PAUSE(9)], [WATERMARK(5), PAUSE(1), WATERMARK(20), PAUSE(9)])
    one = Subtask(source, [0], 0, 2).poll(3)
    two = Subtask(source, [1], 1, 2).poll(3)
    assert (one.context.watermarks, two.context.watermarks) == ([10], [5])
    together = Subtask(source, restored=restored_from(one, two)).poll(4)
    assert together.context.watermarks == [5], "the lowest of those that had been sent"
    together.context.clock.advance(1)
    together.poll(2)
    assert together.context.watermarks == [5, 10], "the first split was at 10, though its watermark was sent elsewhere"


def test_a_subtask_that_had_no_watermark_yet_does_not_get_anothers():
    source = TestingSource.with_splits([PAUSE(1), "a"], [WATERMARK(5), PAUSE(1)])
    one, two = Subtask(source, [0], 0, 2).poll(2), Subtask(source, [1], 1, 2).poll(2)
    again = [
        Subtask(source, subtask=index, parallelism=2, restored=restored_from(one, two, share=slice(index, index + 1)))
        for index in range(2)
    ]
    assert [subtask.poll().context.watermarks for subtask in again] == [[], [5]]
    assert Subtask(source, restored=restored_from(one, two)).poll().context.watermarks == []


@pytest.mark.parametrize("attempt", range(3))
def test_an_abort_fails_its_own_attempt_wherever_that_went_on(attempt):
    source = TestingSource([1, ABORT("first"), 2, ABORT("second"), 3])
    for position in range(5):
        aborts_left = {0: ["first"] if position <= 1 else [], 1: ["second"] if position <= 3 else [], 2: []}[attempt]
        backend = OperatorStateBackend()
        backend._restored["_splits"] = (SPLIT, [TestingSplit("0", position)])
        subtask = Subtask(source, restored=backend, attempt=attempt)
        if aborts_left:
            with pytest.raises(Exception, match=aborts_left[0]):
                subtask.poll(9)
        else:
            assert subtask.poll(9).values[-1:] == [3]


def test_watermarks_in_the_middle_of_a_stream_go_on_too():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))

    def operator(restored=None):
        context = FakeOperatorContext(None, FakeClock())
        context.operator_state = restored or OperatorStateBackend()
        created = TimestampsAndWatermarksOperator(strategy, INTERVAL)
        created.initialize_state(StateInitializationContext(context, None if restored is None else 1))
        created.open(context)
        return created, context

    first, context = operator()
    first.process_batch(["a"], [1000])
    context.clock.advance(INTERVAL)
    assert context.watermarks == [989]
    state = OperatorStateBackend()
    first.snapshot_state(1, state)
    [(_, mode, items)] = state.snapshot().lists
    restored = OperatorStateBackend()
    restored._restored[WATERMARKS] = (mode, list(map(pickle.loads, items)))
    second, context = operator(restored)
    second.process_batch(["late"], [500])
    context.clock.advance(INTERVAL)
    assert context.watermarks == [989]
    second.process_batch(["b"], [2000])
    context.clock.advance(INTERVAL)
    assert context.watermarks == [989, 1989]
