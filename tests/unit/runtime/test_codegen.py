"""The generated loop of a chain does what a plain interpreter of the same chain does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.api.output_tag import OutputTag
from firesteel.common import Types
from firesteel.common.errors import FiresteelError
from firesteel.datastream import FlatMapFunction, MapFunction, ProcessFunction
from firesteel.runtime.chain.running_operator import RunningOperator
from firesteel.runtime.codegen.inlining import find_inline_expressions, inline_expression, register_inline_expressions
from firesteel.runtime.codegen.loops import compile_loop
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.inline import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec
from firesteel.runtime.operators.reduce import ReduceSpec
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import Turn
from firesteel.testing import FakeClock
from firesteel.testing.operator_context import FAKE_RUNTIME

TAGS = [OutputTag("left"), OutputTag('it\'s "right"')]
ONE = 1


class Triple(MapFunction):
    def map(self, value: int) -> int:
        return value * 3


class Repeat(FlatMapFunction):
    def flat_map(self, value: int) -> Any:
        for i in range(value % 4):
            yield value + i


MAPS: list[Any] = [
    lambda x: x + 1,
    lambda x: x if x > 3 else -x,
    lambda x: x + ONE,
    Triple(),
    abs,
    lambda y: int(f"{y}"),
]
FILTERS: list[Any] = [lambda x: x % 2, lambda x: x > ONE, lambda value: value is not None, lambda _: False]
FLAT_MAPS: list[Any] = [
    lambda x: [x, x + 1],
    lambda x: None,
    lambda x: range(x % 3),
    lambda x: (i for i in (x, x)),
    Repeat(),
]
register_inline_expressions(find_inline_expressions([*MAPS, *FILTERS, *FLAT_MAPS]))


class Distribute(ProcessFunction):
    """Some results to the main output, some to side outputs, some to one that nobody reads."""

    def __init__(self, generator: bool):
        self.results = self._yield if generator else self._list

    def process_element(self, value: int, ctx: Any) -> Any:
        return self.results(value)

    def _list(self, value: int) -> Any:
        return None if value % 5 == 0 else list(self._yield(value))

    def _yield(self, value: int) -> Any:
        yield value
        yield TAGS[value % 2], value + 100
        if value % 3 == 0:
            yield OutputTag("unread"), value
            yield (value, value + 1)


class YieldDistributed(Distribute):
    def process_element(self, value: int, ctx: Any) -> Any:
        assert ctx.timestamp() is None or ctx.timestamp() >= 0
        yield from self._yield(value)


class Twice(StreamOperator):
    """A batch operator in the middle of a chain."""

    def process_batch(self, values: Any, timestamps: Any) -> None:
        self.context.emit(
            [value for value in values for _ in range(2)],
            None if timestamps is None else [timestamp for timestamp in timestamps for _ in range(2)],
        )


@dataclass
class Node:
    """One operator of a random chain."""

    kind: str
    function: Any
    children: list[tuple[OutputTag | None, Node]] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)
    expected: list[Any] = field(default_factory=list)
    totals: dict[Any, Any] = field(default_factory=dict)

    def apply(self, value: Any) -> list[Any]:
        """What the operator makes of a value, the plain way."""
        original = value
        if not isinstance(value, int):
            value = sum(value)
        method = {"process": "process_element"}.get(self.kind, self.kind)
        call = getattr(self.function, method, self.function)
        if self.kind == "map":
            return [call(value)]
        if self.kind == "filter":
            return [original] if call(value) else []
        if self.kind == "flat_map":
            return list(call(value) or ())
        if self.kind == "twice":
            return [value, value]
        if self.kind == "reduce":
            total = self.totals.get(value % 3)
            self.totals[value % 3] = value if total is None else call(total, value)
            return [self.totals[value % 3]]
        return list(call(value, _PlainContext()) or ())

    def interpret(self, value: Any, timestamp: int | None) -> None:
        for result in self.apply(value):
            tag: OutputTag | None = None
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                tag, result = result
            if tag is None:
                self.expected.append((result, timestamp))
            for read, child in self.children:
                if read == tag:
                    child.interpret(result, timestamp)


class _PlainContext:
    def timestamp(self) -> None:
        return None


class Keep(StreamOperator):
    def __init__(self, into: list[Any]):
        self._into = into

    def process_batch(self, values: Any, timestamps: Any) -> None:
        self._into += zip(values, timestamps or [None] * len(values), strict=True)


class Services:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.room_checks = 0
        self.turn = Turn()
        self.input_clock = InputClock(lambda: 0)

    def processing_time(self) -> int:
        return self.clock.now

    def schedule(self, timestamp: int, callback: Any) -> None:
        self.clock.schedule(timestamp, callback)

    def monotonic_ms(self) -> int:
        return self.clock.monotonic_ms()

    def schedule_after(self, delay: int, callback: Any) -> None:
        self.clock.schedule_after(delay, callback)

    def make_room(self) -> None:
        self.room_checks += 1


SPECS: dict[str, Callable[[Any], OperatorSpec]] = {
    "map": MapSpec,
    "filter": FilterSpec,
    "flat_map": FlatMapSpec,
    "process": ProcessSpec,
    "reduce": ReduceSpec,
}


def as_number(function: Any) -> Any:
    """Results of process functions may be tuples: operators behind them add those up first."""
    if not callable(function):
        return function

    def call(value: Any) -> Any:
        return function(value if isinstance(value, int) else sum(value))

    return call


def chain_of(root: Node, services: Services, output_type: Any = None) -> RunningOperator:
    """The running chain of a tree of nodes; each node's main output is kept as well."""
    counter = iter(range(1, 1000))
    task = TaskDeploymentDescriptor("v", "chain", 0, 1, 128, 0, 0, ())
    opened: list[RunningOperator] = []

    def build(node: Node, parent: RunningOperator | None, tag: OutputTag | None) -> RunningOperator:
        keys = (lambda value: value % 3,) if node.kind == "reduce" else ()
        spec = SPECS.get(node.kind, MapSpec)(node.function)
        descriptor = OperatorDescriptor(
            next(counter), "id", node.kind, spec, key_selectors=keys, output_type=output_type
        )
        operator = Twice() if node.kind == "twice" else spec.create(FAKE_RUNTIME)
        chained = RunningOperator(descriptor, operator, task, services)
        keep = OperatorDescriptor(next(counter), "id", "keep", spec)
        consumer = RunningOperator(keep, Keep(node.got), task, services)
        chained.add_consumer(None, consumer)
        opened.extend((chained, consumer))
        if parent is not None:
            parent.add_consumer(tag, chained)
        for child_tag, child in node.children:
            build(child, chained, child_tag)
        return chained

    head = build(root, None, None)
    for chained in reversed(opened):
        chained.open()
    return head


