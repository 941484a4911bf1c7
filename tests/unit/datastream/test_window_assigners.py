"""Which windows each assigner puts a record into, and what it refuses."""

import pickle
from datetime import timedelta

import pytest

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

SECOND = Time.seconds(1)


class FakeState:
    def __init__(self):
        self._value = None

    def value(self):
        return self._value

    def update(self, value):
        self._value = value


class FakeContext:
    """The assigner's context of one key, with a clock that stands still."""

    def __init__(self, processing_time=0):
        self.processing_time = processing_time
        self.states = {}

    def get_current_processing_time(self):
        return self.processing_time

    def get_runtime_context(self):
        return self

    def get_state(self, descriptor):
        return self.states.setdefault(descriptor.get_name(), FakeState())


class LengthGap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return len(element)


def assign(assigner, timestamp, element="abc", processing_time=0):
    return list(assigner.assign_windows(element, timestamp, FakeContext(processing_time)))


@pytest.mark.parametrize(
    ("timestamp", "start"), [(0, 0), (999, 0), (1000, 1000), (1999, 1000), (-1, -1000), (-1000, -1000), (-1001, -2000)]
)
def test_tumbling_windows_also_before_1970(timestamp, start):
    assert assign(TumblingEventTimeWindows.of(SECOND), timestamp) == [TimeWindow(start, start + 1000)]


@pytest.mark.parametrize(("offset", "start"), [(100, -900), (-100, -100), (0, 0)])
def test_tumbling_windows_with_an_offset(offset, start):
    assigner = TumblingEventTimeWindows.of(SECOND, Time.milliseconds(offset))
    assert assign(assigner, 50) == [TimeWindow(start, start + 1000)]


def test_sliding_windows_latest_first():
    assigner = SlidingEventTimeWindows.of(Time.seconds(3), SECOND)
    assert assign(assigner, 3500) == [TimeWindow(3000, 6000), TimeWindow(2000, 5000), TimeWindow(1000, 4000)]
    assert assign(assigner, -500) == [TimeWindow(-1000, 2000), TimeWindow(-2000, 1000), TimeWindow(-3000, 0)]


def test_sliding_windows_with_an_offset():
    assigner = SlidingEventTimeWindows.of(Time.seconds(2), SECOND, Time.milliseconds(300))
    assert assign(assigner, 200) == [TimeWindow(-700, 1300), TimeWindow(-1700, 300)]


def test_records_between_sliding_windows_belong_to_none():
    assigner = SlidingEventTimeWindows.of(SECOND, Time.seconds(3))
    assert assign(assigner, 500) == [TimeWindow(0, 1000)]
    assert assign(assigner, 1500) == []


def test_processing_time_assigners_look_at_the_clock_only():
    assert assign(TumblingProcessingTimeWindows.of(SECOND), MIN_LONG_VALUE, processing_time=2500) == [
        TimeWindow(2000, 3000)
    ]
    assert assign(SlidingProcessingTimeWindows.of(Time.seconds(2), SECOND), 7, processing_time=2500) == [
        TimeWindow(2000, 4000),
        TimeWindow(1000, 3000),
    ]
    assert assign(ProcessingTimeSessionWindows.with_gap(SECOND), 7, processing_time=2500) == [TimeWindow(2500, 3500)]
    dynamic = ProcessingTimeSessionWindows.with_dynamic_gap(LengthGap())
    assert assign(dynamic, 7, "ab", processing_time=2500) == [TimeWindow(2500, 2502)]


def test_session_windows():
    assert assign(EventTimeSessionWindows.with_gap(SECOND), 5) == [TimeWindow(5, 1005)]
    assert assign(EventTimeSessionWindows.with_dynamic_gap(LengthGap()), 5, "abcd") == [TimeWindow(5, 9)]
    assert assign(DynamicEventTimeSessionWindows.with_dynamic_gap(len), 5, "abcd") == [TimeWindow(5, 9)]


def test_global_windows():
    assert assign(GlobalWindows.create(), 5) == [GlobalWindow.get()]


def test_lengths_may_be_durations_timedeltas_or_milliseconds():
    sizes = [Time.seconds(5), Duration.of_seconds(5), timedelta(seconds=5), 5000]
    assert {TumblingEventTimeWindows.of(size).size for size in sizes} == {5000}
    with pytest.raises(TypeError):
        TumblingEventTimeWindows.of("5 s")


def ids(assigner, records):
    context = FakeContext()
    return [[window.id for window in assigner.assign_windows("x", 0, context)] for _ in range(records)]


