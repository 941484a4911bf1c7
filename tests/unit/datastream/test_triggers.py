"""When each trigger fires, against a context with a clock, a watermark, timers and state of one window."""

import pickle

import pytest

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    CountWindow,
    EventTimeTrigger,
    GlobalWindow,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    TriggerResult,
)

WINDOW = TimeWindow(0, 100)
CONTINUE, FIRE, FIRE_AND_PURGE = TriggerResult.CONTINUE, TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE


class FakeReducingState:
    def __init__(self, reduce):
        self.reduce = reduce
        self.current = None

    def get(self):
        return self.current

    def add(self, value):
        self.current = value if self.current is None else self.reduce(self.current, value)

    def clear(self):
        self.current = None


class FakeTriggerContext:
    def __init__(self, watermark=MIN_LONG_VALUE, processing_time=0):
        self.watermark = watermark
        self.processing_time = processing_time
        self.event_timers = set()
        self.processing_timers = set()
        self.states = {}
        self.to_merge = []

    def get_current_watermark(self):
        return self.watermark

    def get_current_processing_time(self):
        return self.processing_time

    def register_event_time_timer(self, time):
        self.event_timers.add(time)

    def delete_event_time_timer(self, time):
        self.event_timers.discard(time)

    def register_processing_time_timer(self, time):
        self.processing_timers.add(time)

    def delete_processing_time_timer(self, time):
        self.processing_timers.discard(time)

    def get_partitioned_state(self, descriptor):
        reduce = descriptor.get_reduce_function().reduce
        return self.states.setdefault(descriptor.get_name(), FakeReducingState(reduce))

    def merge_partitioned_state(self, descriptor):
        state = self.get_partitioned_state(descriptor)
        for other in self.to_merge:
            value = other.get_partitioned_state(descriptor).get()
            if value is not None:
                state.add(value)

    def is_empty(self):
        kept = [state for state in self.states.values() if state.current is not None]
        return not (self.event_timers or self.processing_timers or kept)


def test_event_time_trigger_fires_at_the_end_of_the_window():
    trigger, ctx = EventTimeTrigger.create(), FakeTriggerContext()
    assert trigger.on_element("a", 5, WINDOW, ctx) is CONTINUE
    assert ctx.event_timers == {99}
    assert trigger.on_event_time(98, WINDOW, ctx) is CONTINUE
    assert trigger.on_event_time(99, WINDOW, ctx) is FIRE
    assert trigger.on_processing_time(99, WINDOW, ctx) is CONTINUE
    trigger.clear(WINDOW, ctx)
    assert ctx.is_empty()


def test_event_time_trigger_fires_at_once_for_late_records():
    ctx = FakeTriggerContext(watermark=99)
    assert EventTimeTrigger().on_element("late", 5, WINDOW, ctx) is FIRE
    assert ctx.event_timers == set()


@pytest.mark.parametrize(("watermark", "timers"), [(98, {99}), (99, set())])
def test_event_time_trigger_sets_its_timer_again_on_merge(watermark, timers):
    ctx = FakeTriggerContext(watermark)
    EventTimeTrigger().on_merge(WINDOW, ctx)
    assert ctx.event_timers == timers


def test_processing_time_trigger():
    trigger, ctx = ProcessingTimeTrigger.create(), FakeTriggerContext(processing_time=50)
    assert trigger.on_element("a", 5, WINDOW, ctx) is CONTINUE
    assert ctx.processing_timers == {99}
    assert trigger.on_event_time(99, WINDOW, ctx) is CONTINUE
    assert trigger.on_processing_time(99, WINDOW, ctx) is FIRE
    trigger.clear(WINDOW, ctx)
    assert ctx.is_empty()
    trigger.on_merge(TimeWindow(0, 51), ctx)
    assert ctx.processing_timers == set()
    trigger.on_merge(TimeWindow(0, 52), ctx)
    assert ctx.processing_timers == {51}


def test_continuous_event_time_trigger_fires_every_interval_and_at_the_end():
    trigger, ctx = ContinuousEventTimeTrigger.of(Time.milliseconds(40)), FakeTriggerContext()
    assert trigger.on_element("a", 45, WINDOW, ctx) is CONTINUE
    assert ctx.event_timers == {80, 99}
    assert trigger.on_element("b", 10, WINDOW, ctx) is CONTINUE
    assert ctx.event_timers == {80, 99}  # the interval runs already
    assert trigger.on_event_time(80, WINDOW, ctx) is FIRE
    assert ctx.get_partitioned_state(trigger.state_desc).get() == 99  # never beyond the window
    assert trigger.on_event_time(85, WINDOW, ctx) is CONTINUE
    assert trigger.on_event_time(99, WINDOW, ctx) is FIRE
    ctx.event_timers -= {80}  # fired
    trigger.clear(WINDOW, ctx)
    assert ctx.is_empty()


