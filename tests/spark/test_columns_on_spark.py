"""Streams of columns on real Spark: a worker dies, and columns in flight go to another parallelism."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.testing import eventually
from tests.support.jobs.column_jobs import TYPE, number_rows
from tests.support.jobs.running_jobs import (
    Slow,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    settings,
    start,
)

UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true"}
DEADLINE_S = 120.0


def row(index: int) -> tuple[str, int, int]:
    return f"k{index % 5}", 0, index


def tagged(value: Any) -> Any:
    return (*value, os.getpid())


def numbered(env: Any, count: int, per_second: float, slow: Slow) -> Any:
    generator = DataGeneratorSource(row, count, RateLimiterStrategy.per_second(per_second))
    rows = env.from_source(generator, WatermarkStrategy.no_watermarks(), "rows").uid("rows").map(slow)
    columns = rows._transform("RowsToColumns", RowsToColumnsSpec(TYPE), None)
    return number_rows(columns)._transform("ColumnsToRows", ColumnsToRowsSpec(as_tuples=True), None)


def each_once(results: list[Any], count: int) -> bool:
    """Whether every row is there once, and so is every number of each key."""
    assert Counter(each[:3] for each in results) == Counter(map(row, range(count)))
    for key in range(5):
        numbers = sorted(each[3] for each in results if each[0] == f"k{key}")
        assert numbers == list(range(len(numbers)))
    return True


@pytest.mark.parametrize("barriers", [{}, UNALIGNED], ids=["aligned", "unaligned"])
def test_a_worker_is_killed(barriers: dict[str, str], spark_env: Any, tmp_path: Path) -> None:
    env = spark_env(2, settings(tmp_path, execution__checkpointing__interval="100 ms", **barriers))
    job = start(numbered(env, 2000, 1000, Slow(0.01)).map(tagged))
    eventually(lambda: len(job.results) > 100, timeout=DEADLINE_S)
    os.kill(job.results[-1][4], signal.SIGKILL)
    assert each_once(job.wait(), 2000)
    assert job.attempt == 1
    assert job.statistics["counts"]["restored"] == 1


def test_columns_are_rescaled_on_spark(spark_env: Any, tmp_path: Path) -> None:
    env = spark_env(2, settings(tmp_path))
    job = start(numbered(env, 2000, 500, Slow(0.002))).runs()

    def has_results() -> bool:
        job.checkpoint()
        return len(job.results) > 50

    eventually(has_results, timeout=DEADLINE_S, interval=0.1)
    path = job.stop()
    assert metadata_of(path).operators
    restored = spark_env(3, settings(tmp_path, execution__state_recovery__path=path))
    rest = start(numbered(restored, 2000, 100_000, Slow(0))).wait()
    assert each_once(job.results + rest, 2000)