def test_count_windows():
    assert ids(CountTumblingWindowAssigner.of(2), 5) == [[0], [0], [1], [1], [2]]
    assert ids(CountSlidingWindowAssigner.of(3, 2), 6) == [[0], [0], [1, 0], [1], [2, 1], [2]]
    assert ids(CountSlidingWindowAssigner.of(1, 2), 4) == [[0], [], [1], []]
    assert CountTumblingWindowAssigner.of(2).assign_windows("x", 0, FakeContext()) == [CountWindow(0)]


@pytest.mark.parametrize(
    ("assigner", "trigger", "event_time", "merging"),
    [
        (TumblingEventTimeWindows.of(SECOND), EventTimeTrigger, True, False),
        (SlidingEventTimeWindows.of(SECOND, SECOND), EventTimeTrigger, True, False),
        (EventTimeSessionWindows.with_gap(SECOND), EventTimeTrigger, True, True),
        (DynamicEventTimeSessionWindows(LengthGap()), EventTimeTrigger, True, True),
        (TumblingProcessingTimeWindows.of(SECOND), ProcessingTimeTrigger, False, False),
        (SlidingProcessingTimeWindows.of(SECOND, SECOND), ProcessingTimeTrigger, False, False),
        (ProcessingTimeSessionWindows.with_gap(SECOND), ProcessingTimeTrigger, False, True),
        (DynamicProcessingTimeSessionWindows(LengthGap()), ProcessingTimeTrigger, False, True),
        (GlobalWindows.create(), NeverTrigger, False, False),
        (CountTumblingWindowAssigner.of(3), PurgingTrigger, False, False),
        (CountSlidingWindowAssigner.of(3, 1), PurgingTrigger, False, False),
    ],
    ids=repr,
)
def test_default_trigger_kind_of_time_and_pickling(assigner, trigger, event_time, merging):
    assert type(assigner.get_default_trigger(None)) is trigger
    assert assigner.is_event_time() is event_time
    assert isinstance(assigner, MergingWindowAssigner) is merging
    assert hasattr(assigner, "merge_windows") is merging
    assert repr(pickle.loads(pickle.dumps(assigner))) == repr(assigner)


def test_count_windows_fire_when_full():
    trigger = CountSlidingWindowAssigner.of(3, 1).get_default_trigger(None)
    assert isinstance(trigger.nested_trigger, CountTrigger)
    assert trigger.nested_trigger.window_size == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TumblingEventTimeWindows.of(Time.seconds(0)), ["size", "TumblingEventTimeWindows", "0 ms"]),
        (lambda: TumblingProcessingTimeWindows.of(Time.seconds(-1)), ["size", "-1000 ms"]),
        (lambda: SlidingEventTimeWindows.of(Time.seconds(0), SECOND), ["size", "0 ms"]),
        (lambda: SlidingEventTimeWindows.of(SECOND, Time.seconds(0)), ["slide", "0 ms"]),
        (lambda: SlidingProcessingTimeWindows.of(SECOND, Time.milliseconds(-5)), ["slide", "-5 ms"]),
        (lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)), ["gap", "0 ms"]),
        (lambda: ProcessingTimeSessionWindows.with_gap(Time.seconds(-2)), ["gap", "-2000 ms"]),
        (lambda: TumblingEventTimeWindows.of(SECOND, SECOND), ["offset 1000 ms", "size 1000 ms"]),
        (lambda: TumblingEventTimeWindows.of(SECOND, Time.seconds(-1)), ["offset -1000 ms"]),
        (lambda: SlidingEventTimeWindows.of(Time.seconds(3), SECOND, Time.seconds(2)), ["offset 2000 ms", "slide"]),
        (lambda: CountTumblingWindowAssigner.of(0), ["size", "0."]),
        (lambda: CountSlidingWindowAssigner.of(3, -1), ["slide", "-1."]),
    ],
)
def test_impossible_lengths_are_refused(make, words):
    with pytest.raises(InvalidProgramError) as refused:
        make()
    assert all(word in refused.value.message for word in words)
    assert refused.value.hint


@pytest.mark.parametrize("timestamp", [MIN_LONG_VALUE, None])
@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(SECOND),
        SlidingEventTimeWindows.of(SECOND, SECOND),
        EventTimeSessionWindows.with_gap(SECOND),
        DynamicEventTimeSessionWindows(LengthGap()),
    ],
    ids=repr,
)
def test_event_time_needs_timestamps(assigner, timestamp):
    with pytest.raises(FiresteelError) as refused:
        assign(assigner, timestamp)
    assert type(assigner).__name__ in refused.value.message
    assert "assign_timestamps_and_watermarks" in refused.value.hint


def test_dynamic_gap_must_be_positive():
    with pytest.raises(FiresteelError, match="got 0 ms"):
        assign(DynamicEventTimeSessionWindows(LengthGap()), 5, "")
    with pytest.raises(TypeError):
        DynamicEventTimeSessionWindows(7)
