"""Flame graphs and queryable state over REST, of jobs that run in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from firesteel.cluster.diagnostics.flame_graphs import flame_graph
from firesteel.cluster.diagnostics.queryable_state import candidate_keys
from firesteel.cluster.rest.handlers import diagnostics
from firesteel.cluster.rest.request import RestError, RestRequest
from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.common.time import Duration, Time
from firesteel.config.cluster_options import (
    FLAMEGRAPH_DELAY,
    FLAMEGRAPH_ENABLED,
    FLAMEGRAPH_SAMPLES,
    QUERYABLE_STATE_ENABLED,
)
from firesteel.connectors import DiscardingSink
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.jobmaster.view.job import JobView
from firesteel.rest.diagnostics import FLAME_GRAPH, QUERY_STATE, STATES
from firesteel.testing import PAUSE, At, FakeClock, TestingSource, eventually, test_environment

SAMPLES = 5


class _Sums(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self._sum.update((self._sum.value() or 0) + value[1])
        self._seen.put(value[1], True)


class _Dispatcher:
    """Knows one job."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.job_id = runner.job_graph.job_id

    @property
    def status(self) -> JobStatus:
        return self.runner.status()  # type: ignore[no-any-return]

    def view(self) -> JobView:
        snapshot = self.runner.snapshot
        return JobView(self.job_id, "job", 0, snapshot.status, {}, snapshot)

    def jobs(self) -> list[Any]:
        return [self]

    def job(self, job_id: str) -> Any:
        if job_id != self.job_id:
            raise FiresteelError("There is no such job.")
        return self


class _Rest:
    """Calls handlers as the server does."""

    def __init__(self, runner: Any, **options: Any) -> None:
        self.runner = runner
        configuration = Configuration()
        configuration.set(FLAMEGRAPH_SAMPLES, SAMPLES)
        configuration.set(FLAMEGRAPH_DELAY, Duration.of_millis(1))
        for option in (FLAMEGRAPH_ENABLED, QUERYABLE_STATE_ENABLED):
            configuration.set(option, options.get(option.key, True))
        self._handlers = {
            route.endpoint: route.handler for route in diagnostics.routes(_Dispatcher(runner), configuration)
        }

    def call(self, endpoint: Any, query: dict[str, Any] | None = None, **path: str) -> Any:
        path.setdefault("jobid", self.runner.job_graph.job_id)
        defaults = {parameter.name: parameter.default for parameter in endpoint.query}
        answer = self._handlers[endpoint](RestRequest(path, {**defaults, **(query or {})}, None))
        return msgspec.to_builtins(answer)

    def state(self, key: str, uid: str = "sums", name: str = "sum", namespace: str = "") -> Any:
        return self.call(QUERY_STATE, {"key": key, "namespace": namespace}, uid=uid, name=name)


@pytest.fixture(scope="module", params=["hashmap", "rocksdb"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    configuration = Configuration()
    configuration.set_string("state.backend.type", request.param)
    clock = FakeClock()
    env = test_environment(3, configuration, clock)
    keys = ["a", 7, "7", 2.5, ("x", 1), Row("x", 2), Row(id=3, of="row"), True, "with space"]
    records = [At((key, number), number) for number, key in enumerate(keys)]
    source = env.from_source(
        TestingSource([*records, PAUSE(3_600_000)]), WatermarkStrategy.for_monotonous_timestamps(), "records"
    )
    keyed = source.key_by(lambda pair: pair[0])
    keyed.process(_Sums()).name("sums").uid("sums").sink_to(DiscardingSink())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(10)))
    windows.reduce(lambda left, right: left).name("windows").sink_to(DiscardingSink())
    source.map(lambda pair: pair).name("keyless").sink_to(DiscardingSink())
    client = env.execute_async("asked")
    clock.settle()  # all that is there has come to all tasks
    yield client
    client.cancel().result()


@pytest.fixture
def rest(client: Any) -> _Rest:
    return _Rest(client._handle)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 0),
        ('"a"', 0),
        ("7", 1),
        ('"7"', 2),
        ("2.5", 3),
        ('["x", 1]', 4),
        ('["x", 2]', 5),
        ('{"id": 3, "of": "row"}', 6),
        ("true", 7),
        ("with space", 8),
    ],
)
def test_every_type_of_key_is_found_in_the_subtask_that_owns_it(rest: _Rest, text: str, value: int) -> None:
    found = rest.state(text)
    assert (found["value"], found["type"], found["operator"], found["checkpointed"]) == (value, "value", "sums", False)


def test_other_kinds_are_read_too_and_operators_are_found_by_name(rest: _Rest) -> None:
    assert rest.state("a", name="seen")["value"] == [{"key": 0, "value": True}]
    operator_id = next(node.operator_id for node in rest.runner.job_graph.nodes() if node.name == "sums")
    assert rest.state("a", uid=operator_id)["key"] == "a"
    listed = rest.call(STATES)["operators"]
    assert {(each["uid"], each["name"]) for each in listed} == {("sums", "sums"), (None, "windows")}
    (sums,) = (each for each in listed if each["uid"])
    assert sorted((state["name"], state["type"]) for state in sums["states"]) == [("seen", "map"), ("sum", "value")]


