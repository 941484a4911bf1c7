"""Timestamps and watermarks at a source: per split, with idleness, and with watermarks in the records."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.watermark_generation import WatermarkAssigner
from firesteel.testing import FakeClock

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))


IDLE, ACTIVE = "idle", "active"


class Bench:
    """An assigner whose output is one list of batches, watermarks and statuses in order."""

    def __init__(self, strategy: WatermarkStrategy, split_gap_ms: int = 0):
        self.clock = FakeClock()
        self.out: list[Any] = []
        self.left = 0
        """How many records of a batch are not emitted."""
        self.assigner = WatermarkAssigner(
            strategy,
            InputClock(self.clock),
            self._emit_in_turn,
            self._emit,
            self.out.append,
            lambda idle: self.out.append(IDLE if idle else ACTIVE),
            split_gap_ms=split_gap_ms,
        )

    def _emit(self, values: Any, timestamps: Any) -> None:
        self.out.append((list(values), timestamps and list(timestamps)))

    def _emit_in_turn(self, values: Any, timestamps: Any) -> int:
        taken = len(values) - self.left
        self._emit(values[:taken], timestamps and timestamps[:taken])
        return self.left

    def tick(self, milliseconds: int = 200) -> list[Any]:
        """Lets an interval pass; returns the watermarks and statuses sent."""
        before = len(self.out)
        self.clock.advance(milliseconds)
        self.assigner.periodic()
        return self.out[before:]

    def process(self, *values: Any, split: str = "s", timestamps: Any = None) -> list[Any]:
        """Processes a batch; returns what was sent."""
        before = len(self.out)
        self.assigner.process(split, list(values), timestamps)
        return self.out[before:]


def test_the_watermark_does_not_count_records_that_are_left() -> None:
    bench = Bench(BOUNDED)
    bench.left = 1
    assert bench.assigner.process("s", ["a", "b"], [100, 200]) == 1
    assert bench.tick() == [94]
    bench.left = 0
    assert bench.assigner.process("s", ["b"], [200]) == 0
    assert bench.tick() == [194]


def test_the_watermark_follows_the_latest_timestamp_at_a_distance() -> None:
    bench = Bench(BOUNDED)
    bench.assigner.process("s", ["a", "b"], [100, 90])
    assert bench.out == [(["a", "b"], [100, 90])], "the watermark waits for the interval"
    assert bench.tick() == [94]
    assert bench.tick() == [], "no progress, no watermark"
    bench.assigner.process("s", ["c"], [80])
    assert bench.tick() == []
    bench.assigner.process("s", ["d"], [101])
    assert bench.tick() == [95]


def test_nothing_is_sent_before_the_first_record() -> None:
    bench = Bench(BOUNDED)
    bench.assigner.add_split("s")
    assert bench.tick() == []
    assert bench.assigner.watermark == MIN_TIMESTAMP


def test_the_lowest_split_decides() -> None:
    """
    split 1:  100 ------- 300
    split 2:       50 ---------- 200 (ends)
    sent:          44     44     194       294
    """
    bench = Bench(BOUNDED)
    bench.assigner.add_split("1")
    bench.assigner.add_split("2")
    bench.assigner.process("1", ["a"], [100])
    assert bench.tick() == [], "split 2 has not said anything"
    bench.assigner.process("2", ["b"], [50])
    assert bench.tick() == [44]
    bench.assigner.process("1", ["c"], [300])
    assert bench.tick() == []
    bench.assigner.process("2", ["d"], [200])
    assert bench.tick() == [194]
    bench.assigner.release_split("2")
    assert bench.tick() == [294]


def test_a_split_added_later_does_not_turn_time_back() -> None:
    bench = Bench(BOUNDED)
    bench.assigner.process("1", ["a"], [100])
    assert bench.tick() == [94]
    bench.assigner.add_split("2")
    bench.assigner.process("1", ["b"], [200])
    assert bench.tick() == [], "but holds it back"
    bench.assigner.process("2", ["c"], [20])
    assert bench.tick() == []
    assert bench.assigner.watermark == 94


def test_an_idle_split_does_not_hold_back_the_others() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.assigner.add_split("1")
    bench.assigner.add_split("2")
    sent: list[int] = []
    for step in range(1, 6):
        bench.assigner.process("1", ["a"], [step * 100])
        sent += bench.tick()
    assert sent == [494], "a second without records makes split 2 idle"
    bench.assigner.process("2", ["b"], [200])
    bench.assigner.process("1", ["a"], [600])
    assert bench.tick() == [], "split 2 is back, and behind"
    bench.assigner.process("2", ["b"], [900])
    bench.assigner.process("1", ["a"], [700])
    assert bench.tick() == [694]


def test_the_last_split_to_fall_silent_counts_alone_before_all_are_idle() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.assigner.add_split("never had any")
    bench.assigner.process("had some at the start", ["a"], [500])
    sent = [watermark for _ in range(6) for watermark in bench.tick()]
    assert sent == [494, IDLE], "as in Flink, where the second one falls idle an interval later"


def test_splits_that_fall_silent_together_leave_the_watermark_where_it_is() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.assigner.process("1", ["a"], [500])
    bench.assigner.process("2", ["b"], [100])
    sent = [watermark for _ in range(6) for watermark in bench.tick()]
    assert sent == [94, IDLE]


def test_all_splits_idle_is_sent_once_each_way_and_active_before_the_watermark() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.process("a", timestamps=[100])
    assert bench.tick(200) == [94]
    assert bench.tick(999) == []
    assert bench.tick(1) == [IDLE]
    assert bench.tick(5000) == []
    bench.process("b", timestamps=[200])
    assert bench.tick() == [ACTIVE, 194]
    assert bench.tick() == []


def test_records_without_progress_end_idleness() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.process("a", timestamps=[100])
    assert bench.tick() + bench.tick(1000) == [94, IDLE]
    bench.process("b", timestamps=[50])
    assert bench.tick() == [ACTIVE]


def test_active_comes_before_the_end_of_event_time() -> None:
    bench = Bench(BOUNDED.with_idleness(Duration.of_seconds(1)))
    bench.assigner.add_split("s")
    bench.tick(1000)
    bench.assigner.activate()
    bench.assigner.activate()
    assert bench.out == [IDLE, ACTIVE]


def test_a_watermark_of_the_reader_ends_idleness() -> None:
    bench = Bench(WatermarkStrategy.no_watermarks().with_idleness(Duration.of_seconds(1)))
    bench.assigner.emit_watermark("s", 10)
    bench.tick(1000)
    bench.assigner.emit_watermark("s", 20)
    assert bench.out == [10, IDLE, ACTIVE, 20]


class TestWithoutSplits:
    strategy = BOUNDED.with_idleness(Duration.of_seconds(1))

    def test_idle_after_the_timeout(self) -> None:
        bench = Bench(self.strategy)
        assert bench.assigner.idle_at == 1000
        assert bench.tick(999) == []
        assert bench.tick(1) == [IDLE]
        assert bench.tick(5000) == []
        assert bench.assigner.idle_at is None

    def test_active_with_the_next_split(self) -> None:
        bench = Bench(self.strategy)
        bench.tick(1000)
        bench.assigner.add_split("s")
        assert bench.tick() == [ACTIVE]
        bench.process("a", timestamps=[100])
        assert bench.tick() == [94]

    def test_the_timeout_begins_when_the_last_split_ends(self) -> None:
        bench = Bench(self.strategy)
        bench.assigner.add_split("1")
        bench.assigner.add_split("2")
        for _ in range(10):
            bench.process("a", split="1")
            bench.process("a", split="2")
            bench.tick(500)
        bench.assigner.release_split("1")
        bench.process("a", split="2")
        bench.tick(500)
        bench.assigner.release_split("2")
        assert bench.tick(999) == []
        assert bench.tick(1) == [IDLE]

    def test_an_idle_split_that_ends_leaves_the_rest_idle(self) -> None:
        bench = Bench(self.strategy)
        bench.assigner.add_split("s")
        assert bench.tick(1000) == [IDLE]
        bench.assigner.release_split("s")
        assert bench.tick() == []

    def test_reading_that_stopped_restarts_the_timeout(self) -> None:
        bench = Bench(self.strategy)
        bench.clock.advance(900)
        bench.assigner.restart_idle_timeouts()
        assert bench.tick(999) == []
        assert bench.tick(1) == [IDLE]

    def test_never_idle_without_a_timeout(self) -> None:
        bench = Bench(BOUNDED)
        assert bench.tick(1_000_000) == []
        assert bench.assigner.idle_at is None

    def test_the_watermark_of_a_split_that_ended_within_an_interval(self) -> None:
        bench = Bench(self.strategy)
        bench.process("a", timestamps=[100])
        bench.assigner.release_split("s", keeps_watermark=True)
        assert bench.tick() == [94]
        assert bench.tick(800) == [IDLE]

    def test_the_next_split_may_be_on_its_way(self) -> None:
        bench = Bench(self.strategy, split_gap_ms=200)
        bench.process("a", timestamps=[100])
        bench.tick(100)
        bench.process("b", timestamps=[200])
        bench.assigner.release_split("s", keeps_watermark=True)
        assert bench.tick(199) == []
        assert bench.tick(1) == [194]
        assert bench.tick(800) == [IDLE]

    def test_a_gap_that_is_longer_than_the_idle_timeout(self) -> None:
        bench = Bench(self.strategy, split_gap_ms=1500)
        bench.process("a", timestamps=[100])
        bench.assigner.release_split("s", keeps_watermark=True)
        assert bench.tick(1000) == [IDLE]
        assert bench.tick(500) == [ACTIVE, 94, IDLE]

    def test_the_next_split_counts_instead_of_the_one_that_ended(self) -> None:
        bench = Bench(self.strategy)
        bench.process("a", timestamps=[100])
        bench.assigner.release_split("s", keeps_watermark=True)
        bench.assigner.add_split("next")
        assert bench.tick() == []
        bench.process("b", split="next", timestamps=[50])
        assert bench.tick() == [44]


class Punctuated(WatermarkGenerator):
    """Records of the form ``W<time>`` carry a watermark; ``idle`` and ``active`` say what they say."""

    def on_event(self, event: str, event_timestamp: int, output: Any) -> None:
        if event.startswith("W"):
            output.emit_watermark(int(event[1:]))
        elif event == "idle":
            output.mark_idle()
        elif event == "active":
            output.mark_active()

    def on_periodic_emit(self, output: Any) -> None:
        pass


PUNCTUATED = WatermarkStrategy.for_generator(Punctuated)


def test_a_watermark_in_the_records_cuts_the_batch_right_behind_its_record() -> None:
    bench = Bench(PUNCTUATED)
    bench.assigner.process("s", ["a", "W10", "b", "W10", "W5", "c", "W20"], list(range(7)))
    assert bench.out == [
        (["a", "W10"], [0, 1]),
        10,
        (["b", "W10", "W5", "c", "W20"], [2, 3, 4, 5, 6]),
        20,
    ]


def test_batches_without_timestamps_are_cut_as_well() -> None:
    bench = Bench(PUNCTUATED)
    bench.assigner.process("s", ["W1", "a"], None)
    assert bench.out == [(["W1"], None), 1, (["a"], None)]


def test_punctuated_watermarks_of_several_splits() -> None:
    bench = Bench(PUNCTUATED)
    bench.assigner.add_split("1")
    bench.assigner.add_split("2")
    bench.assigner.process("1", ["W10"], None)
    bench.assigner.process("2", ["a", "W7"], None)
    assert bench.out == [(["W10"], None), (["a", "W7"], None), 7]
    assert bench.process("idle", split="2") == [(["idle"], None), 10]


def test_a_punctuated_watermark_ends_idleness_and_is_not_lost() -> None:
    bench = Bench(PUNCTUATED.with_idleness(Duration.of_seconds(1)))
    assert bench.process("W5") == [(["W5"], None), 5]
    assert bench.tick(1000) + bench.tick(1000) == [IDLE]
    assert bench.process("a", "W10", "b") == [(["a", "W10"], None), ACTIVE, 10, (["b"], None)]
    assert bench.tick() == []


def test_a_generator_marks_its_split_idle_at_once_until_it_says_otherwise() -> None:
    bench = Bench(PUNCTUATED)
    assert bench.process("W5", "idle", "a") == [(["W5"], None), 5, (["idle"], None), IDLE, (["a"], None)]
    assert bench.process("b") + bench.tick() == [(["b"], None)], "wherever a batch begins"
    assert bench.process("active", "c") == [(["active"], None), ACTIVE, (["c"], None)]
    bench.process("idle")
    assert bench.process("W7") == [(["W7"], None), ACTIVE, 7]


def test_a_watermark_that_comes_with_idleness_counts() -> None:
    class Last(WatermarkGenerator):
        def on_event(self, event: str, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(event_timestamp)
            output.mark_idle()

        def on_periodic_emit(self, output: Any) -> None:
            pass

    bench = Bench(WatermarkStrategy.for_generator(Last))
    assert bench.process("a", timestamps=[3]) == [(["a"], [3]), 3, IDLE]
    assert bench.process("b", timestamps=[4]) == [(["b"], [4]), ACTIVE, 4, IDLE]


def test_a_generator_sees_the_timestamps_that_the_assigner_gave() -> None:
    seen: list[Any] = []

    class Watch(Punctuated):
        def on_event(self, event: str, event_timestamp: int, output: Any) -> None:
            seen.append((event, event_timestamp))

    strategy = WatermarkStrategy.for_generator(Watch).with_timestamp_assigner(lambda value, before: len(value))
    bench = Bench(strategy)
    bench.assigner.process("s", ["aa", "b"], None)
    assert seen == [("aa", 2), ("b", 1)]
    assert bench.out == [(["aa", "b"], [2, 1])]


def test_an_assigner_gets_the_timestamp_a_record_had() -> None:
    bench = Bench(BOUNDED.with_timestamp_assigner(lambda value, before: before if before > 0 else value))
    bench.assigner.process("s", [5, 6], [50, 60])
    bench.assigner.process("s", [7], None)
    assert bench.out == [([5, 6], [50, 60]), ([7], [7])]


@pytest.mark.parametrize("wrong", [1.5, "2024-01-01", None])
def test_a_timestamp_that_is_no_int_is_refused(wrong: Any) -> None:
    bench = Bench(BOUNDED.with_timestamp_assigner(lambda value, _: wrong))
    with pytest.raises(InvalidProgramError, match="timestamp assigner returned") as caught:
        bench.assigner.process("s", ["a record"], None)
    assert "a record" in caught.value.message
    assert caught.value.hint


def test_a_reader_can_bring_watermarks_of_its_own() -> None:
    bench = Bench(WatermarkStrategy.no_watermarks())
    bench.assigner.add_split("1")
    bench.assigner.add_split("2")
    bench.assigner.emit_watermark("1", 10)
    assert bench.out == []
    bench.assigner.emit_watermark("2", 5)
    bench.assigner.emit_watermark("2", 3)
    bench.assigner.emit_watermark("2", 20)
    assert bench.out == [5, 10]
