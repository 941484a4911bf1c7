"""Every job under tests/jobs against one golden file each: in process at parallelism 1, 2 and 3, on Spark at 3.

After a job was changed or added, ``pytest tests/test_jobs.py --update-golden -k in_process`` writes the files.
Read what it wrote against Flink's semantics before you keep it: a golden file says what is right, not what happens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.golden_jobs import GOLDEN, JOB_NAMES, load_job, read_golden, run_job

PARALLELISMS = (1, 2, 3)

every_job = pytest.mark.parametrize("name", JOB_NAMES)
every_parallelism = pytest.mark.parametrize("parallelism", PARALLELISMS)


def _check(name: str, env: Any, directory: Path) -> None:
    lines, accumulators = run_job(name, env, directory)
    assert lines == read_golden(name)
    assert accumulators == getattr(load_job(name), "ACCUMULATORS", {})


@every_parallelism
@every_job
def test_job_in_process(name: str, parallelism: int, in_process_env: Any, tmp_path: Path, request: Any) -> None:
    if request.config.getoption("--update-golden") and parallelism == 1:
        lines, _ = run_job(name, in_process_env(1), tmp_path / "written")
        (GOLDEN / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    _check(name, in_process_env(parallelism), tmp_path / "out")


@every_job
def test_job_on_spark(name: str, spark_env: Any, tmp_path: Path) -> None:
    _check(name, spark_env(3), tmp_path / "out")


@pytest.mark.parametrize("name", ["partitioning", "session_windows", "word_count"])
def test_job_in_one_slot_of_spark(name: str, spark_env: Any, tmp_path: Path) -> None:
    """Without slots that exchange records, except for operators that have a parallelism of their own."""
    _check(name, spark_env(1), tmp_path / "out")


def test_every_golden_file_has_its_job() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == JOB_NAMES
    assert len(JOB_NAMES) >= 15


def test_a_golden_file_can_fail(in_process_env: Any, tmp_path: Path) -> None:
    lines, _ = run_job("word_count", in_process_env(2), tmp_path)
    golden = read_golden("word_count")
    assert lines == golden
    assert golden.index("('to', 1)") < golden.index("('to', 2)")
    assert lines[::-1] != golden
