"""What tasks report of themselves: where their time goes, and what they have moved."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.connectors import DiscardingSink
from firesteel.connectors.generators.number_sequence import NumberSequenceSource
from firesteel.datastream import DataStream, MapFunction, RuntimeContext
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.metrics import MetricGroup, MetricRegistry
from firesteel.runtime.task import task_metrics
from firesteel.runtime.task.task_metrics import BACKPRESSURED, BUSY, IDLE, TaskTimes
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.testing import PAUSE, At, TestingSource, eventually, test_environment

TASK_METRICS = {
    *(
        f"num{what}{way}{rate}"
        for what in ("Records", "Bytes", "Buffers")
        for way in ("In", "Out")
        for rate in ("", "PerSecond")
    ),
    *(f"{what}TimeMsPerSecond" for what in ("busy", "idle", "backPressured", "softBackPressured", "hardBackPressured")),
    *(f"accumulated{what}TimeMs" for what in ("Busy", "Idle", "BackPressured")),
    *("inPoolUsage", "outPoolUsage", "inputQueueLength", "outputQueueLength", "currentInputWatermark"),
    *("mailboxQueueSize", "isBackPressured", "checkpointAlignmentTime", "checkpointStartDelayNanos"),
}


class _Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Time:
    clock = _Time()
    monkeypatch.setattr(task_metrics, "_clock", clock)
    return clock


def test_time_counts_for_the_state_a_task_is_in(clock: _Time) -> None:
    times = TaskTimes()
    clock.now += 7  # it opens
    times.start()
    for state, seconds in ((IDLE, 2), (BUSY, 3), (BACKPRESSURED, 5), (IDLE, 1)):
        times.enter(state)
        clock.now += seconds
    assert times.spent() == (3, 3, 5)
    times.stop()
    clock.now += 10
    times.enter(BUSY)
    assert times.spent() == (3, 3, 5)


def test_a_task_that_could_go_on_but_for_its_consumers_is_backpressured(clock: _Time) -> None:
    source, other, consumer = TaskTimes(), TaskTimes(), TaskTimes()
    consumer.upstream = [source]
    consumer.become_busy()
    assert [source.state, other.state, consumer.state] == [BACKPRESSURED, BUSY, BUSY]


# -- whole jobs ---------------------------------------------------------------------------------------


def _numbers(env: Any) -> DataStream:
    return env.from_source(NumberSequenceSource(0, 1 << 50), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())  # type: ignore[no-any-return]


class _Job:
    """A running job's metrics by the names of vertices and operators."""

    def __init__(self, env: Any) -> None:
        self.client = env.execute_async("measured")
        graph = self.client._handle.job_graph
        self._vertices = {vertex.id: vertex.name for vertex in graph.vertices}
        self._operators = {node.operator_id: node.name for node in graph.nodes()}

    def __enter__(self) -> _Job:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, *_exception: object) -> None:
        if not self.client.get_job_execution_result().done():
            self.client.cancel().result()

    def task(self, part: str) -> Mapping[str, Any]:
        """The metrics of the task in whose name there is a text."""
        for (vertex, operator, _subtask), values in self.client._handle.metrics().items():
            if not operator and part in self._vertices[vertex]:
                return values  # type: ignore[no-any-return]
        return {}

    def operator(self, name: str) -> Mapping[str, Any]:
        for (_vertex, operator, _subtask), values in self.client._handle.metrics().items():
            if operator and self._operators[operator] == name:
                return values  # type: ignore[no-any-return]
        return {}


def _fast_reports(interval: str = "20 ms") -> Configuration:
    configuration = Configuration()
    configuration.set_string("metrics.fetcher.update-interval", interval)
    return configuration


def _slow(value: int) -> int:
    end = time.perf_counter() + 0.0005
    while time.perf_counter() < end:
        pass
    return value


def test_the_slow_task_is_busy_and_what_is_before_it_backpressured() -> None:
    env = test_environment(1, _fast_reports())
    _numbers(env).key_by(lambda value: value % 10).map(_slow).name("slow").sink_to(DiscardingSink())
    with _Job(env) as job:

        def assert_bottleneck() -> None:
            source, slow = job.task("numbers"), job.task("slow")
            assert source
            assert slow
            assert slow["busyTimeMsPerSecond"] > 800
            assert source["backPressuredTimeMsPerSecond"] > 600
            assert slow["numRecordsInPerSecond"] > 0
            for task in (source, slow):
                shares = [task[f"{what}TimeMsPerSecond"] for what in ("busy", "idle", "backPressured")]
                assert sum(shares) == pytest.approx(1000)

        eventually(assert_bottleneck)
        assert set(job.task("slow")) == TASK_METRICS
        assert set(job.task("numbers")) == TASK_METRICS - {"inPoolUsage", "inputQueueLength", "currentInputWatermark"}


def test_a_checkpoint_does_not_make_a_backpressured_task_busy() -> None:
    env = test_environment(1, _fast_reports())
    env.enable_checkpointing(20)
    _numbers(env).key_by(lambda value: value % 10).map(_slow).name("slow").sink_to(DiscardingSink())
    with _Job(env) as job:

        def mostly_waits() -> None:
            source = job.task("numbers")
            assert source
            busy, waited = source["accumulatedBusyTimeMs"], source["accumulatedBackPressuredTimeMs"]
            assert busy + waited > 1000
            assert waited > 3 * busy

        eventually(mostly_waits)


