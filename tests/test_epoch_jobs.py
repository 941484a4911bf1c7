"""Every job under tests/jobs in epochs, one small Spark job after the other, against the golden files of streams.

The results of a stream do not depend on where epochs begin and end. They do not depend on workers that forget, either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.jobs.golden_jobs import JOB_NAMES, STAGE_JOBS, load_job, read_golden, run_job

PARALLELISMS = (1, 3)
"""At 2, workers forget and tasks run twice."""

every_job = pytest.mark.parametrize("name", JOB_NAMES)
every_parallelism = pytest.mark.parametrize("parallelism", PARALLELISMS)


def epochs(directory: Path, max_records: int = 3) -> dict[str, str]:
    """So few records in an epoch that a job has several."""
    return {
        "execution.exchange": "spark",
        "execution.epoch.max-records": str(max_records),
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "restart-strategy.type": "none",
    }


def _check(name: str, env: Any, directory: Path) -> None:
    lines, accumulators = run_job(name, env, directory)
    assert lines == read_golden(name)
    assert accumulators == getattr(load_job(name), "ACCUMULATORS", {})


def _check_what_survives(name: str, env: Any, directory: Path) -> None:
    """As after any restore: what a job keeps outside of state begins anew, and so do its accumulators."""
    lines, _ = run_job(name, env, directory)
    job = load_job(name)
    comparable = getattr(job, "after_restore", lambda line: line)
    assert sorted(map(comparable, lines)) == sorted(map(comparable, read_golden(name)))
    if not hasattr(job, "after_restore"):
        assert lines == read_golden(name)


def _records(name: str) -> int:
    """Per epoch: one job has far more records than the others."""
    return 1000 if name == "number_sequence" else 3


@every_parallelism
@every_job
def test_epochs_in_process(name: str, parallelism: int, in_process_env: Any, tmp_path: Path) -> None:
    _check(name, in_process_env(parallelism, epochs(tmp_path, _records(name))), tmp_path / "out")


@pytest.mark.parametrize("name", STAGE_JOBS)
def test_epochs_on_spark(name: str, spark_env: Any, tmp_path: Path) -> None:
    # fewer epochs than in process: each is a job of Spark, and one of "partitioning" has more than thirty tasks
    max_records = (3 if name == "partitioning" else 2) * _records(name)
    _check(name, spark_env(2, epochs(tmp_path, max_records)), tmp_path / "out")


class Forgetful(InProcessStageRunner):
    """After every epoch one of its workers is gone."""

    def run_epoch(self, job_graph: Any, epoch: Any) -> Any:
        messages = super().run_epoch(job_graph, epoch)
        self.forget(epoch.epoch % 2)
        return messages


@every_job
def test_epochs_with_workers_that_forget(name: str, in_process_env: Any, tmp_path: Path) -> None:
    env = in_process_env(2, epochs(tmp_path, _records(name)))
    env._executor = InProcessExecutor(create_stages=Forgetful)
    _check_what_survives(name, env, tmp_path / "out")


class Faulty(InProcessStageRunner):
    """In every other epoch tasks break off and are run again, some in a new worker, some after they had finished."""

    def run_epoch(self, job_graph: Any, epoch: Any) -> Any:
        self.faults.clear()
        if epoch.epoch % 2 == 0:
            kinds = (FaultKind.RETRY, FaultKind.KILL)
            for place, vertex in enumerate(job_graph.vertices):
                kind = kinds[(place + epoch.epoch // 2) % 2]
                after_rows = (0, 1, None)[(place + epoch.epoch) % 3]
                self.faults.append(TaskFault(kind, vertex.id, epoch.epoch % 4 // 2, after_rows=after_rows))
        return super().run_epoch(job_graph, epoch)


@every_job
def test_epochs_with_tasks_that_run_twice(name: str, in_process_env: Any, tmp_path: Path) -> None:
    env = in_process_env(2, epochs(tmp_path, _records(name)))
    env._executor = InProcessExecutor(create_stages=Faulty)
    _check_what_survives(name, env, tmp_path / "out")
