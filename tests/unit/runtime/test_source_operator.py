"""A source operator through checkpoints: its splits, and how far event time had come."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.state_handles import SPLIT, UNION
from firesteel.runtime.operators.base import StateInitializationContext
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.time.watermark_state import WATERMARKS, SubtaskWatermarks, WatermarkState
from firesteel.testing import ABORT, EOF, PAUSE, WATERMARK, At, FakeClock, TestingSource
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


def test_records_read_since_the_last_interval_count_after_a_restore():
    """Even if no record follows: the new generator does not know them."""
    source = TestingSource([At(1, 1000), At(2, 1500)], bounded=False)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
    first = Subtask(source, [0], strategy=strategy).poll(2)
    assert first.context.watermarks == []
    again = Subtask(source, strategy=strategy, restored=restored_from(first))
    again.operator.emit_periodic()
    assert again.context.watermarks == [1399]


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


def test_a_split_keeps_the_watermark_it_had_in_its_own_subtask():
    """Also if a source gives splits of several subtasks the same name."""
    source = TestingSource.with_splits([WATERMARK(10), PAUSE(1)], [WATERMARK(900), PAUSE(1)])
    one, two = Subtask(source, [0], 0, 2).poll(2), Subtask(source, [1], 1, 2).poll(2)
    for subtask in (one, two):
        assigner = subtask.operator._assigner
        assigner._splits = {"same": split for split in assigner._splits.values()}
    state = WatermarkState(tuple(item for each in (one, two) for item in each.lists()[WATERMARKS][1]))
    assert [state.splits_of(index, 2) for index in range(2)] == [{"same": 10}, {"same": 900}]
    assert state.splits_of(0, 3) == {"same": 10}, "never ahead of what it was in any of them"


def test_the_end_of_a_split_within_an_interval_moves_event_time():
    """A file may be read from beginning to end between two periodic watermarks."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    subtask = Subtask(TestingSource([At("a", 100), EOF()], bounded=False), [0], strategy=strategy).poll(2)
    subtask.context.clock.advance(INTERVAL)
    assert subtask.context.watermarks == [99]