class _FullWriter(SinkWriter[Any]):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        pass

    def has_room(self) -> bool:
        return False


class _FullSink(Sink):
    name = "full"

    def create_writer(self, context: WriterContext) -> _FullWriter:
        return _FullWriter()


def test_waiting_for_a_writer_is_backpressure_and_waiting_for_records_is_idleness() -> None:
    env = test_environment(1, _fast_reports())
    _numbers(env).sink_to(_FullSink())
    env.from_source(TestingSource([1, PAUSE(3_600_000), 2]), WatermarkStrategy.no_watermarks(), "quiet").sink_to(
        DiscardingSink()
    )
    with _Job(env) as job:

        def assert_shares() -> None:
            assert job.task("numbers").get("backPressuredTimeMsPerSecond", 0) > 800
            assert job.task("numbers")["isBackPressured"] is True
            assert job.task("quiet")["idleTimeMsPerSecond"] > 800

        eventually(assert_shares)


class _Measured(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self._even = group.add_group("parser").counter("even")
        self._meter = group.meter("rate")
        self._sizes = group.distribution("size")
        group.gauge("constant", lambda: 42)

    def map(self, value: int) -> int:
        self._even.inc(value % 2 == 0)
        self._meter.mark_event()
        self._sizes.update(value)
        return value


def _explode(value: int) -> Iterable[int]:
    yield value
    yield value


def test_operators_count_what_follows_from_what_is_known_and_show_the_users_metrics() -> None:
    env = test_environment(1)
    numbers = env.from_collection(list(range(100)))
    stream = numbers.map(_Measured()).name("measured").filter(lambda value: value < 10).name("few")
    stream = stream.key_by(lambda value: value).flat_map(_explode).name("twice").filter(lambda value: value > 0)
    stream.name("positive").sink_to(_Collected())
    with _Job(env) as job:
        job.client.get_job_execution_result().result()
        assert job.operator("measured")["numRecordsIn"] == job.operator("measured")["numRecordsOut"] == 100
        assert job.operator("few")["numRecordsIn"] == 100
        assert job.operator("few")["numRecordsOut"] == job.operator("twice")["numRecordsIn"] == 10
        # how many came out of flat_map nobody has counted
        assert "numRecordsOut" not in job.operator("twice")
        assert job.operator("positive")["numRecordsOut"] == 18
        measured = job.operator("measured")
        assert {name: measured[name] for name in ("parser.even", "constant", "size_max", "size_mean")} == {
            "parser.even": 50,
            "constant": 42,
            "size_max": 99,
            "size_mean": 49.5,
        }
        assert measured["rate"] > 0
        assert job.operator("twice")["currentInputWatermark"] == MAX_WATERMARK
        assert job.task("twice")["busyTimeMsPerSecond"] == 0  # it has ended
        assert job.task("measured")["numBytesOut"] > 0


class _Collected(Sink):
    name = "collected"

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        return _DroppingWriter()


class _DroppingWriter(SinkWriter[Any]):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        pass


def test_bytes_are_counted_between_slots_and_estimated_within_one() -> None:
    totals = []
    for parallelism in (1, 2):
        env = test_environment(parallelism)
        numbers = env.from_collection([(number, "x" * 50) for number in range(2_000)])
        numbers.key_by(lambda pair: pair[0]).map(lambda pair: pair).name("reader").sink_to(DiscardingSink())
        with _Job(env) as job:
            job.client.get_job_execution_result().result()
            handle = job.client._handle
            (reader,) = (vertex.id for vertex in handle.job_graph.vertices if "reader" in vertex.name)
            scopes = handle.metrics().items()
            totals.append(sum(found["numBytesIn"] for scope, found in scopes if scope[:2] == (reader, "")))
    within, between = totals
    assert between > 2_000 * 5
    assert within == pytest.approx(between, rel=10)


def test_without_an_interval_nothing_is_measured_or_reported() -> None:
    env = test_environment(1, _fast_reports("0 ms"))
    env.from_collection([1, 2, 3]).map(lambda value: value).sink_to(DiscardingSink())
    with _Job(env) as job:
        job.client.get_job_execution_result().result()
        assert job.client._handle.metrics() == {}


def test_a_gauge_that_fails_and_a_distribution_without_values() -> None:
    registry = MetricRegistry()
    group = MetricGroup(registry, "user.")
    group.gauge("broken", lambda: 1 / 0)
    group.distribution("sizes")
    assert registry.snapshot() == {
        "broken": None,
        "sizes_count": 0,
        "sizes_sum": 0,
        "sizes_min": None,
        "sizes_max": None,
        "sizes_mean": None,
    }


def test_event_time_shows_where_it_has_come() -> None:
    env = test_environment(1, _fast_reports())
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    source = TestingSource([At("a", 1_000), PAUSE(3_600_000), At("b", 2_000)])
    stream = env.from_source(source, strategy, "timed").key_by(lambda value: value)
    stream.map(lambda value: value).name("late").sink_to(DiscardingSink())
    with _Job(env) as job:

        def assert_watermarks() -> None:
            assert job.task("late").get("currentInputWatermark") == 999
            assert job.operator("Source: timed")["currentOutputWatermark"] == 999

        eventually(assert_watermarks)
