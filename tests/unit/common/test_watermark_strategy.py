from __future__ import annotations

import pickle
from operator import itemgetter

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    TimestampAssigner,
    WatermarkAlignmentParams,
    WatermarkGenerator,
)


class Output:
    def __init__(self):
        self.emitted = []

    def emit_watermark(self, timestamp):
        self.emitted.append(timestamp)

    def mark_idle(self):
        self.emitted.append("idle")

    def mark_active(self):
        self.emitted.append("active")


def emitted(generator):
    output = Output()
    generator.on_periodic_emit(output)
    return output.emitted


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event == "mark":
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        output.mark_idle()


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def test_bounded_out_of_orderness_emits_latest_less_delay_less_one():
    generator = BoundedOutOfOrdernessWatermarks(100)
    assert emitted(generator) == [MIN_LONG_VALUE]
    for timestamp in (1000, 900, 1200, 1100):
        generator.on_event(None, timestamp, Output())
    assert emitted(generator) == [1099]


def test_bounded_out_of_orderness_emits_nothing_with_an_event():
    generator = BoundedOutOfOrdernessWatermarks(0)
    output = Output()
    generator.on_event(None, 5, output)
    assert output.emitted == []


def test_monotonous_timestamps_emit_latest_less_one():
    generator = WatermarkStrategy.for_monotonous_timestamps().create_watermark_generator()
    assert emitted(generator) == [MIN_LONG_VALUE]
    generator.on_event(None, 5, Output())
    assert emitted(generator) == [4]


@given(
    st.integers(min_value=0, max_value=10**9),
    st.lists(st.lists(st.integers(min_value=-(10**15), max_value=10**15)), max_size=5),
)
def test_a_batch_is_its_events_one_by_one(delay, batches):
    by_batch, by_event = BoundedOutOfOrdernessWatermarks(delay), BoundedOutOfOrdernessWatermarks(delay)
    for batch in batches:
        by_batch.on_batch(batch)
        for timestamp in batch:
            by_event.on_event(None, timestamp, Output())
        assert emitted(by_batch) == emitted(by_event)


def test_no_watermarks():
    generator = WatermarkStrategy.no_watermarks().create_watermark_generator()
    assert isinstance(generator, NoWatermarksGenerator)
    generator.on_event(None, 5, Output())
    generator.on_batch([5])
    assert emitted(generator) == []


def test_each_generator_is_a_new_one():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    first, second = strategy.create_watermark_generator(), strategy.create_watermark_generator()
    first.on_event(None, 5000, Output())
    assert emitted(first) == [3999]
    assert emitted(second) == [MIN_LONG_VALUE]


def test_custom_generators():
    strategy = WatermarkStrategy.for_generator(Punctuated)
    generator = strategy.create_watermark_generator()
    output = Output()
    generator.on_event("other", 1, output)
    generator.on_event("mark", 2, output)
    generator.on_periodic_emit(output)
    assert output.emitted == [2, "idle"]


def test_for_generator_wants_a_supplier_of_generators():
    with pytest.raises(TypeError, match="makes a new WatermarkGenerator"):
        WatermarkStrategy.for_generator(Punctuated())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a WatermarkGenerator"):
        WatermarkStrategy.for_generator(list).create_watermark_generator()  # type: ignore[arg-type]


def test_every_with_makes_a_new_strategy_and_keeps_the_rest():
    base = WatermarkStrategy.for_monotonous_timestamps()
    full = (
        base.with_timestamp_assigner(SecondField())
        .with_idleness(Duration.of_minutes(1))
        .with_watermark_alignment("g", Duration.of_seconds(20))
    )
    assert base.timestamp_assigner is None
    assert isinstance(full.timestamp_assigner, SecondField)
    assert full.idle_timeout_ms == 60_000
    assert full.alignment == WatermarkAlignmentParams(20_000, "g", 1000)
    assert full.with_watermark_alignment(
        "g", Duration.of_seconds(1), Duration.of_millis(5)
    ).alignment == WatermarkAlignmentParams(1000, "g", 5)


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (SecondField(), 7),
        (lambda value, timestamp: value[1] + timestamp, 107),
        (lambda value: value[1], 7),
        (lambda value, field=1: value[field], 7),
        (itemgetter(1), 7),
        (lambda *both: both[1], 100),
    ],
    ids=["object", "two", "one", "bound default", "itemgetter", "varargs"],
)
def test_timestamp_assigners(assigner, expected):
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
    assert strategy.timestamp_assigner.extract_timestamp(("a", 7), 100) == expected
    again = pickle.loads(cloudpickle.dumps(strategy))
    assert again.timestamp_assigner.extract_timestamp(("a", 7), 100) == expected


@pytest.mark.parametrize("assigner", [SecondField, 5, None])
def test_what_is_no_timestamp_assigner(assigner):
    with pytest.raises(TypeError):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)


@pytest.mark.parametrize(
    "make",
    [
        lambda: WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1)),
        lambda: BoundedOutOfOrdernessWatermarks(-1),
        lambda: WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0)),
        lambda: WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(-1)),
        lambda: WatermarkStrategy.no_watermarks().with_watermark_alignment("g", Duration.of_millis(-1)),
    ],
)
def test_impossible_times_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_builtin_strategies_pickle():
    for strategy in (
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)),
        WatermarkStrategy.no_watermarks(),
    ):
        assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_the_java_wrapper_says_what_to_use_instead():
    with pytest.raises(NotImplementedError, match="for_generator"):
        AssignerWithPeriodicWatermarksWrapper(object())
