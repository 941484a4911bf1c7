"""Users' functions across checkpoints, at other parallelisms and on the other backend."""

from __future__ import annotations

import pickle

import pytest

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from firesteel.common.errors import StateIncompatibleError
from firesteel.common.time import Time
from firesteel.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
)
from firesteel.datastream.windowing.assigners import TumblingEventTimeWindows
from firesteel.testing import (
    At,
    FakeClock,
    HarnessSnapshot,
    KeyedProcessFunctionHarness,
    ProcessFunctionHarness,
    harness_for,
    test_environment,
)

BACKENDS = ["hashmap", "rocksdb"]


class Visits(KeyedProcessFunction):
    """Counts per key, and reports a key half a minute after its last record."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.pages = runtime_context.get_map_state(MapStateDescriptor("pages"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.pages.put(value[1], True)
        ctx.timer_service().register_event_time_timer(30_000)
        ctx.timer_service().register_processing_time_timer(5_000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.count.value(), sorted(self.pages.keys())


def visits(**options):
    return KeyedProcessFunctionHarness(Visits(), lambda value: value[0], **options)


@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("second", BACKENDS)
def test_keyed_state_and_timers_on_either_backend(first, second):
    with visits(backend=first) as harness:
        harness.process_elements([("ann", "/a"), ("bob", "/a"), ("ann", "/b")])
        snapshot = pickle.loads(pickle.dumps(harness.snapshot(3)))
        harness.process_element(("ann", "/c"))
    with visits(backend=second).initialize_state(snapshot) as harness:
        assert harness.state("count", "ann") == 2
        assert harness.state("pages", "ann") == {"/a": True, "/b": True}
        assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (2, 2)
        harness.process_element(("bob", "/c"))
        harness.process_watermark(30_000)
        assert sorted(harness.take_output()) == [("ann", 30_000, 2, ["/a", "/b"]), ("bob", 30_000, 2, ["/a", "/c"])]
        harness.advance(5_000)
        assert sorted(harness.output) == [("ann", 5_000, 2, ["/a", "/b"]), ("bob", 5_000, 2, ["/a", "/c"])]


def test_keyed_state_over_more_and_fewer_subtasks():
    keys = [f"key {number}" for number in range(40)]
    with visits() as harness:
        harness.process_elements([(key, "/") for key in keys])
        snapshot = harness.snapshot()
    parts = [visits(subtask=subtask, parallelism=3).initialize_state(snapshot).open() for subtask in range(3)]
    held = [set(part.keys("count")) for part in parts]
    assert all(held)
    assert sorted(key for part in held for key in part) == sorted(keys)
    whole = HarnessSnapshot.combine(*[part.snapshot(2) for part in parts])
    assert whole.parallelism == 3
    for part in parts:
        part.close()
    with visits().initialize_state(whole) as harness:
        assert sorted(harness.keys("count")) == sorted(keys)
        harness.process_watermark(30_000)
        assert len(harness.output) == 40


class Buffer(ProcessFunction, CheckpointedFunction, CheckpointListener):
    """Holds elements back; one list is dealt out, the other shown to all."""

    def __init__(self):
        self.held = []
        self.story = []

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.elements = store.get_list_state(ListStateDescriptor("elements"))
        self.maxima = store.get_union_list_state(ListStateDescriptor("maxima"))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules"))
        self.story.append(("initialize", context.is_restored(), context.get_restored_checkpoint_id()))
        self.held += self.elements

    def open(self, runtime_context):
        self.story.append("open")

    def process_element(self, value, ctx):
        self.held.append(value)
        self.rules.put("last", "same everywhere")

    def snapshot_state(self, context):
        self.elements.update(self.held)
        self.maxima.update([max(self.held)] if self.held else [])
        self.story.append(("snapshot", context.get_checkpoint_id(), context.get_checkpoint_timestamp()))

    def notify_checkpoint_complete(self, checkpoint_id):
        self.story.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id):
        self.story.append(("aborted", checkpoint_id))


def test_a_checkpointed_function_is_called_in_order():
    function = Buffer()
    harness = ProcessFunctionHarness(function, clock=FakeClock(1234))
    harness.process_element(1)
    snapshot = harness.snapshot(7)
    harness.notify_checkpoint_complete(7)
    harness.notify_checkpoint_aborted(8)
    harness.close()
    expected = [("initialize", False, None), "open", ("snapshot", 7, 1234), ("complete", 7), ("aborted", 8)]
    assert function.story == expected
    again = Buffer()
    ProcessFunctionHarness(again).initialize_state(snapshot).open().close()
    assert again.story == [("initialize", True, 7), "open"]


def test_operator_state_over_more_and_fewer_subtasks():
    with ProcessFunctionHarness(Buffer()) as harness:
        harness.process_elements(range(7))
        snapshot = harness.snapshot(1)
    functions = [Buffer() for _ in range(3)]
    parts = [
        ProcessFunctionHarness(function, subtask=subtask, parallelism=3).initialize_state(snapshot).open()
        for subtask, function in enumerate(functions)
    ]
    assert sorted(len(function.held) for function in functions) == [2, 2, 3]
    assert sorted(value for function in functions for value in function.held) == list(range(7))
    assert [function.maxima.get() for function in functions] == [[6]] * 3
    assert [function.rules.get("last") for function in functions] == ["same everywhere"] * 3
    whole = HarnessSnapshot.combine(*[part.snapshot(2) for part in parts])
    for part in parts:
        part.close()
    merged = Buffer()
    with ProcessFunctionHarness(merged).initialize_state(whole):
        assert sorted(merged.held) == list(range(7))
        assert len(merged.maxima.get()) == 3
    same = Buffer()
    with ProcessFunctionHarness(same, subtask=1, parallelism=3).initialize_state(whole):
        assert same.held == functions[1].held


def test_any_operator_of_a_program_takes_part():
    class Counting(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("n"))
            self.count = sum(self.state.get())

        def map(self, value):
            self.count += 1
            return self.count

        def snapshot_state(self, context):
            self.state.update([self.count])

    def harness():
        return harness_for(test_environment().from_collection([]).map(Counting()))

    with harness() as first:
        first.process_elements("abc")
        snapshot = first.snapshot()
    with harness().initialize_state(snapshot) as second:
        second.process_element("d")
        assert second.output == [4]


class CountOfWindows(ProcessWindowFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("windows"))
        self.windows = sum(self.state.get())

    def process(self, key, context, elements):
        self.windows += 1
        yield key, sorted(elements), self.windows

    def snapshot_state(self, context):
        self.state.update([self.windows])


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_go_on_with_what_they_had(backend):
    def harness():
        stream = test_environment().from_collection([]).key_by(lambda value: value % 2)
        windows = stream.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        return harness_for(windows.process(CountOfWindows()), backend=backend)

    with harness() as first:
        first.process_elements([At(1, 1), At(3, 2), At(2, 3), At(5, 11)])
        first.process_watermark(9)
        assert sorted(first.output) == [(0, [2], 2), (1, [1, 3], 1)] or sorted(first.output) == [
            (0, [2], 1),
            (1, [1, 3], 2),
        ]
        snapshot = pickle.loads(pickle.dumps(first.snapshot()))
        first.process_element(At(99, 12))
    with harness().initialize_state(snapshot) as second:
        second.process_element(At(7, 13))
        second.process_watermark(19)
        assert second.output == [(1, [5, 7], 3)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_looking_at_state_that_expires(backend):
    class Remember(KeyedProcessFunction):
        def open(self, runtime_context):
            descriptor = ListStateDescriptor("seen")
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())
            self.seen = runtime_context.get_list_state(descriptor)

        def process_element(self, value, ctx):
            self.seen.add(value)

    with KeyedProcessFunctionHarness(Remember(), lambda value: "k", backend=backend) as harness:
        harness.process_element(1)
        harness.advance(60)
        harness.process_element(2)
        assert harness.state("seen", "k") == [1, 2]
        harness.advance(60)
        assert harness.state("seen", "k") == [2]
        assert harness.state("seen", "other") == []


def test_misuse_is_refused():
    with ProcessFunctionHarness(Buffer()) as harness:
        harness.process_element(1)
        snapshot = harness.snapshot(1)
        with pytest.raises(RuntimeError, match="already"):
            harness.initialize_state(snapshot)
        with pytest.raises(ValueError, match="one checkpoint"):
            HarnessSnapshot.combine(snapshot, harness.snapshot(2))

    class Other(Buffer):
        def initialize_state(self, context):
            context.get_operator_state_store().get_union_list_state(ListStateDescriptor("elements"))

    with pytest.raises(StateIncompatibleError) as caught:
        ProcessFunctionHarness(Other()).initialize_state(snapshot)
    assert caught.value.state == "elements"


def test_keyed_state_is_refused_where_there_is_none():
    class Wrong(ProcessFunction, CheckpointedFunction):
        def initialize_state(self, context):
            context.get_keyed_state_store().get_state(ValueStateDescriptor("x"))

        def snapshot_state(self, context):
            pass

        def process_element(self, value, ctx):
            pass

    with pytest.raises(RuntimeError, match="not keyed"):
        ProcessFunctionHarness(Wrong()).open()
