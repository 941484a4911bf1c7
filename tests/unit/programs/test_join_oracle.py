"""The oracle of joins, evictors and async functions against results worked out by hand, from Flink's documentation."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.testing.programs.keys import KeyOf
from firesteel.testing.programs.nodes.async_waits import AsyncWait, Calls
from firesteel.testing.programs.nodes.joins import Combine, First, IntervalJoin, LateIntervalJoin, Once
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.nodes.watermarks import Watermarks
from firesteel.testing.programs.nodes.window_functions import Listing
from firesteel.testing.programs.nodes.window_joins import JoinPair, SumBoth, WindowCoGroup, WindowJoin
from firesteel.testing.programs.nodes.window_kinds import Evicting, Triggering, WindowKind
from firesteel.testing.programs.nodes.windows import Window
from firesteel.testing.programs.oracle.evaluate import evaluate
from firesteel.testing.programs.program import Misfit, Node, Program, Ref
from firesteel.testing.programs.running.split_source import Split, WatermarkAt

KEY = KeyOf("int")
KEYS = (KEY, KEY)
BOTH = (Ref(0), Ref(1))
LEFT = [(0, 1, 0), (0, 2, 40), (1, 4, 40)]
RIGHT = [(0, 10, 8), (0, 20, 32), (0, 30, 48), (2, 40, 40)]


def _run(node: Node, *inputs: list[Any]) -> list[Any]:
    marks = Watermarks("inline") if len(inputs) == 1 else Watermarks("bounded", 50)
    width = 1 if len(inputs) == 1 else None
    sources = [
        Source(id=index, splits=(Split(tuple(items)),), watermarks=marks, parallelism=width)
        for index, items in enumerate(inputs)
    ]
    program = Program((*sources, node, Sink(id=99, inputs=(Ref(node.id),))))
    program.types()
    return sorted(record[:3] for record in evaluate(program)[99])


def _pairs(lower: int, upper: int, **exclusive: bool) -> list[tuple[int, int]]:
    function = Combine("numbers")
    node = IntervalJoin(id=2, inputs=BOTH, keys=KEYS, lower=lower, upper=upper, function=function, **exclusive)
    return [(v, t) for _, v, t in _run(node, LEFT, RIGHT)]


def test_interval_joins_have_both_bounds_unless_they_are_exclusive() -> None:
    assert _pairs(-8, 8) == [(13, 8), (26, 40), (36, 48)]
    assert _pairs(-8, 8, lower_exclusive=True) == [(13, 8), (36, 48)]
    assert _pairs(-8, 8, upper_exclusive=True) == [(26, 40)]
    assert _pairs(8, 8) == [(13, 8), (36, 48)]
    assert _pairs(8, 8, lower_exclusive=True) == []


def test_a_record_is_joined_with_itself_or_late() -> None:
    items = [(0, 1, 4), WatermarkAt(19), (0, 2, 12), (0, 2, 12), (1, 2, 24)]
    node = LateIntervalJoin(id=1, inputs=(Ref(0),), bound=1, function=First(), once=Once("numbers"))
    assert _run(node, items) == [(0, 1, 0), (0, 2, 0), (1, 2, 0)]


def _grouped(windows: WindowKind, **options: Any) -> list[Any]:
    node = WindowCoGroup(id=2, inputs=BOTH, keys=KEYS, windows=windows, function=SumBoth("numbers"), **options)
    return _run(node, LEFT, RIGHT)


def test_co_groups_have_the_records_of_one_side_too() -> None:
    tumbling = WindowKind("tumbling", 32)
    assert _grouped(tumbling) == [(0, 13, 8), (0, 56, 48), (1, 12, 40), (2, 40, 40)]
    assert _grouped(WindowKind("session", 22)) == [(0, 13, 8), (0, 56, 48), (1, 12, 40), (2, 40, 40)]
    assert _grouped(WindowKind("session", 26)) == [(0, 69, 48), (1, 12, 40), (2, 40, 40)]
    assert _grouped(WindowKind("global")) == [(0, 69, 48), (1, 12, 40), (2, 40, 40)]


def test_sliding_windows_of_two_streams_overlap() -> None:
    node = WindowJoin(id=2, inputs=BOTH, keys=KEYS, windows=WindowKind("sliding", 40, 20), function=JoinPair("numbers"))
    # [-20, 20): 1 and 10; [0, 40): 1 and 10, 20; [20, 60): 2 and 20, 30; [40, 80): 2 and 30
    expected = [(0, 13, 8), (0, 13, 8), (0, 23, 32), (0, 26, 40), (0, 36, 48), (0, 36, 48)]
    assert _run(node, LEFT, RIGHT) == expected


def test_evictors_of_two_streams_see_both() -> None:
    latest = Evicting("time", 10)
    assert _grouped(WindowKind("global"), evicting=latest) == [(0, 36, 48), (1, 12, 40), (2, 40, 40)]
    odd = Evicting("multiples", 2)
    assert _grouped(WindowKind("global"), evicting=odd) == [(0, 3, 0)]
    after = Evicting("multiples", 2, after=True)
    assert _grouped(WindowKind("global"), evicting=after) == _grouped(WindowKind("global"))


def test_a_record_alone_is_a_co_group_of_its_own() -> None:
    results = _grouped(WindowKind("global"), each=True)
    assert results == [(0, 3, 0), (0, 6, 40), (0, 10, 8), (0, 20, 32), (0, 30, 48), (1, 12, 40), (2, 40, 40)]


@pytest.mark.parametrize(
    ("evicting", "before", "after"),
    [
        (Evicting("count", 2), [3, 12, 48], [3, 15, 60]),
        (Evicting("delta", 10), [3, 15, 32], [3, 15, 63]),
        (Evicting("time", 8), [2, 8, 56], [3, 14, 56]),
        (Evicting("multiples", 2), [1, 1, 1], [3, 13, 49]),
    ],
)
def test_evicted_records_do_not_come_back(evicting: Evicting, before: list[int], after: list[int]) -> None:
    items = [(0, 1, 0), (0, 2, 8), (0, 4, 0), (0, 8, 16), (0, 16, 20), (0, 32, 20)]
    for is_after, expected in ((False, before), (True, after)):
        node = Window(
            id=1,
            inputs=(Ref(0),),
            key=KEY,
            windows=WindowKind("tumbling", 100),
            triggering=Triggering("count", 2),
            evicting=Evicting(evicting.name, evicting.number, is_after),
            function=Listing("numbers"),
        )
        assert [v for _, v, _, _ in _run_in_order(node, items)] == expected


def _run_in_order(node: Node, items: list[Any]) -> list[Any]:
    source = Source(id=0, splits=(Split(tuple(items)),), watermarks=Watermarks("inline"), parallelism=1)
    program = Program((source, node, Sink(id=99, inputs=(Ref(node.id),))))
    program.types()
    return evaluate(program)[99]


def _called(function: Calls, timeout_ms: int = 600_000) -> list[int]:
    node = AsyncWait(
        id=1, inputs=(Ref(0),), parallelism=1, function=function, capacity=3, is_ordered=True, timeout_ms=timeout_ms
    )
    return [v for _, v, _, _ in _run_in_order(node, [(0, v, 0) for v in range(6)])]


def test_async_functions() -> None:
    assert _called(Calls(3, 1)) == [1, 2, 2, 4, 5, 5]
    assert _called(Calls(3, 1, fails=4)) == [1, 2, 2, 4, 5, 5]
    assert _called(Calls(2, 1, fails=4, attempts=3)) == [1, 5]
    assert _called(Calls(2, 1, hangs=2), timeout_ms=20) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(Misfit):
        _called(Calls(2, 1, hangs=2))
