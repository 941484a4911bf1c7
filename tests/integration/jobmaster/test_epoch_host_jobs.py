"""Whole jobs in epochs, in this process: the same results as streaming, through failures, restarts and resumption."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Time, Types, WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.common.serialization import Encoder
from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.files.sink import FileSink, OnCheckpointRollingPolicy
from firesteel.connectors.generators.datagen import DataGeneratorSource
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.execution.epochs import task as epoch_task
from firesteel.execution.stages.stage_runner import EpochRun, StageMessage
from firesteel.process import fault_points
from firesteel.testing import ABORT, PAUSE, WATERMARK, At, FakeClock, TestingSource, eventually
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.jobs.endless import collecting, ended
from tests.support.visible_files import visible_lines

DEADLINE_S = 60
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "restart-strategy.fixed-delay.attempts": "20",
}
SMALL = {"execution.epoch.max-records": "7"}


@pytest.fixture(autouse=True)
def _no_faults() -> Iterator[None]:
    yield
    fault_points.arm("")


class Stages(InProcessStageRunner):
    """Counts epochs, and loses workers as it is told."""

    def __init__(self, *faults: TaskFault, lose: Callable[[int], list[int]] = lambda _epoch: []):
        super().__init__(faults)
        self.epochs = 0
        self._lose = lose

    def run_epoch(self, job_graph: Any, epoch: EpochRun) -> Any:
        self.epochs += 1
        for worker in self._lose(epoch.epoch):
            self.forget(worker)
        said: list[StageMessage] = list(super().run_epoch(job_graph, epoch))
        return said


def environment(
    settings: dict[str, str], stages: InProcessStageRunner | None = None, parallelism: int = 2, clock: Any = None
) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.runtime-mode", "STREAMING")
    for key, value in {"execution.exchange": "spark", **settings}.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env._executor = InProcessExecutor(clock, create_stages=lambda: stages or Stages())
    return env


class ManualSeconds:
    """A clock that only others move; the copies that tasks get are the same one."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def __reduce__(self) -> tuple[Any, ...]:
        return _the_clock, ()


_CLOCK = ManualSeconds()


def _the_clock() -> ManualSeconds:
    return _CLOCK


