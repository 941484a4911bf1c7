"""Every job under tests/jobs as a batch: in process at parallelism 1, 2 (with rows in any order) and 3, on Spark at 2.

It gives what it gives as a stream, except where batch is something else by nature: final results instead of running
ones, one watermark at the end, the records of a key in the order of their time. What such a job must give as a batch is
in golden/batch, and why is in its docstring. Its ``BATCH_ACCUMULATORS`` are what its result must say of accumulators.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.jobs.golden_jobs import GOLDEN, JOB_NAMES, STAGE_JOBS, load_job, read_golden, run_job

PARALLELISMS = (1, 3)
BATCH = {"execution.runtime-mode": "BATCH"}
GOLDEN_OF_BATCHES = GOLDEN / "batch"

BATCH_JOBS = [name for name in JOB_NAMES if not hasattr(load_job(name), "STREAMING_ONLY")]
every_job = pytest.mark.parametrize("name", BATCH_JOBS)
every_parallelism = pytest.mark.parametrize("parallelism", PARALLELISMS)


def read_batch_golden(name: str) -> list[str]:
    """What the job must give as a batch."""
    own = GOLDEN_OF_BATCHES / f"{name}.txt"
    return own.read_text().splitlines() if own.exists() else read_golden(name)


def _check(name: str, env: Any, directory: Path) -> None:
    lines, accumulators = run_job(name, env, directory)
    job = load_job(name)
    assert lines == read_batch_golden(name)
    assert accumulators == {**getattr(job, "ACCUMULATORS", {}), **getattr(job, "BATCH_ACCUMULATORS", {})}


@every_parallelism
@every_job
def test_batch_in_process(name: str, parallelism: int, in_process_env: Any, tmp_path: Path) -> None:
    _check(name, in_process_env(parallelism, BATCH), tmp_path / "out")


@every_job
def test_batch_does_not_depend_on_the_order_in_which_rows_arrive(
    name: str, in_process_env: Any, tmp_path: Path
) -> None:
    for seed in (1, 2):
        env = in_process_env(2, BATCH)
        env._executor = InProcessExecutor(create_stages=lambda seed=seed: InProcessStageRunner(seed=seed))
        _check(name, env, tmp_path / f"out-{seed}")


@every_job
def test_batch_with_tasks_that_run_twice(name: str, in_process_env: Any, tmp_path: Path) -> None:
    """The first task of every vertex breaks off, and the second has finished when its worker dies."""

    def stages() -> InProcessStageRunner:
        runner = InProcessStageRunner()
        run_batch = runner.run_batch

        def with_faults(job_graph: Any, orders: Any) -> Any:
            for vertex in job_graph.vertices:
                runner.faults += [
                    TaskFault(FaultKind.RETRY, vertex.id, 0, after_rows=1),
                    TaskFault(FaultKind.KILL, vertex.id, 1, after_rows=None),
                ]
            return run_batch(job_graph, orders)

        runner.run_batch = with_faults  # type: ignore[assignment, method-assign]
        return runner

    env = in_process_env(2, BATCH)
    env._executor = InProcessExecutor(create_stages=stages)
    _check(name, env, tmp_path / "out")


@pytest.mark.parametrize("name", ["rich_functions", "running_aggregates", "word_count"])
def test_bounded_jobs_run_as_a_batch_by_themselves(name: str, in_process_env: Any, tmp_path: Path) -> None:
    _check(name, in_process_env(2, {"execution.runtime-mode": "AUTOMATIC"}), tmp_path / "out")


@pytest.mark.parametrize("name", [name for name in STAGE_JOBS if name in BATCH_JOBS])
def test_batch_on_spark(name: str, spark_env: Any, tmp_path: Path) -> None:
    _check(name, spark_env(2, BATCH), tmp_path / "out")


def test_every_golden_file_of_a_batch_differs_from_that_of_the_stream() -> None:
    names = sorted(path.stem for path in GOLDEN_OF_BATCHES.glob("*.txt"))
    assert set(names) <= set(JOB_NAMES)
    for name in names:
        assert read_batch_golden(name) != read_golden(name)
        assert "batch" in (load_job(name).__doc__ or "")
