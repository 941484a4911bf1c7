"""Windows restored from snapshots: either operator takes up what either of them wrote, on either backend.

After a restore event time starts over: a record may come for a window that has fired before the watermark is back.
What the general operator then does, restored from its own savepoint, is the measure (and is what Flink does).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.api.output_tag import OutputTag
from firesteel.api.state import ValueStateDescriptor
from firesteel.common.errors import StateIncompatibleError
from firesteel.common.time import Time
from firesteel.common.windows import TimeWindow
from firesteel.datastream.functions import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.window import EventTimeTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.operators.window.aligned import AlignedWindowOperator
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.state.registry import ROCKSDB
from firesteel.runtime.time.turns import Turn
from firesteel.spi.execution_traits import PIPELINED
from firesteel.testing.operator_context import FakeOperatorContext
from tests.support.state.keyed_backends import Workbench

LATE = OutputTag("late")
MAX = 128
COUNT = ValueStateDescriptor("count")


_turns_to_end: list[Turn] = []


def end_turns() -> None:
    """What functions call that take too long."""
    for turn in _turns_to_end:
        turn.end()


class Collect(AggregateFunction):
    """Changes its accumulator in place."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[int]) -> Any:
        end_turns()
        return tuple(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Firings(ProcessWindowFunction):
    """Counts its firings per key and window, and per key."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        end_turns()
        window = context.window_state().get_state(COUNT)
        window.update((window.value() or 0) + 1)
        yield key, tuple(elements), context.window().start, context.window().end, window.value()

    def clear(self, context: Any) -> None:
        context.window_state().get_state(COUNT).clear()


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    size = draw(st.integers(1, 12))
    if draw(st.booleans()):
        assigner: Any = TumblingEventTimeWindows.of(Time.milliseconds(size))
    else:
        assigner = SlidingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(draw(st.integers(1, 12))))
    aggregation, function = draw(
        st.sampled_from(
            [("reduce", lambda a, b: (a[0], a[1] * 10 + b[1])), ("aggregate", Collect()), (None, None)],
        )
    )
    return WindowSpec(
        assigner=assigner,
        trigger=EventTimeTrigger(),
        aggregation=aggregation,
        aggregate_function=function,
        window_function=Firings() if aggregation is None or draw(st.booleans()) else None,
        allowed_lateness=draw(st.sampled_from([0, 1, 5, 20, MAX_WATERMARK])),
        late_tag=draw(st.sampled_from([None, LATE])),
    )


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-20, 20)), min_size=1, max_size=6)
steps = st.lists(st.one_of(records, records, st.integers(-20, 30)), max_size=8)


class Job:
    """One window operator on a backend."""

    def __init__(self, operator: Any, backend: Any):
        self.operator = operator
        self.backend = backend
        self.context = FakeOperatorContext(lambda record: record[0], backend=backend)
        self.watermark = -(1 << 63)
        operator.open(self.context)

    def run(self, script: list[Any], *, in_parts: bool = False) -> list[Any]:
        """What comes out after each step; with ``in_parts`` every turn ends after one pane has fired."""
        seen = []
        for step in script:
            if isinstance(step, list):
                self.operator.process_batch([record[:2] for record in step], [record[2] for record in step])
            elif step > self.watermark:
                self.watermark = step
                if in_parts:
                    while not self.fire_one(step):
                        pass
                self.operator.process_watermark(step)
            seen.append(
                (
                    Counter(self.context.take_output()),
                    self.context.take_side_output(LATE),
                    self.context.counter("numLateRecordsDropped").count,
                )
            )
        return seen

    def fire_one(self, watermark: int) -> bool:
        """Has a turn in which one pane fires; whether none is left."""
        turn = self.context.turn
        turn.begin(1.0)
        _turns_to_end.append(turn)
        try:
            return bool(self.operator.fire_timers(watermark))
        finally:
            _turns_to_end.clear()
            turn.finish()


def write(bench: Workbench, operator: Any, scripts: list[list[Any]], kind: SnapshotKind) -> KeyedStateHandle:
    """The snapshot after the last script; after each of the others there was a checkpoint."""
    backend = bench.backend()
    job = Job(operator, backend)
    for script in scripts[:-1]:
        job.run(script)
        bench.snapshot(backend)
        backend.notify_checkpoint_complete(bench.number)
    job.run(scripts[-1])
    return bench.snapshot(backend, kind)


@settings(max_examples=100, deadline=None)
@given(specs(), st.lists(steps, min_size=1, max_size=3), steps, st.sampled_from(["hashmap", "hashmap-full"]))
def test_either_operator_takes_up_what_either_wrote(
    spec: WindowSpec, before: list[list[Any]], after: list[Any], kind: str
) -> None:
    bench = Workbench(kind, MAX, lambda: 0)
    general = write(bench, WindowOperator(spec), before, SnapshotKind.SAVEPOINT)
    aligned = write(bench, AlignedWindowOperator(spec), before, SnapshotKind.SAVEPOINT)
    native = write(bench, AlignedWindowOperator(spec), before, SnapshotKind.CHECKPOINT)
    native_general = write(bench, WindowOperator(spec), before, SnapshotKind.CHECKPOINT)
    after = [*after, MAX_WATERMARK]
    expected = Job(WindowOperator(spec), bench.restore([general])).run(after)
    for handle in (aligned, native, native_general, general):
        for operator in (WindowOperator(spec), AlignedWindowOperator(spec)):
            job = Job(operator, bench.restore([handle]))
            assert job.run(after) == expected, (operator, handle.format)


@settings(max_examples=100, deadline=None)
@given(specs(), steps, st.sampled_from([WindowOperator, AlignedWindowOperator]))
def test_turns_that_end_early_change_nothing(spec: WindowSpec, script: list[Any], operator: Any) -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    script = [*script, MAX_WATERMARK]
    expected = Job(operator(spec), bench.backend()).run(script)
    job = Job(operator(spec), bench.backend())
    assert job.run(script, in_parts=True) == expected
    assert job.context.watermarks == sorted(set(job.context.watermarks))
    if spec.allowed_lateness != MAX_WATERMARK:
        assert job.context.stored("window-contents") == {}


@settings(max_examples=100, deadline=None)
@given(specs(), steps, st.integers(-20, 30), st.integers(1, 5), st.sampled_from(["hashmap", "hashmap-full"]))
def test_a_snapshot_between_two_panes_has_those_that_are_left(
    spec: WindowSpec, before: list[Any], watermark: int, panes: int, kind: str
) -> None:
    whole = Job(WindowOperator(spec), Workbench("hashmap", MAX, lambda: 0).backend())
    expected = sum((output for output, *_ in whole.run([*before, watermark, MAX_WATERMARK])), Counter())
    for first in (WindowOperator, AlignedWindowOperator):
        for snapshot_kind in (SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT):
            for second in (WindowOperator, AlignedWindowOperator):
                bench = Workbench(kind, MAX, lambda: 0)
                job = Job(first(spec), bench.backend())
                seen = sum((output for output, *_ in job.run(before)), Counter())
                bench.snapshot(job.backend)
                if watermark > job.watermark:
                    for _ in range(panes):
                        job.fire_one(watermark)
                seen += Counter(job.context.take_output())
                handle = bench.snapshot(job.backend, snapshot_kind)
                restored = Job(second(spec), bench.restore([handle]))
                seen += sum((output for output, *_ in restored.run([watermark, MAX_WATERMARK])), Counter())
                assert seen == expected, (first, second, snapshot_kind)


@settings(max_examples=100, deadline=None)
@given(specs(), st.lists(steps, min_size=1, max_size=2), steps, steps)
def test_snapshots_after_a_restore_are_as_good(
    spec: WindowSpec, before: list[list[Any]], between: list[Any], after: list[Any]
) -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    general = write(bench, WindowOperator(spec), before, SnapshotKind.SAVEPOINT)
    native = write(bench, AlignedWindowOperator(spec), before, SnapshotKind.CHECKPOINT)
    after = [*after, MAX_WATERMARK]
    results = []
    for handle, first, kind, second in (
        (general, WindowOperator, SnapshotKind.SAVEPOINT, WindowOperator),
        (general, AlignedWindowOperator, SnapshotKind.CHECKPOINT, AlignedWindowOperator),
        (general, AlignedWindowOperator, SnapshotKind.SAVEPOINT, WindowOperator),
        (native, AlignedWindowOperator, SnapshotKind.CHECKPOINT, WindowOperator),
        (native, WindowOperator, SnapshotKind.CHECKPOINT, AlignedWindowOperator),
    ):
        job = Job(first(spec), bench.restore([handle], reusable=handle is native))
        job.run(between)
        again = bench.snapshot(job.backend, kind)
        results.append(Job(second(spec), bench.restore([again])).run(after))
    assert all(result == results[0] for result in results), results


@settings(max_examples=50, deadline=None)
@given(specs(), st.lists(steps, min_size=1, max_size=2), steps, st.integers(1, MAX - 1))
def test_subtasks_with_other_watermarks_become_one(
    spec: WindowSpec, before: list[list[Any]], after: list[Any], split: int
) -> None:
    """The windows of one subtask may have fired while those of the other have not."""
    bench = Workbench("hashmap", MAX, lambda: 0)
    whole = write(bench, AlignedWindowOperator(spec), before, SnapshotKind.CHECKPOINT)
    results = []
    for operator in (WindowOperator, AlignedWindowOperator):
        handles = []
        for groups, watermark in ((KeyGroupRange(0, split - 1), 5), (KeyGroupRange(split, MAX - 1), -5)):
            part = Job(operator(spec), bench.restore([whole], groups))
            part.run([watermark])
            handles.append(bench.snapshot(part.backend))
        results.append(Job(operator(spec), bench.restore(handles)).run([*after, MAX_WATERMARK]))
    assert results[0] == results[1]


@settings(max_examples=20, deadline=None)
@given(specs(), steps, steps)
def test_windows_move_to_rocksdb_and_back(spec: WindowSpec, before: list[Any], after: list[Any]) -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    try:
        savepoint = write(bench, AlignedWindowOperator(spec), [before], SnapshotKind.SAVEPOINT)
        on_disk = bench.restore([savepoint], kind="rocksdb")
        operator = spec.create(OperatorRuntime(PIPELINED, 200, keeps_objects=ROCKSDB.keeps_objects))
        assert isinstance(operator, WindowOperator)
        job = Job(operator, on_disk)
        back = bench.snapshot(on_disk, SnapshotKind.SAVEPOINT)
        after = [*after, MAX_WATERMARK]
        assert job.run(after) == Job(AlignedWindowOperator(spec), bench.restore([back])).run(after)
    finally:
        bench.close()


def tumbling(size: int, **options: Any) -> WindowSpec:
    assigner = TumblingEventTimeWindows.of(Time.milliseconds(size))
    return WindowSpec(assigner, EventTimeTrigger(), window_function=Firings(), **options)


@pytest.mark.parametrize("operator", [WindowOperator, AlignedWindowOperator])
@pytest.mark.parametrize("kind", [SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT])
def test_windows_of_another_size_end_as_they_began(operator: Any, kind: SnapshotKind) -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    script = [[("a", 1, 3), ("a", 2, 12)]]
    handle = write(bench, AlignedWindowOperator(tumbling(10, allowed_lateness=3)), [[*script, 9]], kind)
    job = Job(operator(tumbling(4, allowed_lateness=3)), bench.restore([handle]))
    (first, *_), (second, *_), (third, *_) = job.run([[("a", 7, 12)], 15, 40])
    assert first == Counter()
    assert second == Counter([(("a", (("a", 7),), 12, 16, 1), 15)])
    assert third == Counter([(("a", (("a", 2),), 10, 20, 1), 19)])
    assert job.context.stored("window-contents") == {}


def test_an_aggregation_of_another_kind_is_refused() -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    handle = write(bench, AlignedWindowOperator(tumbling(10)), [[[("a", 1, 3)]]], SnapshotKind.SAVEPOINT)
    spec = WindowSpec(tumbling(10).assigner, EventTimeTrigger(), "aggregate", Collect())
    for operator in (WindowOperator(spec), AlignedWindowOperator(spec)):
        with pytest.raises(StateIncompatibleError, match="window-contents"):
            Job(operator, bench.restore([handle]))


def test_a_canonical_snapshot_has_the_general_operators_states_and_timers() -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    spec = tumbling(10, allowed_lateness=5)
    script = [[("a", 1, 3), ("b", 2, 12)], 9]
    metas = []
    for operator in (WindowOperator(spec), AlignedWindowOperator(spec)):
        handle = write(bench, operator, [script], SnapshotKind.SAVEPOINT)
        metas.append({meta.name: (meta.kind, meta.entries) for meta in handle.states if meta.entries})
    assert metas[0] == metas[1]
    assert metas[0]["_timers/window-timers/event"] == ("timers", 3)


@pytest.mark.parametrize("operator", [WindowOperator, AlignedWindowOperator])
def test_a_checkpoint_writes_the_panes_that_changed(operator: Any) -> None:
    bench = Workbench("hashmap", MAX, lambda: 0)
    backend = bench.backend()
    job = Job(operator(tumbling(1_000_000)), backend)
    job.run([[(key, 1, 5) for key in range(10_000)]])
    bench.snapshot(backend)
    everything = bench.bytes_written
    backend.notify_checkpoint_complete(1)
    job.run([[(key, 1, 5) for key in range(10)]])
    handle = bench.snapshot(backend)
    assert bench.bytes_written < everything / 100
    restored = FakeOperatorContext(None, backend=bench.restore([handle]))
    panes = restored.stored("window-contents")[TimeWindow(0, 1_000_000)]
    assert len(panes) == 10_000
    assert panes[3] == [(3, 1), (3, 1)]
