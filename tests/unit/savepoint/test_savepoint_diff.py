"""What would become of a savepoint's state if a program started from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Time, Types
from firesteel.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import CountEvictor, EventTimeSessionWindows, TumblingEventTimeWindows
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.savepoint.declared_states import declared_states
from firesteel.savepoint.diff import OperatorDiff, SavepointDiff, Verdict, compare
from tests.support.checkpoints.savepoints import Keyed, Operator, Timers, write_savepoint

Build = Callable[[StreamExecutionEnvironment], Any]


class Sum(KeyedProcessFunction):
    """Asks for what it is told to ask for."""

    def __init__(self, *descriptors: Any):
        self._descriptors = descriptors

    def open(self, runtime_context: RuntimeContext) -> None:
        for descriptor in self._descriptors:
            runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield value


class CannotOpen(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        raise ConnectionError("no database here")

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield value


class Buffering(MapFunction):
    """A CheckpointedFunction on a stream that is not keyed."""

    def initialize_state(self, context: Any) -> None:
        context.get_operator_state_store().get_list_state(ListStateDescriptor("buffer"))

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: Any) -> Any:
        return value


def sums(function: Any = None, uid: str | None = "sum", name: str = "Sum") -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection([1]).uid("source").key_by(lambda x: x)
        process = keyed.process(function or Sum(ValueStateDescriptor("sum", Types.LONG()))).name(name)
        if uid is not None:
            process.uid(uid)
        process.print().uid("sink")

    return build


def job_graph(build: Build, parallelism: int = 2, max_parallelism: int | None = None) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    if max_parallelism is not None:
        env.set_max_parallelism(max_parallelism)
    build(env)
    return create_job_graph(env._generate_stream_graph("job", clear=False))


@pytest.fixture
def savepoint(tmp_path: Path) -> Callable[..., CheckpointMetadata]:
    def make(*states: Keyed | Timers, **operator: Any) -> CheckpointMetadata:
        if not states and "lists" not in operator:
            states = (Keyed(StateMeta("sum", "value", "Long"), {1: 10, 2: 20}),)
        options = {"name": "Sum", "uid": "sum", **operator}
        source = Operator("Source: Collection Source", "source", lists={"_splits": ("split", [[1], []])})
        return load(write_savepoint(tmp_path / "savepoint", [source, Operator(keyed=states, **options)]))

    return make


def diff(
    metadata: CheckpointMetadata, graph: JobGraph, *, open_functions: bool = True, allow: bool = False
) -> SavepointDiff:
    declared = declared_states(graph, open_functions=open_functions)
    return compare(metadata, graph, declared, allow_non_restored_state=allow)


def operator(found: SavepointDiff, name: str) -> OperatorDiff:
    (one,) = [operator for operator in found.operators if operator.name == name]
    return one


def verdicts(found: OperatorDiff) -> dict[str, str]:
    return {state.name: state.verdict.value for state in found.states}


def test_same_program_restores_everything(savepoint: Callable[..., CheckpointMetadata]) -> None:
    sum_state = Keyed(StateMeta("sum", "value", "Long"), {1: 10})
    found = diff(savepoint(sum_state, Timers("user-timers/event", [(5, 1, None)])), job_graph(sums()))
    assert found.would_restore
    assert operator(found, "Sum").verdict is Verdict.RESTORED
    assert verdicts(operator(found, "Sum")) == {"sum": "restored", "_timers/user-timers/event": "restored"}
    assert verdicts(operator(found, "Source: Collection Source")) == {"_splits": "restored"}


def test_new_state_and_state_nobody_asks_for(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint(Keyed(StateMeta("sum", "value", "Long"), {1: 1}), Keyed(StateMeta("old", "list"), {1: [1]}))
    function = Sum(ValueStateDescriptor("sum", Types.LONG()), ValueStateDescriptor("count"))
    found = diff(metadata, job_graph(sums(function)))
    assert found.would_restore
    assert verdicts(operator(found, "Sum")) == {"sum": "restored", "old": "not asked for", "count": "new"}


@pytest.mark.parametrize(
    ("descriptor", "words"),
    [
        (ListStateDescriptor("sum", Types.LONG()), ("value state", "list state")),
        (ValueStateDescriptor("sum", Types.STRING()), ("Long", "String")),
    ],
)
def test_another_kind_or_type_is_incompatible(
    savepoint: Callable[..., CheckpointMetadata], descriptor: Any, words: tuple[str, ...]
) -> None:
    found = diff(savepoint(), job_graph(sums(Sum(descriptor))))
    assert not found.would_restore
    assert operator(found, "Sum").verdict is Verdict.INCOMPATIBLE
    (problem,) = operator(found, "Sum").problems
    assert all(word in problem for word in words)


@pytest.mark.parametrize("saved", [True, False])
def test_time_to_live_switched_on_or_off_is_incompatible(
    savepoint: Callable[..., CheckpointMetadata], saved: bool
) -> None:
    descriptor = ValueStateDescriptor("sum", Types.LONG())
    if not saved:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    metadata = savepoint(Keyed(StateMeta("sum", "value", "Long", saved), {1: [1, 0] if saved else 1}))
    found = diff(metadata, job_graph(sums(Sum(descriptor))))
    assert "time-to-live" in operator(found, "Sum").problems[0]


def test_a_type_that_one_side_does_not_declare_fits(savepoint: Callable[..., CheckpointMetadata]) -> None:
    assert diff(savepoint(), job_graph(sums(Sum(ValueStateDescriptor("sum"))))).would_restore


def test_max_parallelism(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint(max_parallelism=64)
    assert diff(metadata, job_graph(sums())).would_restore, "one that is not set is taken over"
    changed = diff(metadata, job_graph(sums(), max_parallelism=200))
    assert operator(changed, "Sum").verdict is Verdict.INCOMPATIBLE
    assert "64" in operator(changed, "Sum").problems[0]
    too_wide = diff(metadata, job_graph(sums(), parallelism=65))
    assert operator(too_wide, "Sum").verdict is Verdict.INCOMPATIBLE


def test_missing_key_groups(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint()
    source, whole = metadata.operators
    half = replace(whole, subtasks={0: whole.subtasks[0]})
    found = diff(replace(metadata, operators=(source, half)), job_graph(sums()))
    assert not found.would_restore
    assert "not complete" in operator(found, "Sum").problems[0]


def test_dropped_state_is_refused_unless_allowed(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint(name="Other", uid="other")
    refused = diff(metadata, job_graph(sums()))
    assert operator(refused, "Other").verdict is Verdict.DROPPED
    assert operator(refused, "Sum").verdict is Verdict.NEW
    assert [reason for reason in refused.refusals if "'Other'" in reason] == list(refused.refusals)
    assert diff(metadata, job_graph(sums()), allow=True).would_restore


@pytest.mark.parametrize(
    ("old_uid", "new_uid", "remedy"),
    [("sum", "sum-2", "uid('sum')"), ("sum", None, "uid('sum')"), (None, "sum", "set_uid_hash('{id}')")],
)
def test_a_changed_uid_is_guessed(
    savepoint: Callable[..., CheckpointMetadata], old_uid: str | None, new_uid: str | None, remedy: str
) -> None:
    metadata = savepoint(uid=old_uid, operator_id="ab" * 16)
    found = diff(metadata, job_graph(sums(uid=new_uid)))
    (dropped,) = [operator for operator in found.operators if operator.verdict is Verdict.DROPPED]
    (hint,) = dropped.hints
    assert remedy.format(id="ab" * 16) in hint
    assert "test_savepoint_diff.py" in hint


def test_a_renamed_operator_is_guessed_by_its_states(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint(uid="old")
    found = diff(metadata, job_graph(sums(name="Total", uid="new")))
    assert "'Total'" in operator(found, "Sum").hints[0]
    other = diff(metadata, job_graph(sums(Sum(ValueStateDescriptor("count")), name="Total", uid="new")))
    assert operator(other, "Sum").hints == (), "another name and other states: nothing in common"


def test_an_id_made_from_the_programs_shape_is_warned_of(tmp_path: Path) -> None:
    graph = job_graph(sums(uid=None))
    (node,) = [node for node in graph.nodes() if node.name == "Sum"]
    state = Keyed(StateMeta("sum", "value", "Long"), {1: 1})
    path = write_savepoint(tmp_path / "savepoint", [Operator("Sum", None, [state], operator_id=node.operator_id)])
    found = diff(load(path), graph)
    assert operator(found, "Sum").verdict is Verdict.RESTORED
    assert f"set_uid_hash('{node.operator_id}')" in operator(found, "Sum").hints[0]


def test_a_function_that_cannot_be_opened(savepoint: Callable[..., CheckpointMetadata]) -> None:
    metadata = savepoint(Keyed(StateMeta("sum", "value", "Long"), {1: 1}), Keyed(StateMeta("other", "value"), {1: 1}))
    found = diff(metadata, job_graph(sums(CannotOpen())))
    assert found.would_restore
    assert verdicts(operator(found, "Sum")) == {"other": "unknown", "sum": "restored"}
    assert "no database here" in operator(found, "Sum").hints[0]


def test_functions_are_not_opened_if_that_is_not_wanted(savepoint: Callable[..., CheckpointMetadata]) -> None:
    found = diff(savepoint(), job_graph(sums(CannotOpen())), open_functions=False)
    assert verdicts(operator(found, "Sum")) == {"sum": "unknown"}


@pytest.mark.parametrize("open_functions", [True, False])
def test_states_of_windows_and_reduce_are_known(open_functions: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection([1]).key_by(lambda x: x)
        keyed.reduce(lambda a, b: a + b).uid("reduce").print()
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a).uid("tumbling").print()
        keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(1))).reduce(lambda a, b: a).uid("session").print()

    graph = job_graph(build)
    declared = declared_states(graph, open_functions=open_functions)
    names = {node.uid: [state.name for state in declared[node.operator_id].keyed] for node in graph.nodes() if node.uid}
    assert names == {
        "reduce": ["_reduce_state"],
        "tumbling": ["window-contents"],
        "session": ["window-contents", "merging-window-set"],
    }


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        yield left, right


class Opening(ProcessWindowFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("own", Types.LONG()))

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key


class Quiet(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key


def test_states_of_operators_whose_functions_have_no_open_are_known_without_opening_them() -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection([1]).key_by(lambda x: x)
        windows = TumblingEventTimeWindows.of(Time.seconds(1))
        keyed.interval_join(keyed).between(-1, 1).process(Pairs()).uid("interval join").print()
        keyed.window(windows).evictor(CountEvictor.of(1)).process(Quiet()).uid("evictor").print()
        keyed.window(windows).pre_aggregate(lambda a, b: a).uid("pre-aggregated").print()
        keyed.pre_aggregate(lambda a, b: a).uid("aggregated").print()
        keyed.join(keyed).where(lambda x: x).equal_to(lambda x: x).window(windows).apply(lambda a, b: a).uid("join")
        keyed.window(windows).process(Opening()).uid("opening").print()

    graph = job_graph(build)
    declared = declared_states(graph, open_functions=False)
    known = {node.uid: declared[node.operator_id] for node in graph.nodes() if node.uid}
    assert not known.pop("opening").is_known
    assert all(states.is_known for states in known.values())
    assert {uid: [state.name for state in states.keyed] for uid, states in known.items() if states.keyed} == {
        "interval join": ["LEFT_BUFFER", "RIGHT_BUFFER"],
        "evictor": ["window-contents"],
        "pre-aggregated": ["window-contents"],
        "aggregated": ["_reduce_state"],
        "join": ["window-contents"],
    }


@pytest.mark.parametrize(("mode", "verdict"), [("split", "restored"), ("union", "incompatible")])
def test_operator_state(savepoint: Callable[..., CheckpointMetadata], mode: str, verdict: str) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1]).uid("source").map(Buffering()).name("Sum").uid("sum").print().uid("sink")

    found = diff(savepoint(lists={"buffer": (mode, [[1], [2]])}), job_graph(build))
    assert verdicts(operator(found, "Sum")) == {"buffer": verdict}
    assert found.would_restore == (verdict == "restored")


def test_keyed_state_of_an_operator_that_is_not_keyed_any_more(savepoint: Callable[..., CheckpointMetadata]) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1]).uid("source").map(lambda x: x).name("Sum").uid("sum").print().uid("sink")

    found = diff(savepoint(), job_graph(build))
    assert operator(found, "Sum").verdict is Verdict.INCOMPATIBLE
    assert "not keyed" in operator(found, "Sum").problems[0]


def test_a_source_that_is_not_in_the_savepoint_starts_over(tmp_path: Path) -> None:
    state = Keyed(StateMeta("sum", "value", "Long"), {1: 1})
    metadata = load(write_savepoint(tmp_path / "savepoint", [Operator("Sum", "sum", [state])]))
    found = diff(metadata, job_graph(sums()))
    source = operator(found, "Source: Collection Source")
    assert source.verdict is Verdict.NEW
    assert "beginning" in source.hints[0]


class Priced(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value


@pytest.mark.parametrize(
    ("mode", "verdict", "states"),
    [
        ("broadcast", Verdict.RESTORED, {"prices": "restored", "limits": "new"}),
        ("split", Verdict.INCOMPATIBLE, {"prices": "incompatible", "limits": "new"}),
    ],
)
def test_broadcast_state(
    savepoint: Callable[..., CheckpointMetadata], mode: str, verdict: Verdict, states: dict[str, str]
) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1]).uid("source")
        prices = numbers.broadcast(MapStateDescriptor("prices"), MapStateDescriptor("limits"))
        numbers.connect(prices).process(Priced()).uid("sum").name("Sum").print().uid("sink")

    metadata = savepoint(lists={"prices": (mode, [[("pen", 1)], [("pen", 1)]])}, parallelism=2)
    found = operator(diff(metadata, job_graph(build)), "Sum")
    assert (found.verdict, verdicts(found)) == (verdict, states)
