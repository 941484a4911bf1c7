"""Broadcast functions, fed by hand: what each side may do, timers, all keys at once, and snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.api.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from firesteel.common.errors import InvalidProgramError, StateIncompatibleError
from firesteel.common.time import Time
from firesteel.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction, OutputTag, ProcessFunction
from firesteel.spi.execution_traits import BATCH, EPOCHS
from firesteel.testing import (
    At,
    BroadcastHarness,
    BroadcastProcessFunctionHarness,
    Emitted,
    FakeClock,
    HarnessSnapshot,
    KeyedBroadcastProcessFunctionHarness,
    ProcessFunctionHarness,
    harness_for,
    test_environment,
)

RULES = MapStateDescriptor("rules")
LOG = MapStateDescriptor("log")
WAITING = ListStateDescriptor("waiting")
COUNT = ValueStateDescriptor("count")
SIDE = OutputTag("side")
KEY = lambda record: record[0]

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


class Do(BroadcastProcessFunction):
    """Does on each side what it is told to."""

    def __init__(self, main: Any = None, broadcast: Any = None):
        self.main = main or (lambda value, ctx: [value])
        self.broadcast = broadcast or (lambda value, ctx: ctx.get_broadcast_state(RULES).put(*value))

    def process_element(self, value: Any, ctx: Any) -> Any:
        return self.main(value, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return self.broadcast(value, ctx)


class KeyedDo(KeyedBroadcastProcessFunction):
    """The same with keyed state: counts the records of a key, and keeps them."""

    def __init__(self, main: Any = None, broadcast: Any = None, timer: Any = None):
        self.main = main or (lambda function, value, ctx: None)
        self.broadcast = broadcast or (lambda function, value, ctx: ctx.get_broadcast_state(RULES).put(*value))
        self.timer = timer

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.waiting.add(value)
        return self.main(self, value, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return self.broadcast(self, value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return self.timer(self, timestamp, ctx)


def harness(main: Any = None, broadcast: Any = None, **options: Any) -> BroadcastProcessFunctionHarness:
    return BroadcastProcessFunctionHarness(Do(main, broadcast), RULES, LOG, **options)


def keyed(
    main: Any = None, broadcast: Any = None, timer: Any = None, **options: Any
) -> KeyedBroadcastProcessFunctionHarness:
    return KeyedBroadcastProcessFunctionHarness(KeyedDo(main, broadcast, timer), KEY, RULES, LOG, **options)


# -- both sides ---------------------------------------------------------------------------------------


def test_one_side_reads_what_the_other_writes() -> None:
    def read(value: str, ctx: Any) -> list[Any]:
        state = ctx.get_broadcast_state(RULES)
        return [(value, state.get(value), value in state, state.is_empty(), sorted(state), sorted(state.items()))]

    with harness(read) as both:
        both.process_element("a")
        both.process_broadcast_element(("a", 1))
        both.process_broadcast_element(("b", 2))
        both.process_element("a")
        both.process_broadcast_element(("a", 3))
        both.process_element("a")
        assert both.output == [
            ("a", None, False, True, [], []),
            ("a", 1, True, False, ["a", "b"], [("a", 1), ("b", 2)]),
            ("a", 3, True, False, ["a", "b"], [("a", 3), ("b", 2)]),
        ]
        assert (both.broadcast_state(RULES), both.broadcast_state(LOG)) == ({"a": 3, "b": 2}, {})


def test_a_view_that_was_kept_is_up_to_date() -> None:
    kept: list[Any] = []
    with harness(lambda _, ctx: kept.append(ctx.get_broadcast_state(RULES))) as both:
        both.process_element(0)
        both.process_broadcast_element(("a", 1))
        assert list(kept[0].values()) == [1]


def test_the_broadcast_side_changes_several_states() -> None:
    def change(value: Any, ctx: Any) -> None:
        rules, log = ctx.get_broadcast_state(RULES), ctx.get_broadcast_state(LOG)
        rules.put_all({"a": 1, "b": 2, "c": 3})
        del rules["a"]
        rules.remove("nothing")
        rules["b"] = value
        log.put("seen", sorted(rules.keys()))

    with harness(broadcast=change) as both:
        both.process_broadcast_element(7)
        assert both.broadcast_state(RULES) == {"b": 7, "c": 3}
        assert both.broadcast_state(LOG) == {"seen": ["b", "c"]}
    with harness(broadcast=lambda _, ctx: ctx.get_broadcast_state(RULES).clear()) as both:
        both.process_broadcast_element(0)
        assert both.broadcast_state(RULES) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.put("a", 1),
        lambda state: state.put_all({"a": 1}),
        lambda state: state.remove("a"),
        lambda state: state.clear(),
        lambda state: state.__setitem__("a", 1),
        lambda state: state.__delitem__("a"),
    ],
)
def test_the_other_side_cannot_change_it(change: Any) -> None:
    with harness(lambda _, ctx: change(ctx.get_broadcast_state(RULES))) as both:
        both.process_broadcast_element(("a", 0))
        with pytest.raises(InvalidProgramError, match=r"'rules' is read-only") as refused:
            both.process_element(0)
        assert "process_broadcast_element" in str(refused.value)
        assert both.broadcast_state(RULES) == {"a": 0}


def test_a_state_that_was_not_broadcast_is_refused_by_name() -> None:
    ask = lambda _, ctx: ctx.get_broadcast_state(MapStateDescriptor("ruels"))
    with harness(ask, ask) as both:
        for process in (both.process_element, both.process_broadcast_element):
            with pytest.raises(InvalidProgramError, match="no broadcast state 'ruels' here, only 'log', 'rules'"):
                process(0)
    ask_by_name = lambda _, ctx: ctx.get_broadcast_state("rules")
    with harness(ask_by_name) as both, pytest.raises(TypeError, match="MapStateDescriptor"):
        both.process_element(0)


def test_time_and_timestamps_on_both_sides() -> None:
    def tell(value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()
        yield SIDE, value

    with harness(tell, tell, clock=FakeClock(50)) as both:
        both.process_watermark1(7)
        both.process_watermark2(3)
        both.process_element("a", 10)
        both.process_broadcast_element(At("b", 20))
        both.process_element("c")
        both.process_broadcast_element("d")
        assert both.records == [
            Emitted(("a", 10, 3, 50), 10),
            Emitted(("b", 20, 3, 50), 20),
            Emitted(("c", None, 3, 50), None),
            Emitted(("d", None, 3, 50), None),
        ]
        assert both.side_records(SIDE)[:2] == [Emitted("a", 10), Emitted("b", 20)]
        assert both.watermarks == [3]


def test_no_timers_without_keys() -> None:
    with (
        harness(lambda _, ctx: ctx.timer_service().register_event_time_timer(1)) as both,
        pytest.raises(RuntimeError, match="keyed streams"),
    ):
        both.process_element(0)


# -- the keyed side -----------------------------------------------------------------------------------


@every_backend
def test_keyed_state_and_timers(backend: str) -> None:
    def main(function: Any, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(200)
        yield ctx.get_current_key(), function.count.value(), ctx.get_broadcast_state(RULES).get(value[0])

    def timer(function: Any, timestamp: int, ctx: Any) -> Any:
        rule = ctx.get_broadcast_state(RULES).get(ctx.get_current_key())
        yield timestamp, ctx.timestamp(), ctx.time_domain().name, ctx.get_current_key(), function.count.value(), rule
        yield SIDE, ctx.current_watermark()

    with keyed(main, timer=timer, backend=backend) as both:
        both.process_element(("a", 1))
        both.process_broadcast_element(("a", "rule"))
        both.process_element(("a", 2))
        both.process_element(("b", 3))
        assert both.take_output() == [("a", 1, None), ("a", 2, "rule"), ("b", 1, None)]
        both.process_watermark1(100)
        assert both.output == []  # the broadcast side's event time counts as well
        both.process_watermark2(150)
        assert sorted(both.take_output()) == [
            (100, 100, "EVENT_TIME", "a", 2, "rule"),
            (100, 100, "EVENT_TIME", "b", 1, None),
        ]
        assert both.side_output(SIDE) == [100, 100]
        both.process_broadcast_element(("b", "late rule"))
        both.advance(200)
        assert sorted(both.output)[1] == (200, 200, "PROCESSING_TIME", "b", 1, "late rule")


def test_on_timer_may_only_read_the_broadcast_state() -> None:
    with keyed(
        lambda function, _, ctx: ctx.timer_service().register_event_time_timer(1),
        timer=lambda function, _, ctx: ctx.get_broadcast_state(RULES).put("a", 1),
    ) as both:
        both.process_element(("a", 1))
        with pytest.raises(InvalidProgramError, match="read-only"):
            both.process_watermark(1)


# -- all keys -----------------------------------------------------------------------------------------


@every_backend
def test_apply_to_keyed_state_of_all_keys(backend: str) -> None:
    """Changes some, clears others, sees every key once; the rest of the state stays."""

    def apply(function: Any, value: Any, ctx: Any) -> Any:
        seen: list[Any] = []

        def visit(key: Any, state: Any) -> None:
            seen.append((key, len(list(state.get()))))
            if key % 3 == 0:
                state.clear()
            elif key % 3 == 1:
                state.add((key, "added"))

        ctx.apply_to_keyed_state(WAITING, visit)
        yield from sorted(seen)

    with keyed(broadcast=apply, backend=backend) as both:
        for key in [*range(30), 5]:
            both.process_element((key, "x"))
        both.process_broadcast_element("go")
        assert both.take_output() == [(key, 2 if key == 5 else 1) for key in range(30)]
        assert sorted(both.keys(WAITING)) == [key for key in range(30) if key % 3]
        assert both.state(WAITING, 4) == [(4, "x"), (4, "added")]
        assert both.state(WAITING, 5) == [(5, "x")] * 2
        assert both.state(COUNT, 3) == 1
        both.process_broadcast_element("again")
        assert both.output == [(key, 1 if key % 3 == 2 and key != 5 else 2) for key in range(30) if key % 3]


@every_backend
def test_apply_may_use_another_state_of_the_key(backend: str) -> None:
    def apply(function: Any, value: Any, ctx: Any) -> None:
        ctx.apply_to_keyed_state(COUNT, lambda key, state: function.waiting.add((key, state.value())))

    with keyed(broadcast=apply, backend=backend) as both:
        both.process_element(("a", 1))
        both.process_broadcast_element(0)
        assert both.state(WAITING, "a") == [("a", 1), ("a", 1)]


def test_apply_with_an_object_and_with_a_state_nobody_has_asked_for() -> None:
    class Visitor:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def process(self, key: Any, state: Any) -> None:
            self.seen.append((key, state.value()))

    visitor = Visitor()

    def apply(function: Any, value: Any, ctx: Any) -> None:
        ctx.apply_to_keyed_state(ValueStateDescriptor("new"), visitor)
        ctx.apply_to_keyed_state(COUNT, visitor)

    with keyed(broadcast=apply) as both:
        both.process_element(("a", 1))
        both.process_broadcast_element(0)
        assert visitor.seen == [("a", 1)]


def test_in_a_batch_there_are_no_keys_yet() -> None:
    """As in Flink: keys come one at a time after the broadcast side, so there is nothing to go over."""
    seen: list[Any] = []
    visit = lambda key, state: seen.append(key)
    with keyed(broadcast=lambda function, _, ctx: ctx.apply_to_keyed_state(COUNT, visit)) as both:
        both.process_element(("a", 1))
        both._chained.execution = BATCH
        both.process_broadcast_element(0)
        assert seen == []
        both._chained.execution = EPOCHS
        both.process_broadcast_element(0)
        assert seen == ["a"]


@pytest.mark.parametrize("wrong", [("count", print), (COUNT, None)])
def test_apply_with_wrong_arguments(wrong: Any) -> None:
    with (
        keyed(broadcast=lambda function, _, ctx: ctx.apply_to_keyed_state(*wrong)) as both,
        pytest.raises(TypeError, match="apply_to_keyed_state needs"),
    ):
        both.process_broadcast_element(0)


@every_backend
@pytest.mark.parametrize(
    "use",
    [
        lambda function: function.count.value(),
        lambda function: function.count.update(1),
        lambda function: function.waiting.add(1),
        lambda function: function.waiting.get(),
        lambda function: function.waiting.clear(),
    ],
)
def test_the_broadcast_side_has_no_key(use: Any, backend: str) -> None:
    """Nor has it one after a record of the other side, or after all keys were visited."""

    def broadcast(function: Any, value: Any, ctx: Any) -> None:
        ctx.apply_to_keyed_state(COUNT, lambda key, state: state.update(8))
        use(function)

    with keyed(broadcast=broadcast, backend=backend) as both:
        both.process_element(("a", 1))
        with pytest.raises(InvalidProgramError, match=r"no key.*\n.*apply_to_keyed_state"):
            both.process_broadcast_element(0)
        assert both.state(COUNT, "a") == 8
        both.process_element(("a", 2))
        assert (both.state(COUNT, "a"), both.keys(WAITING)) == (9, ["a"])


# -- snapshots ----------------------------------------------------------------------------------------


@every_backend
def test_a_new_subtask_gets_any_ones_copy(backend: str) -> None:
    """Two subtasks become three on the other backend: all have all rules."""
    parts = [keyed(subtask=subtask, parallelism=2, backend=backend).open() for subtask in range(2)]
    for part in parts:
        part.process_broadcast_element(("a", 1))
        part.process_broadcast_element(("b", [2]))
    snapshot = HarnessSnapshot.combine(*(part.snapshot(4) for part in parts))
    for part in parts:
        part.process_broadcast_element(("c", 3))
        part.close()
    other = "rocksdb" if backend == "hashmap" else "hashmap"
    for subtask in range(3):
        with keyed(subtask=subtask, parallelism=3, backend=other).initialize_state(snapshot) as part:
            assert part.broadcast_state(RULES) == {"a": 1, "b": [2]}
            part.process_broadcast_element(("a", 9))
            assert part.broadcast_state(RULES) == {"a": 9, "b": [2]}


def test_state_without_keys_is_restored_too() -> None:
    with harness() as both:
        both.process_broadcast_element(("a", 1))
        snapshot = both.snapshot()
    read = lambda value, ctx: [(value, ctx.get_broadcast_state(RULES).get("a"))]
    with harness(read).initialize_state(snapshot) as both:
        both.process_element("x")
        assert both.output == [("x", 1)]


def test_a_restored_state_of_another_kind_is_refused() -> None:
    class Lists(ProcessFunction):
        def initialize_state(self, context: Any) -> None:
            self.rules = context.get_operator_state_store().get_list_state(ListStateDescriptor("rules"))
            self.rules.add(1)

        def snapshot_state(self, context: Any) -> None:
            """The list is as it is."""

        def process_element(self, value: Any, ctx: Any) -> Any:
            """Does nothing."""

    with ProcessFunctionHarness(Lists()) as lists:
        snapshot = lists.snapshot()
    restored = harness().initialize_state(snapshot)
    with pytest.raises(StateIncompatibleError, match="'rules' is declared as broadcast state, but it is list state"):
        restored.open()


# -- the harness itself -------------------------------------------------------------------------------


def test_a_harness_for_an_operator_of_a_program() -> None:
    env = test_environment()
    rules = env.from_collection([("a", 1)]).broadcast(RULES)
    stream = env.from_collection([("a", 1)])
    both = harness_for(stream.connect(rules).process(Do()))
    assert isinstance(both, BroadcastHarness)
    both.process_broadcast_element(("x", 5))
    both.process_element2(("y", 6))
    assert both.broadcast_state(RULES) == {"x": 5, "y": 6}
    with harness_for(stream.key_by(KEY).connect(rules).process(KeyedDo())) as both:
        both.process_element(("k", 1))
        assert both.state(COUNT, "k") == 1


def test_the_wrong_kind_of_function_is_refused() -> None:
    with pytest.raises(TypeError, match="KeyedBroadcastProcessFunction"):
        KeyedBroadcastProcessFunctionHarness(Do(), KEY, RULES)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="BroadcastProcessFunction"):
        BroadcastProcessFunctionHarness(KeyedDo(), RULES)  # type: ignore[arg-type]


def test_descriptors_a_task_would_refuse_are_refused_in_the_program() -> None:
    stream = test_environment().from_collection([1])
    expiring = MapStateDescriptor("rules")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(InvalidProgramError, match="time-to-live"):
        stream.broadcast(RULES, expiring)
    with pytest.raises(InvalidProgramError, match="reserved"):
        stream.broadcast(MapStateDescriptor("_rules"))
