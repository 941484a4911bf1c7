"""Whole programs as batches in process: what they print and collect, how they fail, and what a failure costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Encoder
from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.process import fault_points
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault

MODES = {
    "pipelined": {},
    "epochs": {"execution.exchange": "spark"},
    "batch": {"execution.runtime-mode": "BATCH"},
}
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "10 ms",
}
every_mode = pytest.mark.parametrize("mode", sorted(MODES))


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.counter = runtime_context.get_metrics_group().counter("seen")

    def map(self, value: int) -> int:
        self.counter.inc()
        return value


def environment(
    settings: dict[str, str], stages: InProcessStageRunner | None = None, parallelism: int = 2
) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env._executor = InProcessExecutor() if stages is None else InProcessExecutor(create_stages=lambda: stages)
    return env


@every_mode
def test_prints_collects_and_counts(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    env = environment(MODES[mode])
    numbers = env.from_sequence(1, 6).map(Counted())
    numbers.rebalance().map(lambda number: number * 10).print("tens").set_parallelism(1)
    result = env.execute("prints")
    assert result.get_accumulator_result("seen") == 6
    assert sorted(capsys.readouterr().out.splitlines()) == [f"tens> {number}0" for number in range(1, 7)]
    env = environment(MODES[mode])
    keyed = env.from_sequence(1, 6).map(Counted()).key_by(lambda number: number % 2)
    with keyed.map(lambda number: number + 1).execute_and_collect() as results:
        assert sorted(results) == [2, 3, 4, 5, 6, 7]


def divide(number: int) -> float:
    return 1 / (number - 4)


def failure_in(mode: str) -> TaskFailure:
    env = environment({**MODES[mode], "restart-strategy.type": "none"})
    env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2).map(divide).uid("divides").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("fails")
    return caught.value.failure


def test_a_failure_is_told_as_well_as_in_a_stream() -> None:
    expected = failure_in("pipelined")
    assert expected.element == "4"
    for mode in ("epochs", "batch"):
        failure = failure_in(mode)
        for name in ("message", "error_type", "operator", "uid", "user_file", "user_line", "element", "defined_at"):
            assert getattr(failure, name) == getattr(expected, name), (mode, name)
        assert failure.task is not None
        assert "StageTaskError" not in failure.traceback


class FailsUntil(MapFunction):
    """Fails while there is a file, of which it takes one each time."""

    def __init__(self, directory: Path):
        self.directory = directory

    def map(self, value: Any) -> Any:
        for path in self.directory.iterdir():
            path.unlink()
            raise ValueError(f"as {path.name} says")
        return value


def test_a_restarted_batch_goes_on_with_the_stage_that_failed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).touch()
    stages = InProcessStageRunner()
    env = environment({**MODES["batch"], **RESTARTS}, stages)
    numbers = env.from_sequence(1, 6).name("numbers").rebalance().map(lambda number: number + 1).name("first")
    results = numbers.rebalance().map(FailsUntil(tmp_path)).name("second").execute_and_collect()
    assert sorted(results) == [2, 3, 4, 5, 6, 7]
    ends = [(name, end) for name, _, end in stages.executed]
    assert sum("numbers" in name for name, _ in ends) == 2
    assert sum("first" in name for name, _ in ends) == 2
    assert [end for name, end in ends if "second" in name].count("failed") == 2


def test_workers_that_are_lost_cost_no_attempt() -> None:
    faults = [TaskFault(FaultKind.FAIL, vertex="Map", after_rows=None) for _ in range(3)]
    stages = InProcessStageRunner(faults)
    env = environment({**MODES["batch"], "restart-strategy.type": "none"}, stages)
    results = env.from_sequence(1, 6).rebalance().map(lambda number: number + 1).execute_and_collect()
    assert sorted(results) == [2, 3, 4, 5, 6, 7]
    assert stages.faults == []


def lines_of(directory: Path) -> list[str]:
    """What a reader of a finished job finds."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    assert not any(path.name.startswith(".") for path in paths)
    return sorted(line for path in paths for line in path.read_text().splitlines())


@pytest.mark.parametrize("point", ["sink.commit", "sink.committed"])
def test_files_are_there_once_whatever_becomes_of_the_commit(point: str, tmp_path: Path) -> None:
    once = tmp_path / "once"
    once.touch()
    out = tmp_path / "out"
    env = environment({**MODES["batch"], **RESTARTS})
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()
    env.from_sequence(1, 6).rebalance().map(str).sink_to(sink)
    fault_points.arm(f"{point}=raise@{once}")
    try:
        env.execute("files")
    finally:
        fault_points.arm("")
    assert not once.exists()
    assert lines_of(out) == ["1", "2", "3", "4", "5", "6"]


def test_files_of_a_batch_that_fails_stay_hidden(tmp_path: Path) -> None:
    marks, out = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()
    (marks / "one").touch()
    env = environment({**MODES["batch"], "restart-strategy.type": "none"})
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()
    numbers = env.from_sequence(1, 6).map(str)
    numbers.sink_to(sink)
    numbers.rebalance().map(FailsUntil(marks)).print()
    with pytest.raises(JobExecutionError, match="as one says"):
        env.execute("files")
    visible = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert visible == []


@every_mode
def test_a_function_is_a_copy_of_its_own_in_every_task(mode: str) -> None:
    class Count(MapFunction):
        def __init__(self) -> None:
            self.count = 0

        def map(self, value: Any) -> int:
            self.count += 1
            return self.count

    counts = environment(MODES[mode], parallelism=3).from_collection(range(9)).rebalance().map(Count())
    assert sorted(counts.execute_and_collect()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