def test_the_end_of_a_split_of_a_bounded_source_does_not():
    """It need not be the one with the latest records: event time ends with the source."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    subtask = Subtask(TestingSource([At("a", 100), EOF()]), [0], strategy=strategy).poll(2)
    subtask.context.clock.advance(INTERVAL)
    assert subtask.context.watermarks == []


@pytest.mark.parametrize("ends", ["at its end", "with a drain"])
def test_a_source_that_is_idle_is_active_before_event_time_ends(ends):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(1000))
    subtask = Subtask(
        TestingSource([At("a", 100), PAUSE(10_000)], bounded=ends == "at its end"), [0], strategy=strategy
    )
    subtask.poll(2)
    for _ in range(8):
        subtask.context.clock.advance(INTERVAL)
    assert subtask.context.events == [99, "idle"]
    subtask.operator.finish()
    assert subtask.context.events == [99, "idle", "active", MAX_WATERMARK]


class Middle:
    """One subtask of assign_timestamps_and_watermarks."""

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))

    def __init__(self, subtask=0, parallelism=1, restored=(), strategy=strategy):
        self.context = FakeOperatorContext(None, FakeClock())
        self.context.runtime_context.get_index_of_this_subtask = lambda: subtask
        self.context.runtime_context.get_number_of_parallel_subtasks = lambda: parallelism
        self.context.operator_state = OperatorStateBackend()
        if restored:
            self.context.operator_state._restored[WATERMARKS] = (UNION, list(restored))
        self.operator = TimestampsAndWatermarksOperator(strategy, INTERVAL)
        self.operator.initialize_state(StateInitializationContext(self.context, 1 if restored else None))
        self.operator.open(self.context)

    def process(self, *times):
        self.operator.process_batch([str(time) for time in times], list(times))
        self.context.clock.advance(INTERVAL)
        return self

    def snapshot(self):
        state = OperatorStateBackend()
        self.operator.snapshot_state(1, state)
        ((_, mode, items),) = state.snapshot().lists
        assert mode == UNION
        return list(map(pickle.loads, items))


def test_watermarks_in_the_middle_of_a_stream_go_on_too():
    first = Middle().process(1000)
    assert first.context.watermarks == [989]
    second = Middle(restored=first.snapshot()).process(500)
    assert second.context.watermarks == [989]
    assert second.process(2000).context.watermarks == [989, 1989]


def test_in_the_middle_of_a_stream_each_subtask_goes_on_from_its_own_watermark():
    before = [Middle(index, 3).process(time) for index, time in enumerate((100, 20_000, 500))]
    state = [item for each in before for item in each.snapshot()]
    after = [Middle(index, 3, restored=state).process(0) for index in range(3)]
    assert [each.context.watermarks for each in after] == [[89], [19_989], [489]]
    assert after[0].process(101).context.watermarks == [89, 90]
    again = [Middle(index, 3, restored=[item for each in after for item in each.snapshot()]) for index in range(3)]
    assert [each.process(0).context.watermarks for each in again] == [[90], [19_989], [489]]


def test_records_in_the_middle_of_a_stream_since_the_last_interval_count_after_a_restore():
    """Even if no record follows: the new generator does not know them."""
    before = [Middle(index, 2) for index in range(2)]
    for each, time in zip(before, (1000, 3000), strict=True):
        each.operator.process_batch([str(time)], [time])
        assert each.context.watermarks == []
    state = [item for each in before for item in each.snapshot()]
    same = [Middle(index, 2, restored=state) for index in range(2)]
    fewer = Middle(0, 1, restored=state)
    for each in (*same, fewer):
        each.operator.emit_periodic()
    assert [each.context.watermarks for each in (*same, fewer)] == [[989], [2989], [989]]


def test_a_subtask_without_event_time_holds_back_all_after_a_rescale():
    before = [Middle(index, 2) for index in range(2)]
    before[0].operator.process_batch(["1000"], [1000])
    after = Middle(0, 1, restored=[item for each in before for item in each.snapshot()])
    after.operator.emit_periodic()
    assert after.context.watermarks == []


def test_what_was_stored_with_a_split_of_the_same_name_in_each_subtask():
    """Earlier versions did."""
    state = [SubtaskWatermarks(0, 2, 89, {"": 89}), SubtaskWatermarks(1, 2, 19_989, {"": 19_989})]
    after = [Middle(index, 2, restored=state) for index in range(2)]
    assert [each.process(101).context.watermarks for each in after] == [[89, 90], [19_989]]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_in_the_middle_of_a_stream_another_parallelism_goes_on_from_the_lowest_watermark(parallelism):
    before = [Middle(index, 2).process(time) for index, time in enumerate((100, 20_000))]
    state = [item for each in before for item in each.snapshot()]
    after = [Middle(index, parallelism, restored=state).process(0) for index in range(parallelism)]
    assert [each.context.watermarks for each in after] == [[89]] * parallelism
    not_begun = [Middle(0, 2).process(100), Middle(1, 2)]
    state = [item for each in not_begun for item in each.snapshot()]
    assert Middle(0, parallelism, restored=state).process(0).context.watermarks == [-11], "its own record's"


def test_a_checkpoint_before_the_first_record_keeps_what_was_restored():
    before = [Middle(index, 2).process(time) for index, time in enumerate((100, 20_000))]
    state = [item for each in before for item in each.snapshot()]
    again = [item for index in range(2) for item in Middle(index, 2, restored=state).snapshot()]
    assert again == state


def test_in_the_middle_of_a_stream_active_comes_before_the_end_of_event_time():
    middle = Middle(strategy=Middle.strategy.with_idleness(Duration.of_millis(1000))).process(1000)
    for _ in range(5):
        middle.context.clock.advance(INTERVAL)
    middle.operator.process_watermark(MAX_WATERMARK)
    assert middle.context.events == [989, "idle", "active", MAX_WATERMARK]
