"""Epochs as Spark jobs: every task finds the Python worker it had, and what becomes of workers that are lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.stage_runner import StageError
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey
from firesteel.spark.blocking.stage_runner import SparkStageRunner
from firesteel.spark.blocking.task_placement import worker_slots
from firesteel.spark.session.session import spark_log
from firesteel.testing import eventually
from tests.support.epochs import passing_on
from tests.support.epochs.executions import executed_as
from tests.support.epochs.passing_on import epoch_of, graph_of, pass_on, read_by
from tests.support.processes import is_alive

ROWS = 3


@pytest.fixture(autouse=True, scope="module")
def by_value_too() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(passing_on)
    yield
    cloudpickle.unregister_pickle_by_value(passing_on)


def diamond(env: StreamExecutionEnvironment) -> None:
    """A source read by two vertices of different width, which are read by one."""
    numbers = env.from_sequence(1, 4)
    left = numbers.rebalance().map(str).name("left").set_parallelism(1)
    right = numbers.rebalance().map(str).name("right").set_parallelism(3)
    left.union(right).rebalance().map(str).name("both").set_parallelism(2).print().set_parallelism(2)


def line(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 4).rebalance().map(str).name("mid").rebalance().map(str).name("last").print()


class Epochs:
    """Runs one epoch after the other."""

    def __init__(self, context: Any, graph: JobGraph, task: Any = None):
        self.graph = graph
        self.runner = SparkStageRunner(context, epoch_task=task or pass_on(ROWS))
        self.descriptors = stage_descriptors(executed_as(JobExecution.EPOCHS, graph), 0)
        self.epoch = 0

    def run(self, is_restorable: bool = True) -> dict[TaskKey, dict[str, Any]]:
        """Runs the next one."""
        self.epoch += 1
        run = epoch_of(self.graph, self.epoch, self.descriptors, self.epoch - 1 or None, is_restorable)
        return read_by(self.runner.run_epoch(self.graph, run))

    def pids(self) -> dict[TaskKey, int]:
        """Runs the next one; where it did."""
        return {task: told["pid"] for task, told in self.run().items()}


@pytest.fixture
def epochs(spark_context: Any, request: pytest.FixtureRequest) -> Iterator[Epochs]:
    made = Epochs(spark_context, graph_of(line))
    yield made
    made.runner.close()


class KillOnce:
    """Kills the worker of a subtask of the middle vertex if there is a mark, which it removes."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __call__(self, order: Any) -> None:
        """Does it."""
        task = order.descriptor.task
        if self.mark.exists() and "mid" in task.name and task.subtask == 1:
            self.mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def test_rows_of_a_diamond_come_from_everybody(spark_context: Any) -> None:
    graph = graph_of(diamond)
    epochs = Epochs(spark_context, graph)
    try:
        for _ in range(2):
            read = epochs.run()
            _, left, right, both = graph.vertices
            for task in [(left.id, 0), *((right.id, subtask) for subtask in range(3))]:
                paths = [path for _, path in read[task]["read"]]
                assert len(paths) == len(set(paths)) == 2 * ROWS
                for subtask in range(2):
                    # those of one producer in their order
                    assert [path[2] for path in paths if path[1] == subtask] == list(range(ROWS))
            for subtask in range(2):
                paths = [path for _, path in read[both.id, subtask]["read"]]
                assert len(paths) == len(set(paths)) == 4 * 2 * ROWS
                ways = {path[3:] for path in paths}
                assert ways == {("left", 0), ("right", 0), ("right", 1), ("right", 2)}
    finally:
        epochs.runner.close()


def test_a_task_finds_the_worker_it_had(epochs: Epochs) -> None:
    first = epochs.pids()
    assert len(set(first.values())) == 2  # subtask by subtask
    for _ in range(5):
        assert epochs.pids() == first


def test_tasks_that_could_run_at_once_have_workers_of_their_own(spark_context: Any) -> None:
    graph = graph_of(diamond)
    epochs = Epochs(spark_context, graph)
    try:
        first = epochs.run()
        _, left, right, _ = graph.vertices
        assert first[left.id, 0]["pid"] not in {first[right.id, subtask]["pid"] for subtask in range(3)}
        for _ in range(3):
            assert {task: told["pid"] for task, told in epochs.run().items()} == {
                task: told["pid"] for task, told in first.items()
            }
    finally:
        epochs.runner.close()


