"""Checkpoints on demand that are full: everything anew, whatever earlier ones have written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import (
    Numbered,
    environment,
    files_in,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    numbered,
    pairs,
    source,
    start,
)

DEADLINE_S = 60
KEYS = 1000
READ = pairs(0, 2 * KEYS, KEYS)
EXECUTIONS = {"pipelined": {}, "epochs": {"execution__exchange": "spark"}}
ON_DEMAND = {"execution__epoch__trigger": "interval", "execution__epoch__interval": "10 h"}
every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
every_execution = pytest.mark.parametrize("execution", EXECUTIONS)


def job_of(directory: Path, items: list[Any], *, bounded: bool = False, **settings: str) -> Any:
    settings = {
        "execution__checkpointing__data_inline_threshold": "0 b",
        "execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION",
        **settings,
    }
    env = environment(directory, 2, **settings)
    # a split for each subtask, so that none ends early; keys that are only in one of them keep their order
    stream = source(env, items[::2], items[1::2], bounded=bounded).key_by(lambda pair: pair[0])
    return start(stream.process(Numbered()).uid("numbered"))


def take(job: Any, *, full: bool = False) -> CheckpointMetadata:
    return metadata_of(job.handle.trigger_checkpoint(full=full).result(DEADLINE_S))


def has_read_all(job: Any) -> None:
    take(job)
    assert len(job.results) == len(READ)


def statistics_of(job: Any, checkpoint: CheckpointMetadata) -> Any:
    return job.tracker.details(checkpoint.checkpoint_id)


@every_backend
@every_execution
def test_a_full_checkpoint_shares_nothing_with_earlier_ones(backend: str, execution: str, tmp_path: Path) -> None:
    settings = {"state__backend__type": backend, **EXECUTIONS[execution]}
    job = job_of(tmp_path, READ, **settings, **ON_DEMAND).runs()
    eventually(lambda: has_read_all(job), timeout=DEADLINE_S)

    before = take(job)
    full = take(job, full=True)
    assert (before.kind, full.kind) == (SnapshotKind.CHECKPOINT, SnapshotKind.FULL_CHECKPOINT)
    assert not before.files() & full.files()
    incremental, whole = statistics_of(job, before), statistics_of(job, full)
    assert incremental["checkpoint_type"] == whole["checkpoint_type"] == "CHECKPOINT"
    assert incremental["checkpointed_size"] < incremental["state_size"] / 2
    assert whole["checkpointed_size"] == whole["state_size"] > incremental["state_size"] / 2
    assert job.statistics["latest"]["completed"] == {**whole, "tasks": {}}

    # what it has written, later ones use again; what it has not, nobody needs any more
    after = take(job)
    assert after.kind is SnapshotKind.CHECKPOINT
    assert statistics_of(job, after)["checkpointed_size"] < whole["state_size"] / 2
    assert after.files() & full.files()
    eventually(lambda: not {Path(file) for file in before.files()} & set(map(Path, files_in(tmp_path))))
    job.cancel()

    items = [*READ, *pairs(2 * KEYS, 3 * KEYS, KEYS)]
    path = statistics_of(job, after)["external_path"]
    again = job_of(tmp_path, items, bounded=True, **settings, execution__state_recovery__path=path)
    assert Counter(again.wait()) == numbered(items) - numbered(READ)


@every_backend
def test_without_incremental_checkpoints_every_one_writes_everything(backend: str, tmp_path: Path) -> None:
    """And so does one that was asked to be incremental, as in Flink: the kind is the backend's affair."""
    job = job_of(tmp_path, READ, state__backend__type=backend, execution__checkpointing__incremental="false").runs()
    eventually(lambda: has_read_all(job), timeout=DEADLINE_S)
    taken = [take(job), take(job, full=True), take(job)]
    for checkpoint in taken:
        statistics = statistics_of(job, checkpoint)
        assert statistics["checkpointed_size"] == statistics["state_size"] > KEYS
    assert not taken[0].files() & taken[1].files()
    assert not taken[1].files() & taken[2].files()
    job.cancel()
