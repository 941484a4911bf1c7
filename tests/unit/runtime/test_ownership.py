"""Where a chain copies records: wherever a function could notice that it does not, and nowhere else it can be seen."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.api.output_tag import OutputTag
from firesteel.common import Configuration, Types
from firesteel.common.typeinfo import LocalTimeTypeInfo
from firesteel.datastream import FilterFunction, FlatMapFunction, MapFunction, ProcessFunction
from firesteel.runtime.chain.running_operator import RunningOperator
from firesteel.runtime.codegen.inlining import find_inline_expressions, register_inline_expressions
from firesteel.runtime.codegen.loops import compile_loop
from firesteel.runtime.codegen.ownership import Ownership, copy_batch, keeps_nothing, ownership_of_type
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.inline import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import Turn
from firesteel.testing import FakeClock
from firesteel.testing.operator_context import FAKE_RUNTIME

TAG = OutputTag("side")
FACTOR = 3
TABLE = {1: []}
captured: list[Any] = []

# -- functions that keep nothing --------------------------------------------------------------------


def _closure(value: Any) -> Any:
    return lambda x: (x, value)


KEEP_NOTHING: list[Any] = [
    lambda x: x + 1,
    lambda x: x[0] * FACTOR,
    lambda x: (x["a"], [x["b"], {"c": x}]),
    lambda x: x.split(",")[0].strip().lower(),
    lambda x: x.get("a", 0) if x else None,
    lambda x: int(x[1]) + len(x) + max(x[2], 5),
    lambda x: f"{x} and {FACTOR}",
    _closure(5),
    *(int, str, len, list, itemgetter(1), json.loads),
]
MAY_KEEP: list[Any] = [
    lambda x: x.append(1) or x,
    lambda x: captured.append(x) or x,
    lambda x: TABLE[x],
    lambda x: (x, TABLE),
    lambda x: x.tags,
    lambda x: x(),
    lambda x: math.sqrt(x),
    lambda x: print(x),
    _closure([]),
    *(captured.append, attrgetter("tags"), copy.copy),
]
register_inline_expressions(find_inline_expressions([*KEEP_NOTHING, *MAY_KEEP]))


@pytest.mark.parametrize("function", KEEP_NOTHING)
def test_functions_that_keep_nothing(function: Any) -> None:
    assert keeps_nothing(function)


@pytest.mark.parametrize("function", MAY_KEEP)
def test_functions_that_may_keep_something(function: Any) -> None:
    assert not keeps_nothing(function)


def test_a_predicate_may_look_at_attributes() -> None:
    predicate = lambda x: x.amount > 5 and x.name.startswith("a")
    register_inline_expressions(find_inline_expressions([predicate]))
    assert keeps_nothing(predicate, is_predicate=True)
    assert not keeps_nothing(predicate)


def test_a_function_whose_source_is_not_known_may_keep_something() -> None:
    assert not keeps_nothing(eval("lambda x: x + 1"))
    assert not keeps_nothing(Appends().map)


def test_declared_types() -> None:
    fixed = [Types.LONG(), Types.STRING(), Types.BOOLEAN(), Types.SQL_TIMESTAMP(), Types.BIG_DEC(), Types.INSTANT()]
    fixed.append(LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE))
    assert {ownership_of_type(each) for each in fixed} == {Ownership.FIXED}
    assert ownership_of_type(Types.TUPLE([Types.STRING(), Types.INT()])) is Ownership.TUPLE
    shared = [
        *(None, Types.PICKLED_BYTE_ARRAY(), Types.ROW([Types.INT()]), Types.LIST(Types.INT())),
        *(Types.MAP(Types.INT(), Types.INT()), Types.TUPLE([Types.LIST(Types.INT())])),
        *(
            Types.TUPLE([Types.TUPLE([Types.INT()])]),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.BASIC_ARRAY(Types.INT()),
        ),
    ]
    assert {ownership_of_type(each) for each in shared} == {Ownership.SHARED}


def test_a_batch_is_copied_if_somebody_may_change_it() -> None:
    lists, tuples, pairs = [[1], [2]], [(1, 2), (3, 4)], [(1, [2])]
    assert copy_batch(lists, Ownership.EXCLUSIVE) is lists
    assert copy_batch(lists, Ownership.FIXED) is lists
    assert copy_batch(tuples, Ownership.TUPLE) is tuples
    assert copy_batch(tuples, Ownership.SHARED) is tuples
    for values in (lists, pairs):
        copied = copy_batch(values, Ownership.SHARED)
        assert copied == values
        assert all(a is not b for a, b in zip(copied, values, strict=True))
    assert copy_batch(lists, Ownership.TUPLE)[0] is not lists[0]


# -- chains -----------------------------------------------------------------------------------------


class Services:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.turn = Turn()
        self.input_clock = InputClock(lambda: 0)

    def processing_time(self) -> int:
        return self.clock.now

    def schedule(self, timestamp: int, callback: Any) -> None:
        self.clock.schedule(timestamp, callback)

    def make_room(self) -> None:
        pass


class Keep(StreamOperator):
    """Keeps its records until the end of the batch, as an output does."""

    def __init__(self, into: list[Any]):
        self._into = into

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._into += values


@dataclass
class Node:
    kind: str
    function: Any
    children: list[Node] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)
    expected: list[Any] = field(default_factory=list)
    own: Any = None

    def interpret(self, value: Any) -> None:
        """Does what the chain should do, with a copy for everyone."""
        if self.own is None:
            self.own = copy.deepcopy(self.function)
        call = getattr(self.own, self.kind, self.own)
        results = call(value)
        if self.kind == "map":
            results = [results]
        elif self.kind == "filter":
            results = [value] if results else []
        for result in results:
            self.expected.append(copy.deepcopy(result))
            for child in self.children:
                child.interpret(copy.deepcopy(result))


SPECS: dict[str, Any] = {"map": MapSpec, "filter": FilterSpec, "flat_map": FlatMapSpec}


def build(root: Node, output_type: Any = None, *, reuses_objects: bool = False) -> RunningOperator:
    """The chain of a tree of nodes; the results of those without children are kept."""
    configuration = Configuration()
    configuration.set_string("pipeline.object-reuse", str(reuses_objects).lower())
    task = TaskDeploymentDescriptor("v", "chain", 0, 1, 128, 0, 0, (), configuration=configuration)
    opened: list[RunningOperator] = []

    def make(node: Node) -> RunningOperator:
        spec = SPECS.get(node.kind, ProcessSpec)(node.function)
        descriptor = OperatorDescriptor(len(opened), "id", node.kind, spec, output_type=output_type)
        chained = RunningOperator(descriptor, spec.create(FAKE_RUNTIME), task, Services())
        opened.append(chained)
        for child in node.children:
            chained.add_consumer(None, make(child))
        keep = RunningOperator(OperatorDescriptor(len(opened), "id", "keep", spec), Keep(node.got), task, Services())
        opened.append(keep)
        if not node.children:
            chained.add_consumer(None, keep)
        return chained

    head = make(root)
    for chained in reversed(opened):
        chained.open()
    return head


class Appends(MapFunction):
    def map(self, value: Any) -> Any:
        value.append("m")
        return value


class Remembers(MapFunction):
    """Changes the record before when the next one comes."""

    def __init__(self) -> None:
        self.last: list[Any] = []

    def map(self, value: Any) -> Any:
        self.last.append("later")
        self.last = value
        return value


class Accumulates(MapFunction):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def map(self, value: Any) -> Any:
        self.seen.append(len(value))
        return self.seen


class Twice(FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        yield value
        value.append("t")
        yield value
        value.append("after")


class Seen(FilterFunction):
    def __init__(self) -> None:
        self.last: list[Any] = []

    def filter(self, value: Any) -> bool:
        self.last.append("filtered")
        self.last = value
        return len(value) % 4 != 3


PURE_MAPS: list[Any] = [lambda x: x, lambda x: [x, 1], lambda x: x[:], lambda x: list(x)]
PURE_FILTERS: list[Any] = [lambda x: len(x) > 1, lambda x: x]
register_inline_expressions(find_inline_expressions([*PURE_MAPS, *PURE_FILTERS]))


def nodes(depth: int) -> st.SearchStrategy[Node]:
    kinds = st.one_of(
        st.builds(Node, st.just("map"), st.sampled_from(PURE_MAPS)),
        st.builds(lambda make: Node("map", make()), st.sampled_from([Appends, Remembers, Accumulates])),
        st.builds(Node, st.just("filter"), st.sampled_from(PURE_FILTERS)),
        st.builds(lambda: Node("filter", Seen())),
        st.builds(lambda: Node("flat_map", Twice())),
    )
    if depth == 0:
        return kinds
    children = st.lists(nodes(depth - 1), max_size=3)
    return st.builds(lambda node, below: Node(node.kind, node.function, below), kinds, children)


def leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in leaves(child)] or [node]


@given(nodes(3), st.lists(st.lists(st.integers(0, 5), max_size=2), max_size=5))
def test_functions_notice_nothing_of_each_other(root: Node, batch: list[list[Any]]) -> None:
    loop = compile_loop("test", [build(root)], False)
    for value in copy.deepcopy(batch):
        root.interpret(value)
    loop(batch, None)
    for node in leaves(root):
        assert node.got == node.expected, node.kind


def text_of(root: Node, output_type: Any = None, **settings: Any) -> str:
    loop: Any = compile_loop("test", [build(root, output_type, **settings)], False)
    return str(loop.__globals__["__source__"].text)


def test_what_nobody_else_has_is_not_looked_at() -> None:
    for last in (None, Node("map", Appends())):
        below = [] if last is None else [last]
        root = Node("map", PURE_MAPS[1], [Node("filter", PURE_FILTERS[0], [Node("map", PURE_MAPS[2], below)])])
        text = text_of(root)
        assert text.count("copy") == (2 if last else 0), text  # the name is bound and used once, behind Appends


def test_a_result_of_a_function_is_copied_once_however_many_pure_functions_follow() -> None:
    root = Node("map", Appends(), [Node("filter", PURE_FILTERS[0], [Node("map", PURE_MAPS[1])])])
    text = text_of(root)
    assert text.count(" = copy_") == 1, text


def test_declared_immutable_types_cost_nothing() -> None:
    assert "copy" not in text_of(Node("map", abs, [Node("map", abs), Node("map", abs)]), Types.LONG())


class Pairs(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield (value, 1) if value != 3 else [value, 1]
        yield TAG, [value]


def test_a_declared_tuple_needs_no_more_than_the_look_for_a_tag() -> None:
    root = Node("process_element", Pairs())
    pair = Types.TUPLE([Types.INT(), Types.INT()])
    text = text_of(root, pair)
    assert text.count("__class__") == 2, text
    compile_loop("test", [build(root, pair)], False)([1, 2, 3], None)
    assert root.got == [(1, 1), (2, 1), [3, 1]]


def test_nothing_is_copied_where_objects_are_reused() -> None:
    for root in (
        Node("map", Appends(), [Node("map", Remembers()), Node("map", Accumulates()), Node("flat_map", Twice())]),
        Node("process_element", Pairs()),
    ):
        assert "copy" not in text_of(root, reuses_objects=True)
    root = Node("map", Appends(), [Node("map", PURE_MAPS[0]), Node("filter", Seen())])
    record: list[Any] = []
    compile_loop("test", [build(root, reuses_objects=True)], False)([record], None)
    assert all(node.got[0] is record for node in leaves(root))


def test_a_record_that_cannot_be_copied_goes_on_as_it_is() -> None:
    root = Node("map", Generates(), [Node("map", Takes())])
    compile_loop("test", [build(root)], False)([3], None)
    assert leaves(root)[0].got == [[0, 1, 2]]


class Generates(MapFunction):
    def map(self, value: int) -> Any:
        return (i for i in range(value))


class Takes(MapFunction):
    def map(self, value: Any) -> Any:
        return list(value)