def test_a_window_is_named(rest: _Rest) -> None:
    (windows,) = (each for each in rest.call(STATES)["operators"] if each["name"] == "windows")
    name = windows["states"][0]["name"]
    found = rest.state("a", uid="windows", name=name, namespace="0-10000")
    assert (found["value"], found["namespace"]) == (["a", 0], "0-10000")
    with pytest.raises(RestError, match="0-10000") as missing:
        rest.state("a", uid="windows", name=name)
    assert missing.value.status == 404


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ({"key": "unknown"}, 404, "nothing for the key"),
        ({"key": "a", "uid": "unknown"}, 404, "Keyed operators: sums, "),
        ({"key": "a", "name": "unknown"}, 404, "seen"),
        ({"key": "a", "uid": "keyless"}, 404, "not keyed"),
        ({"key": "NaN"}, 400, "NaN"),
    ],
)
def test_what_is_not_there_is_said(rest: _Rest, arguments: Any, status: int, says: str) -> None:
    with pytest.raises(RestError, match=says) as refused:
        rest.state(**arguments)
    assert refused.value.status == status


def test_state_and_samples_can_be_disabled(client: Any) -> None:
    rest = _Rest(client._handle, **{QUERYABLE_STATE_ENABLED.key: False, FLAMEGRAPH_ENABLED.key: False})
    with pytest.raises(RestError, match="disabled") as refused:
        rest.state("a")
    assert refused.value.status == 404
    vertex = client._handle.job_graph.vertices[0].id
    assert rest.call(FLAME_GRAPH, vertexid=vertex) == {"endTimestamp": -3}


def test_a_flame_graph_is_made_in_the_background(rest: _Rest) -> None:
    vertex = next(vertex.id for vertex in rest.runner.job_graph.vertices if "sums" in vertex.name)
    first = rest.call(FLAME_GRAPH, vertexid=vertex)
    graph = _flame_graph(rest, vertex)
    assert first == {"endTimestamp": -2}
    # the one thread of this process, asked as each of the three slots
    assert (graph["data"]["name"], graph["data"]["value"]) == ("root", 3 * 3 * SAMPLES)

    def waits() -> None:
        again = _Rest(rest.runner)
        _flame_graph(again, vertex)
        one = again.call(FLAME_GRAPH, {"type": "OFF_CPU", "subtaskindex": 1}, vertexid=vertex)
        assert one["data"]["value"] == 3 * SAMPLES
        assert [child["name"] for child in one["data"]["children"]] == ["waits for input"]
        assert again.call(FLAME_GRAPH, {"type": "on_cpu"}, vertexid=vertex)["data"]["children"] == []

    # a thread that has just been woken up may be seen before it waits again
    eventually(waits)


def _flame_graph(rest: _Rest, vertex: str) -> Any:
    def made() -> Any:
        found = rest.call(FLAME_GRAPH, vertexid=vertex)
        assert found["endTimestamp"] > 0
        return found

    return eventually(made)


@pytest.mark.parametrize(
    ("query", "path", "status"),
    [
        ({"type": "sideways"}, {}, 400),
        ({"subtaskindex": 3}, {}, 404),
        ({}, {"vertexid": "0" * 32}, 404),
        ({}, {"jobid": "0" * 32}, 404),
    ],
)
def test_a_flame_graph_of_what_is_not_there(client: Any, query: Any, path: Any, status: int) -> None:
    rest = _Rest(client._handle)
    path.setdefault("vertexid", client._handle.job_graph.vertices[0].id)
    with pytest.raises(RestError) as refused:
        rest.call(FLAME_GRAPH, query, **path)
    assert refused.value.status == status


def test_a_job_that_has_ended() -> None:
    env = test_environment(1)
    env.from_collection([1]).key_by(lambda value: value).map(lambda value: value).sink_to(DiscardingSink())
    client = env.execute_async("over")
    client.get_job_execution_result().result()
    rest = _Rest(client._handle)
    with pytest.raises(RestError, match="FINISHED") as refused:
        rest.call(STATES)
    assert refused.value.status == 409
    assert rest.call(FLAME_GRAPH, vertexid=client._handle.job_graph.vertices[0].id) == {"endTimestamp": -1}  # type: ignore[attr-defined]


def test_texts_that_may_be_keys() -> None:
    assert next(candidate_keys("[1, [2]]")) == (1, (2,))
    assert list(candidate_keys("null")) == ["null"]
    assert next(candidate_keys('{"a": 1}')) == Row(a=1)
    assert list(candidate_keys("[" * 100_000)) == ["[" * 100_000]


def test_samples_become_a_tree() -> None:
    samples = [("v", 0, True, ("f", "g"), 3), ("v", 1, False, ("f",), 2), ("w", 0, True, ("f",), 9)]
    graph = msgspec.to_builtins(flame_graph(samples, "v", None, None))
    leaf = {"name": "g", "value": 3, "children": []}
    assert graph == {"name": "root", "value": 5, "children": [{"name": "f", "value": 5, "children": [leaf]}]}