def nodes(depth: int, numbers_only: bool = True) -> st.SearchStrategy[Node]:
    def node(kind: str, functions: list[Any]) -> st.SearchStrategy[Node]:
        return st.builds(Node, st.just(kind), st.sampled_from(functions))

    def adapted(functions: list[Any]) -> list[Any]:
        return functions if numbers_only else [as_number(f) for f in functions if callable(f)]

    plain = st.one_of(
        node("map", adapted(MAPS)),
        node("filter", [f if numbers_only else (lambda value: True) for f in FILTERS]),
        node("flat_map", adapted(FLAT_MAPS)),
    )
    if numbers_only:
        plain = st.one_of(plain, node("reduce", [lambda a, b: a + b, max]), node("twice", [None]))
    process = node("process", [Distribute(True), Distribute(False), YieldDistributed(True)])
    if depth == 0:
        return plain if not numbers_only else st.one_of(plain, process)

    def with_children(parent: Node) -> st.SearchStrategy[Node]:
        tags: list[OutputTag | None] = [None, *TAGS] if parent.kind == "process" else [None]

        def child(tag: OutputTag | None) -> st.SearchStrategy[tuple[OutputTag | None, Node]]:
            # the main output of a process function carries tuples as well, and a filter lets them through
            tuples = tag is None and (parent.kind == "process" or (parent.kind == "filter" and not numbers_only))
            return st.tuples(st.just(tag), nodes(depth - 1, numbers_only=not tuples))

        children = st.lists(st.sampled_from(tags).flatmap(child), max_size=2)
        return children.map(lambda found: Node(parent.kind, parent.function, found))

    return (plain if not numbers_only else st.one_of(plain, process)).flatmap(with_children)


def every_node(node: Node) -> list[Node]:
    return [node, *(inner for _, child in node.children for inner in every_node(child))]


@given(nodes(3), st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=3), st.booleans())
def test_a_loop_equals_its_interpretation(root: Node, batches: list[list[int]], timed: bool) -> None:
    head = chain_of(root, Services())
    loop = compile_loop("test", [head], timed)
    for batch in batches:
        timestamps = [1000 + i for i in range(len(batch))] if timed else None
        loop(batch, timestamps)
        for value, timestamp in zip(batch, timestamps or [None] * len(batch), strict=True):  # type: ignore[list-item]
            root.interpret(value, timestamp)
    for node in every_node(root):
        assert node.got == node.expected, node.kind


def test_the_random_chains_do_inline() -> None:
    inlined = [f for f in [*MAPS, *FILTERS, *FLAT_MAPS] if inline_expression(f) is not None]
    assert len(inlined) >= 9


def test_several_consumers_get_the_same_value_in_order() -> None:
    root = Node("map", lambda x: x + 1, [(None, Node("map", lambda x: -x)), (None, Node("filter", lambda x: x > 2))])
    compile_loop("test", [chain_of(root, Services())], False)([1, 2], None)
    assert [node.got for node in every_node(root)] == [
        [(2, None), (3, None)],
        [(-2, None), (-3, None)],
        [(3, None)],
    ]


def test_declared_types_are_checked_in_a_checked_loop_only() -> None:
    root = Node("map", lambda x: "text" if x > 1 else x)
    head = chain_of(root, Services(), output_type=Types.INT())
    compile_loop("test", [head], False)([5], None)
    with pytest.raises((TypeError, FiresteelError)):
        compile_loop("test", [head], False, checked=True)([1, 2], None)


def test_an_empty_batch_is_nothing() -> None:
    root = Node("flat_map", lambda x: [x], [(None, Node("twice", None))])
    head = chain_of(root, Services())
    compile_loop("test", [head], True)([], [])
    assert [node.got for node in every_node(root)] == [[], []]


def test_what_a_batch_operator_emits_goes_down_the_chain_with_a_room_check() -> None:
    services = Services()
    root = Node("twice", None, [(None, Node("map", lambda x: x * 10))])
    head = chain_of(root, services)
    compile_loop("test", [head], True)([1, 2], [7, 8])
    assert root.children[0][1].got == [(10, 7), (10, 7), (20, 8), (20, 8)]
    assert services.room_checks == 1
    head.emit(list(range(10_000)), None)
    assert services.room_checks > 2, "a long batch goes down in parts"