class Count(KeyedProcessFunction):
    """Each value with the how-manieth of its key it is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value}:{count}"


def counted(env: StreamExecutionEnvironment, source: TestingSource, keys: int = 5) -> DataStream:
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.key_by(lambda value: value % keys).process(Count()).name("count").uid("count")


def to_files(stream: DataStream, directory: Path, *, rolls: bool = False) -> None:
    sink = FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
    if rolls:
        sink = sink.with_rolling_policy(OnCheckpointRollingPolicy())
    stream.sink_to(sink.build()).name("files").uid("files")


def lines(directory: Path) -> list[str]:
    """What is visible, and there is nothing twice."""
    return sorted(word for line in visible_lines(directory) for word in line.split())


def expected(numbers: range, keys: int = 5) -> list[str]:
    seen: Counter[int] = Counter()
    result = []
    for number in numbers:
        seen[number % keys] += 1
        result.append(f"{number}:{seen[number % keys]}")
    return sorted(result)


def test_the_results_are_those_of_a_streaming_job(tmp_path: Path) -> None:
    for exchange in ("spark", "pipelined"):
        env = environment({"execution.exchange": exchange, "execution.checkpointing.interval": "10 ms"})
        to_files(counted(env, TestingSource(range(100))), tmp_path / exchange)
        env.execute("job")
    assert lines(tmp_path / "spark") == lines(tmp_path / "pipelined") == expected(range(100))


def test_what_is_collected_comes_once_although_the_job_fails(tmp_path: Path) -> None:
    items = [*range(30), ABORT(), *range(30, 60), ABORT(), *range(60, 80)]
    env = environment({**RESTARTS, **SMALL})
    assert sorted(counted(env, TestingSource(items)).execute_and_collect()) == expected(range(80))


@pytest.mark.parametrize("point", ["sink.commit", "sink.committed", "checkpoint.metadata", "epoch.begin", "epoch.end"])
def test_files_have_every_record_once_wherever_it_fails(point: str, tmp_path: Path) -> None:
    for occasion in ("first", "second"):
        (tmp_path / occasion).touch()
    fault_points.arm(",".join(f"{point}=raise@{tmp_path / occasion}" for occasion in ("first", "second")))
    stages = Stages()
    env = environment({**RESTARTS, **SMALL}, stages)
    to_files(counted(env, TestingSource([*range(30), ABORT(), *range(30, 60)])), tmp_path / "out")
    env.execute("job")
    assert not (tmp_path / "second").exists()
    assert lines(tmp_path / "out") == expected(range(60))


def test_a_worker_that_is_lost_costs_a_reload_and_nothing_else(tmp_path: Path) -> None:
    stages = Stages(lose=lambda epoch: [epoch % 2] if epoch % 3 == 0 else [])
    env = environment({**SMALL, "restart-strategy.type": "none"}, stages)
    splits = range(0, 80, 2), range(1, 80, 2)
    to_files(counted(env, TestingSource.with_splits(*splits)), tmp_path)
    env.execute("job")
    assert stages.epochs > 6
    assert Counter(line.partition(":")[0] for line in lines(tmp_path)) == Counter(map(str, range(80)))
    assert {line.partition(":")[2] for line in lines(tmp_path)} == {str(n) for n in range(1, 17)}


@pytest.mark.parametrize("kind", list(FaultKind))
@pytest.mark.parametrize("after_rows", [0, 1, None])
def test_a_task_that_breaks_off_in_the_middle_of_an_epoch(
    kind: FaultKind, after_rows: int | None, tmp_path: Path
) -> None:
    faults = [
        TaskFault(kind, vertex, epoch=epoch, after_rows=after_rows)
        for epoch in (3, 5)
        for vertex in ("numbers", "count")
    ]
    stages = Stages(*faults)
    env = environment({**RESTARTS, **SMALL}, stages)
    to_files(counted(env, TestingSource(range(60))), tmp_path)
    env.execute("job")
    assert len(stages.faults) < len(faults)
    assert lines(tmp_path) == expected(range(60))


def test_a_source_with_a_rate_makes_up_for_the_time_between_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes between epochs and no time in them, so each gives what is due by then."""
    per_second, seconds = 100, 10

    class Clocked(Stages):
        def run_epoch(self, job_graph: Any, epoch: EpochRun) -> Any:
            _CLOCK.now += 1.0
            return super().run_epoch(job_graph, epoch)

    # tasks and the source go by one clock
    monkeypatch.setattr(_CLOCK, "now", 0.0)
    monkeypatch.setattr(epoch_task, "time", SimpleNamespace(monotonic=_CLOCK, sleep=pytest.fail))
    stages = Clocked()
    env = environment({}, stages, parallelism=1)
    count = per_second * seconds
    source = DataGeneratorSource(int, count, RateLimiterStrategy.per_second(per_second), clock=_CLOCK)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    assert list(numbers.execute_and_collect()) == list(range(count))
    # besides those of the seconds: the first, whose record begins the time, and the last, of a source that has ended
    assert seconds <= stages.epochs <= seconds + 2


def test_the_log_says_why_a_job_is_restarted(caplog: pytest.LogCaptureFixture) -> None:
    settings = {**RESTARTS, "restart-strategy.fixed-delay.attempts": "2"}
    env = environment(settings, parallelism=1)
    stream = env.from_source(TestingSource([2, 1, 0]), WatermarkStrategy.no_watermarks(), "numbers")
    stream.map(lambda value: 1 // value).name("divide").print()
    with pytest.raises(JobExecutionError):
        env.execute("job")
    said = [record.getMessage() for record in caplog.records if "restarted" in record.getMessage()]
    assert [text.partition("\n")[0] for text in said] == [f"Job 'job' is restarted (restart {n})." for n in (1, 2)]
    assert "ZeroDivisionError" in said[0]
    assert "operator: divide" in said[0]


def test_a_function_that_cannot_be_closed_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MapFunction):
        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            raise OSError("the connection is gone")

    env = environment({}, parallelism=1)
    numbers = env.from_source(TestingSource([1, 2]), WatermarkStrategy.no_watermarks(), "numbers")
    assert list(numbers.map(Broken()).name("broken").execute_and_collect()) == [1, 2]
    (said,) = [record.getMessage() for record in caplog.records if "could not be closed" in record.getMessage()]
    assert "the connection is gone" in said
    assert "operator: broken" in said


