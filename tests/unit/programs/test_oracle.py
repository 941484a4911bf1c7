"""The oracle against results worked out by hand, from Flink's documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firesteel.testing.programs.keys import KeyOf
from firesteel.testing.programs.nodes.processes import KeyedProcess, Steps
from firesteel.testing.programs.nodes.reductions import Add, Reduce
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.nodes.stateless import Copies, FlatMap
from firesteel.testing.programs.nodes.steps import Expired, Inactivity, Kept, TimedBuckets
from firesteel.testing.programs.nodes.timestamps import AssignTimestamps
from firesteel.testing.programs.nodes.watermarks import Watermarks
from firesteel.testing.programs.nodes.window_functions import Listing
from firesteel.testing.programs.nodes.window_kinds import Triggering, WindowKind
from firesteel.testing.programs.nodes.windows import Window
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.oracle.flow import Mode
from firesteel.testing.programs.program import Node, Program, Ref
from firesteel.testing.programs.running.split_source import Split, WatermarkAt

KEY = KeyOf("int")


def _run(items: list[Any], *nodes: Node, mode: Mode = Mode.STREAM, shape: str = "numbers", tag: str = "") -> list[Any]:
    source = Source(id=0, splits=(Split(tuple(items)),), shape=shape, watermarks=Watermarks("inline"), parallelism=1)
    last = nodes[-1].id
    program = Program((source, *nodes, Sink(id=99, inputs=(Ref(last, tag),))))
    program.types()
    return [record[:3] for record in evaluate(program, mode)[99]]


def _window(kind: WindowKind, trigger: Triggering = Triggering(), **options: Any) -> Window:
    return Window(
        id=1, inputs=(Ref(0),), key=KEY, windows=kind, triggering=trigger, function=Listing("numbers"), **options
    )


def test_a_late_record_is_dropped_or_goes_to_the_side() -> None:
    items = [(0, 1, 4), (0, 2, 8), WatermarkAt(19), (0, 4, 12), (0, 8, 24)]
    tumbling = WindowKind("tumbling", 20)
    assert _run(items, _window(tumbling)) == [(0, 3, 19), (0, 8, 39)]
    assert _run(items, _window(tumbling, late_output=True), tag="late") == [(0, 4, 12)]


def test_within_the_allowed_lateness_a_window_fires_again() -> None:
    items = [(0, 1, 4), WatermarkAt(19), (0, 2, 8), WatermarkAt(23), (0, 4, 8), WatermarkAt(24), (0, 8, 8)]
    assert _run(items, _window(WindowKind("tumbling", 20), lateness=5)) == [(0, 1, 19), (0, 3, 19), (0, 7, 19)]


def test_purging_forgets_what_was_emitted() -> None:
    items = [(0, 1, 4), WatermarkAt(19), (0, 2, 8)]
    purging = Triggering(purging=True)
    assert _run(items, _window(WindowKind("tumbling", 20), purging, lateness=50)) == [(0, 1, 19), (0, 2, 19)]


def test_sliding_windows_overlap() -> None:
    assert _run([(0, 1, 4), (0, 2, 24)], _window(WindowKind("sliding", 40, 20))) == [(0, 1, 19), (0, 3, 39), (0, 2, 59)]


def test_sessions_merge_when_a_record_joins_them() -> None:
    items = [(0, 1, 0), (0, 2, 40), (0, 4, 20)]
    assert _run(items, _window(WindowKind("session", 22))) == [(0, 7, 61)]
    assert _run(items[:2], _window(WindowKind("session", 22))) == [(0, 1, 21), (0, 2, 61)]


def test_a_count_trigger_fires_for_what_is_there() -> None:
    items = [(0, v, 4) for v in (1, 2, 4, 8)]
    assert _run(items, _window(WindowKind("tumbling", 20), Triggering("count", 2))) == [(0, 3, 19), (0, 15, 19)]
    purging = Triggering("count", 2, purging=True)
    assert _run(items, _window(WindowKind("tumbling", 20), purging)) == [(0, 3, 19), (0, 12, 19)]


def test_count_windows() -> None:
    items = [(0, v, 4) for v in (1, 2, 4, 8, 16)]
    assert _run(items, _window(WindowKind("count", 2))) == [(0, 3, 4), (0, 12, 4)]
    assert _run(items, _window(WindowKind("count", 3, 2))) == [(0, 7, 4), (0, 28, 4)]


def test_a_continuous_trigger_fires_at_intervals_and_at_the_end() -> None:
    items = [(0, 1, 4), WatermarkAt(12), (0, 2, 12), WatermarkAt(30), WatermarkAt(41)]
    continuous = Triggering("continuous", 10)
    expected = [(0, 1, 39), (0, 3, 39), (0, 3, 39), (0, 3, 39)]  # at 10, 20, 30 and 39
    assert _run(items, _window(WindowKind("tumbling", 40), continuous)) == expected


def test_a_batch_gives_the_last_result_of_a_reduction_and_has_no_late_records() -> None:
    items = [(0, 1, 4), (1, 8, 4), (0, 2, 8)]
    reduce = Reduce(id=1, inputs=(Ref(0),), key=KEY, function=Add("numbers"))
    assert _run(items, reduce) == [(0, 1, 4), (1, 8, 4), (0, 3, 8)]
    assert _run(items, reduce, mode=Mode.BATCH) == [(0, 3, 8), (1, 8, 4)]
    late = [(0, 1, 4), WatermarkAt(19), (0, 2, 8)]
    assert _run(late, _window(WindowKind("tumbling", 20)), mode=Mode.BATCH) == [(0, 3, 19)]


def test_what_was_emitted_does_not_change() -> None:
    flat_map = FlatMap(id=1, inputs=(Ref(0),), function=Copies(4, changes=True), parallelism=1)
    source = Source(id=0, splits=(Split(((0, 3, 4),)),), shape="list", parallelism=1)
    program = Program((source, flat_map, Sink(id=9, inputs=(Ref(1),))))
    assert [(v, trail) for _, v, _, trail in evaluate(program)[9]] == [(0, (3, 0)), (1, (3, 0, 1)), (2, (3, 0, 1, 2))]

    kept = KeyedProcess(id=1, inputs=(Ref(0),), key=KEY, function=Steps("list", "int", (Kept(),)))
    source = Source(id=0, splits=(Split(((0, 1, 4), (0, 2, 4))),), shape="list", parallelism=1)
    program = Program((source, kept, Sink(id=9, inputs=(Ref(1),))))
    assert [trail for *_, trail in evaluate(program)[9]] == [(1,), (1, 2)]


def test_state_that_expires_is_gone_and_other_state_is_not() -> None:
    expired = KeyedProcess(id=1, inputs=(Ref(0),), key=KEY, function=Steps("list", "int", (Expired(),)))
    source = Source(id=0, splits=(Split(((0, 1, 4), (0, 2, 4), (0, 4, 8))),), shape="list", parallelism=1)
    program = Program((source, expired, Sink(id=9, inputs=(Ref(1),))))
    program.types()
    assert [(v, trail) for _, v, _, trail in evaluate(program)[9]] == [(1, (1,)), (2, (2,)), (4, (3,))]
    # what is left: a value, a reduced one, one in the list and one in the map; then two in both, one of them looked up
    in_batch = [(v, trail) for _, v, _, trail in evaluate(program, Mode.BATCH)[9]]
    assert in_batch == [(1, (1,)), (2 + 4, (2,)), (4 + 7, (3,))]


def test_event_time_timers_fire_in_order_when_the_watermark_passes() -> None:
    process = KeyedProcess(id=1, inputs=(Ref(0),), key=KEY, function=Steps("numbers", "int", (TimedBuckets(size=32),)))
    items = [(0, 1, 40), (0, 2, 4), WatermarkAt(31), (0, 4, 8), WatermarkAt(32), (0, 8, 44)]
    assert _run(items, process) == [(0, 6, 32), (0, 9, 64)]


def test_a_timer_that_is_deleted_does_not_fire() -> None:
    process = KeyedProcess(id=1, inputs=(Ref(0),), key=KEY, function=Steps("numbers", "int", (Inactivity(gap=32),)))
    assert _run([(0, 1, 0), (0, 2, 20), (0, 4, 200)], process) == [(0, 3, 64), (0, 4, 256)]


def test_a_subtask_without_records_holds_event_time_back_until_the_end() -> None:
    """The assigner does not look at what upstream says of idleness: only its own idle timeout helps."""

    def before_the_end(parallelism: int | None, idle_ms: int | None) -> list[Any]:
        marks = Watermarks("punctuated", idle_ms=idle_ms, assigner=True)
        assign = AssignTimestamps(id=1, inputs=(Ref(0),), parallelism=parallelism, watermarks=marks)
        source = Source(
            id=0,
            splits=(Split(((0, 1, 4), (0, 2, 24))), Split(())),
            watermarks=Watermarks("monotonous", idle_ms=10),
            parallelism=parallelism,
            bounded=False,
        )
        window = replace(_window(WindowKind("tumbling", 20)), id=2, inputs=(Ref(1),))
        program = Program((source, assign, window, Sink(id=99, inputs=(Ref(2),))), ends=False)
        return [record[:3] for record in evaluate(program, Mode.STAY)[99]]

    assert before_the_end(1, None) == [(0, 1, 19)]
    assert before_the_end(2, None) == []
    assert before_the_end(2, 10) == [(0, 1, 19)]


def test_watermarks_of_one_subtask_do_not_make_the_records_of_another_late() -> None:
    marks = Watermarks("punctuated", assigner=True)
    assign = AssignTimestamps(id=1, inputs=(Ref(0),), parallelism=2, watermarks=marks)
    splits = (Split(((0, 1, 200),)), Split(((1, 2, 4), (1, 4, 8), (1, 8, 100))))
    source = Source(id=0, splits=splits, parallelism=2, timestamps=False)
    window = replace(_window(WindowKind("tumbling", 20), lateness=400), id=2, inputs=(Ref(1),))
    program = Program((source, assign, window, Sink(id=99, inputs=(Ref(2),))))
    assert [record[:3] for record in evaluate(program)[99]] == [(1, 6, 19), (1, 8, 119), (0, 1, 219)]
