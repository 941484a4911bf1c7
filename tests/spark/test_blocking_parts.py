"""What runs stages on Spark is made of, as far as it needs no JVM."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

from firesteel.common.errors import TaskFailure
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.stage_graph import stages_of
from firesteel.execution.stages.task_cache import TaskCache
from firesteel.runtime.model.messages import TaskStateChanged
from firesteel.spark.blocking.batch_rdds import padded_offsets
from firesteel.spark.blocking.printed_output import MAX_CHARACTERS, Printed
from firesteel.spark.blocking.task_placement import slots_of
from firesteel.spark.blocking.worker import _Garbage
from firesteel.spark.session.failures import reason_of, stage_error
from tests.support.epochs.passing_on import epoch_of, graph_of


def diamond(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_sequence(1, 4)
    left = numbers.rebalance().map(str).name("left").set_parallelism(2)
    right = numbers.rebalance().map(str).name("right").set_parallelism(3)
    left.union(right).rebalance().map(str).name("both").set_parallelism(2).print().set_parallelism(2)


def two_jobs_in_one(env: StreamExecutionEnvironment) -> None:
    env.from_sequence(1, 4).rebalance().map(str).print()
    env.from_sequence(1, 4).rebalance().map(str).print()


# -- slots ------------------------------------------------------------------------------------------


def test_stages_that_follow_one_another_share_slots() -> None:
    stages = stages_of(graph_of(diamond, 2))
    slots = slots_of(stages)
    source, left, right, both = stages
    assert [slots[source.id, subtask] for subtask in range(2)] == [0, 1]
    assert [slots[left.id, subtask] for subtask in range(2)] == [0, 1]
    assert [slots[right.id, subtask] for subtask in range(3)] == [2, 3, 4]
    assert [slots[both.id, subtask] for subtask in range(2)] == [0, 1]


def test_stages_that_are_not_connected_share_none() -> None:
    stages = stages_of(graph_of(two_jobs_in_one, 2))
    slots = slots_of(stages)
    of_stage = {stage.id: {slots[stage.id, subtask] for subtask in range(2)} for stage in stages}
    producers = {stage.id: stage.producers for stage in stages}
    for stage in stages:
        for other in stages:
            if stage.id != other.id and other.id not in producers[stage.id] and stage.id not in producers[other.id]:
                assert not of_stage[stage.id] & of_stage[other.id]


def test_offsets_are_multiples_of_the_consumers_parallelism() -> None:
    source = stages_of(graph_of(diamond, 2))[0]
    offsets, total = padded_offsets(source)
    assert [(offsets[consumer.vertex_id], consumer.parallelism) for consumer in source.consumers] == [(0, 2), (3, 3)]
    assert total == 6


# -- failures ---------------------------------------------------------------------------------------

_ABORTED = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 3.0 failed 1 times, "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            (
                f"An error occurred while calling z:o.serve.\n: {_ABORTED}most recent failure: Lost task 1.0 in "
                "stage 3.0 (TID 9) (127.0.0.1 executor driver): org.apache.spark.SparkException: Python worker exited\n"
                "\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)\n"
                "Caused by: java.io.EOFException\n"
            ),
            "Python worker exited",
        ),
        (
            (
                f": {_ABORTED}most recent failure: Lost task 1.3 in stage 3.0 (TID 9) (10.0.0.1 executor 2): "
                "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: killed\n"
                "Driver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.failJob(D.scala:1)"
            ),
            "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: killed",
        ),
        (
            (
                ": org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from "
                "the Python worker: Traceback (most recent call last):\n"
                '  File "worker.py", line 1, in main\n'
                "ModuleNotFoundError: No module named 'helper'\n"
                "\n\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)"
            ),
            "ModuleNotFoundError: No module named 'helper'",
        ),
        ("", ""),
    ],
)
def test_the_reason_in_what_spark_says(text: str, reason: str) -> None:
    assert reason_of(text) == reason


def test_a_worker_that_died_is_told_with_what_may_have_happened() -> None:
    advice = "Consider setting 'spark.sql.execution.pyspark.udf.faulthandler.enabled' or"
    error = stage_error(
        RuntimeError(
            f": {_ABORTED}most recent failure: Lost task 1.0 in stage 3.0 (TID 9) (127.0.0.1 executor driver): "
            f"org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). {advice}\n\tat org.apache"
        ),
        0,
    )
    assert error.message == "A Python worker has died: Python worker exited unexpectedly (crashed)."
    assert error.hint is not None
    assert "out of memory" in error.hint


def test_a_task_s_own_account_is_found_in_what_spark_says() -> None:
    failure = TaskFailure("no such city", error_type="KeyError")
    said = StageTaskError([TaskStateChanged(0, "vertex", 1, "FAILED", failure)])
    error = stage_error(RuntimeError(f": {_ABORTED}PythonException: Traceback\n{said}\n\n\tat org.apache…"), 7)
    assert str(error) == "no such city"
    assert error.messages == (TaskStateChanged(7, "vertex", 1, "FAILED", failure),)


# -- runs that were in vain -------------------------------------------------------------------------


class Kept:
    """A task as the cache keeps it."""

    def __init__(self, run_id: str):
        self.run_id = run_id
        self.closed = False

    def close(self) -> list[BaseException]:
        """Closes it."""
        self.closed = True
        return []


def test_a_worker_does_not_keep_what_another_run_than_the_acknowledged_has_left() -> None:
    graph = graph_of(diamond, 2)
    command = epoch_of(graph, 3).commands[graph.vertices[0].id, 1]
    task = command.descriptor.task
    key = (task.job_id, task.vertex_id, task.subtask)
    cache = TaskCache()
    assert not cache.keep_only(key, "second")
    kept = Kept("second")
    cache.put(command, kept)  # type: ignore[arg-type]
    assert cache.keep_only(key, "second")
    assert cache.keep_only(key, None)  # nothing is known of the last run
    assert not kept.closed
    assert not cache.keep_only(key, "first")
    assert kept.closed
    assert len(cache) == 0


# -- what functions print ---------------------------------------------------------------------------


def test_printed_lines_are_kept_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    with Printed() as printed:
        print("one")
        print("two", end=" ")
        print("three")
        print("oh", file=sys.stderr)
        print("four", end="")
    print("the terminal's own")
    assert printed.take() == [("stdout", ["one", "two three"]), ("stderr", ["oh"]), ("stdout", ["four"])]
    assert printed.take() == []
    assert capsys.readouterr().out == "the terminal's own\n"


def test_too_much_output_is_cut_off_with_a_remark() -> None:
    with Printed() as printed:
        for _ in range(3):
            print("x" * (MAX_CHARACTERS // 2))
    ((name, lines),) = printed.take()
    assert name == "stdout"
    assert len("".join(lines)) < MAX_CHARACTERS
    assert "the rest is left out" in lines[-1]


# -- garbage ----------------------------------------------------------------------------------------


@pytest.fixture
def unfrozen() -> Any:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_what_is_kept_is_set_aside_and_now_and_then_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    searches: list[float] = []

    def collect() -> None:
        searches.append(now[0])
        now[0] += 2.0  # that long it takes

    monkeypatch.setattr("firesteel.spark.blocking.worker.time.monotonic", lambda: now[0])
    monkeypatch.setattr("firesteel.spark.blocking.worker.gc.collect", collect)
    garbage = _Garbage()
    for _ in range(60):
        garbage.set_aside()
        assert gc.get_freeze_count() > 0
        now[0] += 5.0
    assert searches[0] == 1000.0
    assert all(later - earlier > 100 for earlier, later in itertools.pairwise(searches))
    assert len(searches) == 3