def test_a_function_that_fails_is_told_as_in_streaming() -> None:
    failures = {}
    for exchange in ("spark", "pipelined"):
        env = environment({"execution.exchange": exchange, "restart-strategy.type": "none"}, parallelism=1)
        stream = env.from_source(TestingSource([2, 1, 0]), WatermarkStrategy.no_watermarks(), "numbers")
        stream.map(lambda value: 1 // value).name("divide").print()
        with pytest.raises(JobExecutionError) as caught:
            env.execute("job")
        failures[exchange] = caught.value.failure
    told, known = failures["spark"], failures["pipelined"]
    for field in (
        "message",
        "error_type",
        "task",
        "operator",
        "subtask",
        "user_line",
        "user_source",
        "element",
        "hint",
    ):
        assert getattr(told, field) == getattr(known, field), field


def test_event_time_windows_fire_in_the_epoch_that_closes_them() -> None:
    clock = FakeClock()
    items = [At(1, 100), At(2, 900), WATERMARK(999), PAUSE(1000), At(3, 1500), WATERMARK(1999)]
    env = environment({}, clock=clock)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(TestingSource(items, bounded=False), strategy, "numbers")
    windows = stream.key_by(lambda _value: 0).window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
    client, results = collecting(windows.reduce(lambda a, b: a + b))
    assert next(results) == 3
    clock.settle()
    clock.advance(1000)
    assert next(results) == 3
    client.cancel().result(DEADLINE_S)


class Remind(KeyedProcessFunction):
    """Says when it was an hour after an element."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 3_600_000)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


def test_processing_time_timers_wake_the_loop() -> None:
    clock = FakeClock()
    env = environment({"execution.epoch.idle-interval": "1 d"}, clock=clock)
    stream = env.from_source(TestingSource(["a"], bounded=False), WatermarkStrategy.no_watermarks(), "letters")
    client, results = collecting(stream.key_by(lambda value: value).process(Remind()))
    clock.settle()
    clock.advance(3_599_999)
    clock.advance(1)
    assert next(results) == ("a", 3_600_000)
    client.cancel().result(DEADLINE_S)


def test_a_bounded_source_beside_an_unbounded_one_ends_although_workers_are_lost() -> None:
    """What has ended is not read again, and consumers in new workers hear of the end."""
    stages = Stages(lose=lambda epoch: [0, 1] if epoch % 2 else [])
    clock = FakeClock()
    env = environment({"restart-strategy.type": "none"}, stages, clock=clock)
    bounded = env.from_source(TestingSource([1, 2, 3]), WatermarkStrategy.no_watermarks(), "bounded")
    pauses = [item for number in range(10, 16) for item in (PAUSE(1000), number)]
    open_end = env.from_source(TestingSource(pauses, bounded=False), WatermarkStrategy.no_watermarks(), "open")
    client, results = collecting(bounded.union(open_end).key_by(lambda value: value % 2).map(lambda value: value))
    clock.settle()
    for _ in range(6):
        clock.advance(1000)
    assert sorted(next(results) for _ in range(9)) == [1, 2, 3, 10, 11, 12, 13, 14, 15]
    assert stages.epochs > 6
    client.cancel().result(DEADLINE_S)


def test_stopping_and_going_on_in_the_other_way(tmp_path: Path) -> None:
    """Epochs, then pipelined at another parallelism, then epochs again: through savepoints, exactly once."""
    path: str | None = None
    for stage, (exchange, parallelism) in enumerate([("spark", 2), ("pipelined", 3), ("spark", 1)]):
        upto = 20 * (stage + 1)
        # a split for every reader, and the records of a key all in one
        source = TestingSource.with_splits(*(range(split, upto, 3) for split in range(3)), bounded=False)
        settings = {"execution.exchange": exchange, "execution.checkpointing.interval": "10 ms"}
        if path is not None:
            settings["execution.state-recovery.path"] = path
        env = environment(settings, parallelism=parallelism)
        to_files(counted(env, source, keys=3), tmp_path / "out", rolls=True)
        client = env.execute_async("job")
        eventually(lambda client=client: client._handle.checkpoint_statistics()["counts"]["completed"] > 0)
        if stage != 1:  # that one is stopped wherever it may be
            eventually(lambda so_far=expected(range(upto), 3): lines(tmp_path / "out") == so_far)
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(DEADLINE_S)
        assert ended(client) is None
    assert lines(tmp_path / "out") == expected(range(60), 3)


class JumpingClock(FakeClock):
    """Does not wait for the job, whose own thread moves it."""

    def jump(self, milliseconds: int) -> None:
        self._now += milliseconds


class LateStages(Stages):
    """Between the last epoch and the one before, hours pass."""

    def __init__(self, clock: JumpingClock):
        super().__init__()
        self._clock = clock

    def run_epoch(self, job_graph: Any, epoch: EpochRun) -> Any:
        if any(command.is_last for command in epoch.commands.values()):
            self._clock.jump(10 * 3_600_000)
        return super().run_epoch(job_graph, epoch)


class Slowly(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0.005)
        return [value]


class TestAvailableNow:
    def settings(self, tmp_path: Path) -> dict[str, str]:
        return {
            "execution.epoch.trigger": "available-now",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            **SMALL,
        }

    def test_each_run_does_what_is_there_and_the_next_goes_on(self, tmp_path: Path) -> None:
        for upto in (23, 23, 57, 60):
            env = environment(self.settings(tmp_path))
            to_files(counted(env, TestingSource(range(upto), bounded=False)), tmp_path / "out")
            env.execute("nightly")
            assert lines(tmp_path / "out") == expected(range(upto))
        (job_directory,) = (tmp_path / "checkpoints").iterdir()
        assert len(list(job_directory.glob("chk-*"))) == 1

    def test_a_run_that_fails_half_way_is_made_up_for_by_the_next(self, tmp_path: Path) -> None:
        env = environment({**self.settings(tmp_path), "restart-strategy.type": "none"})
        to_files(counted(env, TestingSource([*range(30), ABORT(), *range(30, 60)], bounded=False)), tmp_path / "out")
        with pytest.raises(JobExecutionError):
            env.execute("nightly")
        env = environment(self.settings(tmp_path))
        items = [*range(30), PAUSE(0), *range(30, 60)]
        to_files(counted(env, TestingSource(items, bounded=False)), tmp_path / "out")
        env.execute("nightly")
        assert lines(tmp_path / "out") == expected(range(60))

    @pytest.mark.parametrize("calls", [False, True], ids=["bundle", "async calls"])
    def test_what_the_last_epoch_brings_is_in_the_sinks(self, calls: bool, tmp_path: Path) -> None:
        """Timers fire in it. Their records are in a bundle, and then in calls, when the sinks are about to finish."""
        clock = JumpingClock()
        env = environment(self.settings(tmp_path), LateStages(clock), parallelism=1, clock=clock)
        stream = env.from_source(TestingSource([1, 2, 3], bounded=False), WatermarkStrategy.no_watermarks(), "numbers")
        late = stream.key_by(lambda value: value).process(Remind()).map(lambda key_and_time: key_and_time[0])
        sums = late.key_by(lambda _value: 0).mini_batch_aggregate(lambda a, b: a + b)
        if calls:
            sums = AsyncDataStream.ordered_wait(sums, Slowly(), Time.hours(1))
        to_files(sums, tmp_path / "out")
        env.execute("nightly")
        assert lines(tmp_path / "out") == ["6"]

    def test_windows_that_are_open_at_the_end_stay_open_for_the_next_run(self, tmp_path: Path) -> None:
        results = []
        for items in ([At(1, 100)], [At(1, 100), At(2, 900)], [At(1, 100), At(2, 900), At(4, 1500)]):
            env = environment(self.settings(tmp_path))
            strategy = WatermarkStrategy.for_monotonous_timestamps()
            stream = env.from_source(TestingSource(items, bounded=False), strategy, "numbers").uid("numbers")
            windows = stream.key_by(lambda _value: 0).window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
            results.append(list(windows.reduce(lambda a, b: a + b).uid("sum").execute_and_collect("nightly")))
        assert results == [[], [], [3]]


def test_many_small_splits_do_not_take_an_epoch_each(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:03}").write_text(f"{number}\n")
    stages = Stages()
    env = environment({}, stages)
    read = env.read_text_file(str(tmp_path)).map(int).execute_and_collect()
    assert sorted(read) == list(range(100))
    assert stages.epochs < 15