def test_a_worker_killed_between_epochs_is_replaced(epochs: Epochs) -> None:
    first = epochs.pids()
    killed = first[epochs.graph.vertices[0].id, 1]
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: not is_alive(killed))
    second = epochs.pids()
    assert killed not in second.values()
    assert {task: pid for task, pid in second.items() if task[1] == 0} == {
        task: pid for task, pid in first.items() if task[1] == 0
    }
    assert epochs.pids() == second


def test_an_epoch_during_which_a_worker_is_killed_is_run_again(spark_context: Any, tmp_path: Path) -> None:
    mark = tmp_path / "kill"
    epochs = Epochs(spark_context, graph_of(line), pass_on(ROWS, behave=KillOnce(mark)))
    source, middle, last = epochs.graph.vertices
    try:
        first = epochs.pids()
        mark.touch()
        read = epochs.run()
        assert not mark.exists()
        assert read[middle.id, 1]["pid"] != first[middle.id, 1]
        assert read[source.id, 0]["pid"] == first[source.id, 0]
        assert [len(read[last.id, subtask]["read"]) for subtask in range(2)] == [2 * 2 * ROWS] * 2
    finally:
        epochs.runner.close()


def test_an_epoch_whose_consumers_have_read_different_runs_is_run_again(spark_context: Any, tmp_path: Path) -> None:
    """Spark runs a stage again whose output is lost; who had read the first one has perhaps read something else."""
    mark = tmp_path / "mixed"
    epochs = Epochs(spark_context, graph_of(line), pass_on(ROWS, mixed=mark))
    try:
        first = epochs.run()
        mark.touch()
        second = epochs.run()
        assert not mark.exists()
        assert min(told["at"] for told in second.values()) > max(told["at"] for told in first.values())
        mark.touch()
        with pytest.raises(StageError, match="is not the one that counts"):
            epochs.run(is_restorable=False)
    finally:
        epochs.runner.close()


def test_an_epoch_that_cannot_be_run_again_fails(spark_context: Any, tmp_path: Path) -> None:
    mark = tmp_path / "kill"
    epochs = Epochs(spark_context, graph_of(line), pass_on(ROWS, behave=KillOnce(mark)))
    try:
        epochs.run()
        mark.touch()
        with pytest.raises(StageError, match="Python worker exited unexpectedly") as raised:
            epochs.run(is_restorable=False)
        assert raised.value.messages == ()
        assert len(epochs.run()) == 6
    finally:
        epochs.runner.close()


def test_what_a_task_says_of_its_failure(spark_context: Any) -> None:
    epochs = Epochs(spark_context, graph_of(line), pass_on(fail="mid"))
    with pytest.raises(StageError, match="it was to fail") as raised:
        epochs.run()
    assert [message.state for message in raised.value.messages] == ["FAILED"]  # type: ignore[union-attr]
    epochs.runner.close()


def test_two_jobs_at_once_have_workers_of_their_own(spark_context: Any) -> None:
    jobs = [Epochs(spark_context, graph_of(line)) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        firsts = list(pool.map(Epochs.pids, jobs))
        assert not set(firsts[0].values()) & set(firsts[1].values())
        for _ in range(3):
            assert list(pool.map(Epochs.pids, jobs)) == firsts
        for job in jobs:
            pool.submit(job.runner.close).result()


def test_a_closed_job_leaves_nothing(spark_context: Any) -> None:
    log = spark_log()
    assert log is not None
    free = worker_slots.take(1)
    worker_slots.give_back(free)
    before = {path.name for path in log.parent.rglob("shuffle_*")}
    closed = threading.Event()
    epochs = Epochs(spark_context, graph_of(line))
    for _ in range(3):
        epochs.run()
    broadcast = epochs.runner._epochs._broadcast  # type: ignore[union-attr]
    epochs.runner.close(closed.set)
    assert closed.is_set()
    assert worker_slots.take(1) == free
    worker_slots.give_back(free)
    eventually(lambda: {path.name for path in log.parent.rglob("shuffle_*")} <= before)
    eventually(lambda: not Path(broadcast._path).exists())
    epochs.runner.close()


def test_close_never_raises(spark_context: Any) -> None:
    epochs = Epochs(spark_context, graph_of(line), pass_on(fail="mid"))
    epochs.runner.close()
    with pytest.raises(StageError):
        epochs.run()
    epochs.runner.close()
    epochs.runner.close()