def test_continuous_event_time_trigger_fires_at_once_for_late_records():
    ctx = FakeTriggerContext(watermark=99)
    assert ContinuousEventTimeTrigger.of(Duration.of_millis(40)).on_element("late", 45, WINDOW, ctx) is FIRE


def test_continuous_event_time_trigger_keeps_the_earliest_time_on_merge():
    trigger, ctx = ContinuousEventTimeTrigger(40), FakeTriggerContext()
    first, second = FakeTriggerContext(), FakeTriggerContext()
    trigger.on_element("a", 45, WINDOW, first)
    trigger.on_element("a", 5, WINDOW, second)
    ctx.to_merge = [first, second]
    trigger.on_merge(TimeWindow(0, 120), ctx)
    assert ctx.event_timers == {40}


def test_continuous_processing_time_trigger():
    trigger = ContinuousProcessingTimeTrigger.of(Time.milliseconds(40))
    ctx = FakeTriggerContext(processing_time=45)
    assert trigger.on_element("a", 7, WINDOW, ctx) is CONTINUE
    assert ctx.processing_timers == {80}
    assert trigger.on_processing_time(79, WINDOW, ctx) is CONTINUE
    assert trigger.on_processing_time(80, WINDOW, ctx) is FIRE
    assert ctx.processing_timers == {80, 99}
    assert trigger.on_event_time(99, WINDOW, ctx) is CONTINUE
    merged = FakeTriggerContext()
    merged.to_merge = [ctx]
    trigger.on_merge(WINDOW, merged)
    assert merged.processing_timers == {99}
    trigger.clear(WINDOW, merged)
    assert merged.is_empty()


def test_count_trigger_fires_every_so_many_records():
    trigger, ctx = CountTrigger.of(3), FakeTriggerContext()
    results = [trigger.on_element("a", 0, CountWindow(0), ctx) for _ in range(7)]
    assert results == [CONTINUE, CONTINUE, FIRE] * 2 + [CONTINUE]
    trigger.clear(CountWindow(0), ctx)
    assert ctx.is_empty()


def test_count_trigger_adds_up_counts_on_merge():
    trigger, ctx, other = CountTrigger.of(4), FakeTriggerContext(), FakeTriggerContext()
    trigger.on_element("a", 0, WINDOW, ctx)
    trigger.on_element("b", 0, WINDOW, other)
    trigger.on_element("c", 0, WINDOW, other)
    ctx.to_merge = [other]
    trigger.on_merge(WINDOW, ctx)
    assert trigger.on_element("d", 0, WINDOW, ctx) is FIRE


def test_purging_trigger_purges_when_the_other_fires():
    trigger, ctx = PurgingTrigger.of(CountTrigger.of(2)), FakeTriggerContext()
    assert [trigger.on_element("a", 0, WINDOW, ctx) for _ in range(3)] == [CONTINUE, FIRE_AND_PURGE, CONTINUE]
    timed = PurgingTrigger.of(EventTimeTrigger.create())
    assert timed.on_event_time(99, WINDOW, ctx) is FIRE_AND_PURGE
    assert timed.on_event_time(98, WINDOW, ctx) is CONTINUE
    assert PurgingTrigger.of(ProcessingTimeTrigger.create()).on_processing_time(99, WINDOW, ctx) is FIRE_AND_PURGE
    assert timed.can_merge()
    assert not PurgingTrigger.of(NeverTrigger()).can_merge()
    trigger.clear(WINDOW, ctx)
    assert ctx.is_empty()


def test_never_trigger():
    trigger, ctx, window = NeverTrigger(), FakeTriggerContext(), GlobalWindow.get()
    answers = {
        trigger.on_element("a", 0, window, ctx),
        trigger.on_event_time(0, window, ctx),
        trigger.on_processing_time(0, window, ctx),
    }
    assert answers == {CONTINUE}
    assert not trigger.can_merge()


@pytest.mark.parametrize(
    "trigger",
    [
        EventTimeTrigger(),
        ProcessingTimeTrigger(),
        ContinuousEventTimeTrigger(5),
        ContinuousProcessingTimeTrigger(5),
        PurgingTrigger(CountTrigger(2)),
        NeverTrigger(),
    ],
    ids=repr,
)
def test_triggers_keep_nothing_and_can_be_pickled(trigger):
    before = pickle.dumps(trigger)
    ctx = FakeTriggerContext()
    trigger.on_element("a", 5, WINDOW, ctx)
    trigger.clear(WINDOW, ctx)
    assert pickle.dumps(trigger) == before
    assert repr(pickle.loads(before)) == repr(trigger)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountTrigger.of(0),
        lambda: ContinuousEventTimeTrigger.of(Time.milliseconds(0)),
        lambda: ContinuousProcessingTimeTrigger.of(Time.milliseconds(-1)),
    ],
)
def test_impossible_triggers_are_refused(make):
    with pytest.raises(InvalidProgramError, match="must be positive"):
        make()
