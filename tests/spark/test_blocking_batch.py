"""Batches as Spark stages: which rows come, in which order, and what is left of a run that fails."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from py4j.protocol import Py4JJavaError

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.stages.stage_runner import StageError
from firesteel.runtime.model.messages import TaskStateChanged
from firesteel.spark.blocking.stage_runner import SparkStageRunner
from firesteel.spark.session.session import spark_log
from firesteel.testing import eventually
from tests.support.epochs import passing_on
from tests.support.epochs.passing_on import batch_commands, graph_of, pass_on, read_by
from tests.support.processes import is_alive

ROWS = 3


@pytest.fixture(autouse=True, scope="module")
def by_value_too() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(passing_on)
    yield
    cloudpickle.unregister_pickle_by_value(passing_on)


def line(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 4).rebalance().map(str).name("mid").rebalance().map(str).name("last").print()


def diamond(env: StreamExecutionEnvironment) -> None:
    """A source read by two vertices of different width, which are read by one."""
    numbers = env.from_sequence(1, 4)
    left = numbers.rebalance().map(str).name("left").set_parallelism(1)
    right = numbers.rebalance().map(str).name("right").set_parallelism(3)
    left.union(right).rebalance().map(str).name("both").set_parallelism(2).print().set_parallelism(2)


def short_cut(env: StreamExecutionEnvironment) -> None:
    """A source read by one vertex, and beside it by the vertex that reads that one."""
    numbers = env.from_sequence(1, 4)
    aside = numbers.rebalance().map(str).name("aside").set_parallelism(3)
    numbers.rebalance().union(aside.rebalance()).map(str).name("both").set_parallelism(2).print().set_parallelism(2)


def by_name(graph: Any, told: Any) -> dict[tuple[str, int], Any]:
    names = {vertex.id: vertex.name.partition(" -> ")[0] for vertex in graph.vertices}
    return {(names[vertex_id], subtask): read for (vertex_id, subtask), read in read_by(told).items()}


class Misbehave:
    """What one subtask of the last vertex does, once: leaves its process id, and is killed or hangs."""

    def __init__(self, mark: Path, hangs: bool = False):
        self.mark = mark
        self.hangs = hangs

    def __call__(self, command: Any) -> None:
        """Does it."""
        task = command.descriptor.task
        if "last" in task.name and task.subtask == 1 and not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            if not self.hangs:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)


def has_text(mark: Path) -> bool:
    return mark.exists() and mark.read_text() != ""


def shuffle_files() -> list[str]:
    log = spark_log()
    assert log is not None
    return [path.name for path in log.parent.rglob("shuffle_*")]


def spilled_bytes(spark_context: Any) -> int:
    """Those of the stages of the last job."""
    store = spark_context._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    last = max((jobs.apply(index) for index in range(jobs.size())), key=lambda job: int(job.jobId()))
    stages = [last.stageIds().apply(index) for index in range(last.stageIds().size())]
    try:
        return sum(int(store.lastStageAttempt(stage).diskBytesSpilled()) for stage in stages)
    except Py4JJavaError:
        return 0  # the store does not know all of them yet


def test_rows_of_a_diamond(spark_context: Any) -> None:
    graph = graph_of(diamond)
    read = by_name(
        graph, SparkStageRunner(spark_context, batch_task=pass_on(ROWS)).run_batch(graph, batch_commands(graph))
    )
    assert len(read) == 2 + 1 + 3 + 2
    source = graph.vertices[0].name
    for task, told in read.items():
        orders = [order for order, _ in told["read"]]
        assert orders == sorted(orders)
        if task[0] in ("left", "right"):
            assert sorted(path for _, path in told["read"]) == sorted(
                (source, subtask, number) for subtask in range(2) for number in range(ROWS)
            )
        elif task[0] == "both":
            through = [(name, subtask) for _, (_, _, _, name, subtask) in told["read"]]
            assert {way: through.count(way) for way in through} == {
                ("left", 0): 2 * ROWS,
                ("right", 0): 2 * ROWS,
                ("right", 1): 2 * ROWS,
                ("right", 2): 2 * ROWS,
            }


def test_rows_of_a_producer_with_another_consumer_are_sorted_with_those_of_others(spark_context: Any) -> None:
    graph = graph_of(short_cut)
    read = by_name(
        graph, SparkStageRunner(spark_context, batch_task=pass_on(ROWS)).run_batch(graph, batch_commands(graph))
    )
    for subtask in range(2):
        rows = read["both", subtask]["read"]
        assert [order for order, _ in rows] == sorted(order for order, _ in rows)
        assert len([path for _, path in rows if len(path) == 3]) == 2 * ROWS
        assert len([path for _, path in rows if "aside" in path]) == 3 * 2 * ROWS


def test_the_sort_spills(spark_context: Any) -> None:
    graph = graph_of(line)
    conf = spark_context._jsc.sc().conf()
    conf.set("spark.shuffle.spill.numElementsForceSpillThreshold", "500")
    try:
        told = SparkStageRunner(spark_context, batch_task=pass_on(2000, size=100)).run_batch(
            graph, batch_commands(graph)
        )
    finally:
        conf.remove("spark.shuffle.spill.numElementsForceSpillThreshold")
    read = by_name(graph, told)
    for subtask in range(2):
        orders = [order for order, _ in read["mid", subtask]["read"]]
        assert len(orders) == 4000
        assert orders == sorted(orders)
    assert eventually(lambda: spilled_bytes(spark_context) > 0)


def test_large_orders_are_broadcast_and_removed(spark_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(line)
    paths: list[str] = []
    broadcast = type(spark_context).broadcast

    def noting(context: Any, value: Any) -> Any:
        made = broadcast(context, value)
        paths.append(made._path)
        return made

    monkeypatch.setattr(type(spark_context), "broadcast", noting)
    split = os.urandom(1 << 20)
    told = SparkStageRunner(spark_context, batch_task=pass_on(ROWS)).run_batch(
        graph, batch_commands(graph, 0, (split,))
    )
    assert {report["splits"] for report in read_by(told).values()} == {(split,)}
    assert len(paths) == 3
    eventually(lambda: not any(Path(path).exists() for path in paths))


def test_what_a_task_says_of_its_failure(spark_context: Any) -> None:
    graph = graph_of(line)
    stages = SparkStageRunner(spark_context, batch_task=pass_on(fail="last"))
    with pytest.raises(StageError, match="it was to fail") as raised:
        stages.run_batch(graph, batch_commands(graph, attempt=4))
    (message,) = raised.value.messages
    assert isinstance(message, TaskStateChanged)
    assert (message.vertex_id, message.state, message.attempt) == (graph.vertices[2].id, "FAILED", 4)
    stages.close()


def test_a_run_after_a_lost_worker_goes_on_with_what_had_finished(spark_context: Any, tmp_path: Path) -> None:
    graph = graph_of(line)
    before = shuffle_files()
    stages = SparkStageRunner(spark_context, batch_task=pass_on(ROWS, behave=Misbehave(tmp_path / "pid")))
    with pytest.raises(StageError, match="Python worker exited unexpectedly") as raised:
        stages.run_batch(graph, batch_commands(graph, 0, ("splits of the first run",)))
    assert raised.value.messages == ()
    failed_at = time.monotonic()
    told = stages.run_batch(graph, batch_commands(graph, 1, ("others",)))
    read = by_name(graph, told)
    assert {task: report["at"] > failed_at for task, report in read.items() if task[0] == "last"} == {
        ("last", 0): True,
        ("last", 1): True,
    }
    assert not any(report["at"] > failed_at for task, report in read.items() if task[0] != "last")
    # what had not finished must not see other splits than what had
    assert {report["splits"] for report in read.values()} == {("splits of the first run",)}
    assert len(read["last", 1]["read"]) == 2 * 2 * ROWS
    eventually(lambda: set(shuffle_files()) <= set(before))


def test_a_failure_in_a_later_run_is_of_that_attempt(spark_context: Any) -> None:
    graph = graph_of(line)
    stages = SparkStageRunner(spark_context, batch_task=pass_on(fail="last"))
    for attempt in range(2):
        with pytest.raises(StageError) as raised:
            stages.run_batch(graph, batch_commands(graph, attempt))
        assert [message.attempt for message in raised.value.messages] == [attempt]  # type: ignore[union-attr]
    stages.close()


def test_cancel_ends_a_run_whose_function_hangs(spark_context: Any, tmp_path: Path) -> None:
    graph = graph_of(line)
    mark = tmp_path / "pid"
    stages = SparkStageRunner(spark_context, batch_task=pass_on(behave=Misbehave(mark, hangs=True)))

    def cancel_when_it_hangs() -> None:
        eventually(lambda: has_text(mark), timeout=120)
        stages.cancel("enough")

    canceller = threading.Thread(target=cancel_when_it_hangs)
    canceller.start()
    with pytest.raises(StageError, match="The run was cancelled: enough"):
        stages.run_batch(graph, batch_commands(graph))
    canceller.join()
    eventually(lambda: not is_alive(int(mark.read_text())), timeout=120)
    stages.close()


def test_a_run_after_a_cancelled_one_is_not_cancelled(spark_context: Any) -> None:
    graph = graph_of(line)
    stages = SparkStageRunner(spark_context, batch_task=pass_on(ROWS))
    stages.cancel("nothing runs")
    assert len(stages.run_batch(graph, batch_commands(graph))) == 6


def test_two_jobs_at_once(spark_context: Any, tmp_path: Path) -> None:
    """One is cancelled, and the other one does not notice."""
    graph = graph_of(line)
    mark = tmp_path / "pid"
    hanging = SparkStageRunner(spark_context, batch_task=pass_on(behave=Misbehave(mark, hangs=True)))
    with ThreadPoolExecutor() as pool:
        hangs = pool.submit(hanging.run_batch, graph, batch_commands(graph))
        eventually(lambda: has_text(mark), timeout=120)
        told = pool.submit(
            lambda: SparkStageRunner(spark_context, batch_task=pass_on(ROWS)).run_batch(graph, batch_commands(graph))
        ).result()
        assert len(told) == 6
        assert not hangs.done()
        hanging.cancel("enough")
        assert isinstance(hangs.exception(timeout=120), StageError)
    hanging.close()
