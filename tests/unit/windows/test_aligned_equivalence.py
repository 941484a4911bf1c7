"""The aligned operator against the general one, on random records, watermarks and window shapes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.api.output_tag import OutputTag
from firesteel.common.time import Time
from firesteel.datastream.functions import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.window.aligned import AlignedWindowOperator
from firesteel.runtime.operators.window.operator import WindowOperator
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.testing.operator_context import FakeOperatorContext

LATE = OutputTag("late")
SIDE = OutputTag("side")


class ListAggregate(AggregateFunction):
    """Keeps what it was given, in order, in an accumulator that it changes in place."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        return tuple(accumulator) if sum(accumulator) != 7 else None

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


class Describe(ProcessWindowFunction):
    """Tells all it sees, and what it is told to clear."""

    def __init__(self) -> None:
        self.cleared: list[Any] = []
        self.backend: Any = None

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        window = context.window()
        yield key, tuple(elements), window.start, window.end, context.current_watermark(), self.backend.key
        yield SIDE, (key, window.start)

    def clear(self, context: Any) -> None:
        self.cleared.append((self.backend.key, context.window().start))


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    size = draw(st.integers(1, 12))
    if draw(st.booleans()):
        offset = draw(st.integers(1 - size, size - 1))
        assigner: Any = TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))
    else:
        slide = draw(st.integers(1, 12))
        offset = draw(st.integers(1 - slide, slide - 1))
        assigner = SlidingEventTimeWindows.of(*map(Time.milliseconds, (size, slide, offset)))
    aggregation, function = draw(
        st.sampled_from(
            [
                ("reduce", lambda a, b: (a[0], a[1] * 10 + b[1])),  # the order matters
                ("aggregate", ListAggregate()),
                (None, None),
            ]
        )
    )
    return WindowSpec(
        assigner=assigner,
        trigger=EventTimeTrigger(),
        aggregation=aggregation,
        aggregate_function=function,
        window_function=Describe() if aggregation is None or draw(st.booleans()) else None,
        allowed_lateness=draw(st.sampled_from([0, 0, 1, 5, 20, MAX_WATERMARK])),
        late_tag=draw(st.sampled_from([None, LATE])),
    )


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-30, 30)), min_size=1, max_size=8)
steps = st.lists(st.one_of(records, st.integers(-40, 50)), max_size=12)


def run(operator: Any, spec: WindowSpec, script: list[Any]) -> list[Any]:
    """What is observable after each step."""
    context = FakeOperatorContext(lambda record: record[0])
    if spec.window_function is not None:
        spec.window_function.backend = context.backend
        spec.window_function.cleared = []
    operator.open(context)
    seen = []
    watermark = -(1 << 63)
    for step in script:
        if isinstance(step, list):
            operator.process_batch([(key, value) for key, value, _ in step], [ts for _, _, ts in step])
        else:
            watermark = max(watermark, step)
            operator.process_watermark(watermark)
        function = spec.window_function
        seen.append(
            {
                "output": Counter(context.take_output()),
                "late": context.take_side_output(LATE),
                "side": Counter(context.take_side_output(SIDE)),
                "dropped": context.counter("numLateRecordsDropped").count,
                "all late": context.counter("numLateRecords").count,
                "watermarks": list(context.watermarks),
                "cleared": None if function is None else Counter(function.cleared),
            }
        )
    operator.close()
    return seen


@settings(max_examples=500, deadline=None)
@given(specs(), steps)
def test_both_operators_emit_the_same_at_every_step(spec: WindowSpec, script: list[Any]) -> None:
    script = [*script, MAX_WATERMARK]
    assert run(AlignedWindowOperator(spec), spec, script) == run(WindowOperator(spec), spec, script)


def _keyed_runs(output: list[tuple[Any, int]]) -> dict[Any, list[Any]]:
    by_key: dict[Any, list[Any]] = {}
    for (key, elements, start, *_), _ in output:
        by_key.setdefault(key, []).append((start, elements))
    return by_key


@settings(max_examples=150, deadline=None)
@given(specs(), steps)
def test_the_results_of_a_key_come_in_the_same_order(spec: WindowSpec, script: list[Any]) -> None:
    if spec.window_function is None:
        return
    outputs = []
    for operator in (AlignedWindowOperator(spec), WindowOperator(spec)):
        context = FakeOperatorContext(lambda record: record[0])
        spec.window_function.backend = context.backend
        operator.open(context)
        watermark = -(1 << 63)
        for step in [*script, MAX_WATERMARK]:
            if isinstance(step, list):
                operator.process_batch([record[:2] for record in step], [record[2] for record in step])
            else:
                watermark = max(watermark, step)
                operator.process_watermark(watermark)
        outputs.append(_keyed_runs(context.output))
    assert outputs[0] == outputs[1]
