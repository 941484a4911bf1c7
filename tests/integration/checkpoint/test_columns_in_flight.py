"""Checkpoints of streams of columns: what is in flight is stored, restored and divided anew by key group."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import DataStream
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.testing import ABORT
from tests.support.jobs.column_jobs import TYPE, number_rows
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    RunningJob,
    clock_of_today,
    environment,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    phases,
    source,
    start,
)

ALIGNED = {"taskmanager__memory__segment_size": "256 bytes"}
UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true", **ALIGNED}
RECORDS = 8000
LAST = RECORDS + 50


def rows(split: int, first: int, stop: int) -> list[Any]:
    return [(f"k{number % 7}", split, number) for number in range(first, stop)]


def splits_of(clock: Any, count: int = 2) -> list[list[Any]]:
    """Many rows for each split, more later; the first one then fails the job."""
    later = [rows(split, RECORDS, LAST) for split in range(count)]
    later[0].insert(0, ABORT())
    return [phases(clock, rows(split, 0, RECORDS), later[split]) for split in range(count)]


def build(stream: DataStream, partitioning: str) -> DataStream:
    columns = stream._transform("RowsToColumns", RowsToColumnsSpec(TYPE), None)
    if partitioning == "keyed":
        numbered = number_rows(columns)
    else:
        numbered = columns.rebalance()._transform("Calc", CalcSpec(lambda data: data), None).uid("slow")
    return numbered._transform("ColumnsToRows", ColumnsToRowsSpec(as_tuples=True), None)


def check(results: list[Any], partitioning: str, count: int = 2) -> None:
    """Every row is there once and, of each key and split, in order; numbers are the key's own."""
    expected = [row for split in range(count) for row in rows(split, 0, LAST)]
    assert Counter(row[:3] for row in results) == Counter(expected)
    if partitioning != "keyed":
        return
    by_key: dict[str, list[Any]] = defaultdict(list)
    for key, split, value, number in results:
        by_key[key].append((number, split, value))
    for numbered in by_key.values():
        numbered.sort()
        assert [number for number, _, _ in numbered] == list(range(len(numbered)))
        for split in range(count):
            own = [value for _, of, value in numbered if of == split]
            assert own == sorted(own)


@pytest.mark.parametrize("partitioning", ["keyed", "rebalanced"])
def test_an_unaligned_checkpoint_completes_while_columns_wait(partitioning: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, **UNALIGNED)
    job = start(build(source(env, *splits_of(clock)), partitioning), GatedSink("results", gate)).runs(clock)
    metadata = metadata_of(job.handle.trigger_checkpoint().result(120))
    assert {channel.at_producer for channel in metadata.channels} == {False, True}
    assert job.results == []
    gate.open()
    clock.advance(HOUR)
    check(job.wait(), partitioning)
    assert job.attempt == 1
    assert job.statistics["counts"]["restored"] == 1


def test_an_aligned_checkpoint_has_no_columns_in_flight(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **ALIGNED)
    job = start(build(source(env, *splits_of(clock)), "keyed")).runs(clock)
    assert metadata_of(job.handle.trigger_checkpoint().result(120)).channels == ()
    clock.advance(HOUR)
    check(job.wait(), "keyed")
    assert job.attempt == 1


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("partitioning", ["keyed", "rebalanced"])
def test_columns_in_flight_are_restored_at_another_parallelism(
    partitioning: str, before: int, after: int, tmp_path: Path
) -> None:
    clock = clock_of_today()
    gate = Gate()
    splits = splits_of(clock, 3)

    def run(width: int, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **UNALIGNED,
            **overrides,
        )
        return start(build(source(env, *splits), partitioning), GatedSink("results", gate))

    first = run(before).runs(clock)
    path = first.handle.trigger_checkpoint().result(120)
    assert metadata_of(path).channels
    first.cancel()
    assert first.results == []
    gate.open()
    second = run(after, execution__state_recovery__path=path)
    clock.advance(HOUR)
    check(second.wait(), partitioning, 3)
