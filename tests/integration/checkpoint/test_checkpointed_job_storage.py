"""Checkpoint storage that fails, is slow, full or loses the ends of files while a job runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, JobStatus
from firesteel.common.errors import CheckpointError, CheckpointStorageError
from firesteel.runtime.checkpoint import storage
from firesteel.testing import ABORT, eventually
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.jobs.running_jobs import (
    HOUR,
    DiscardingSink,
    Numbered,
    RunningJob,
    clock_of_today,
    environment,
    files_in,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    numbered,
    pairs,
    phases,
    source,
    start,
    warning,
)

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
given_up = pytest.mark.filterwarnings("ignore:.*was aborted:firesteel.common.errors.FiresteelWarning")
TOLERABLE = "execution__checkpointing__tolerable_failed_checkpoints"


class FaultyJob:
    """A job whose storage a test can spoil."""

    def __init__(self, directory: Path, parts: list[list[Any]], sink: Any = None, **overrides: str):
        self.clock = clock_of_today()
        self.faults = StorageFaults(directory / "faults")
        self.directory = directory / "checkpoints"
        env = environment(
            directory,
            2,
            self.clock,
            execution__checkpointing__data_inline_threshold="0 b",
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **overrides,
        )
        env.configure(Configuration().set_string(*self.faults.setting))
        keyed = source(env, phases(self.clock, *parts), bounded=False).key_by(lambda pair: pair[0])
        self.job: RunningJob = start(keyed.process(Numbered()).uid("numbered").name("Numberer"), sink).runs(self.clock)

    def checkpoint_fails(self) -> str:
        """Takes a checkpoint, which fails; why."""
        error = self.job.handle.trigger_checkpoint().exception(30)
        assert isinstance(error, CheckpointError)
        return error.message

    def is_clean(self) -> bool:
        """Whether there are no files but those of complete checkpoints."""
        needed: set[str] = set()
        for directory in self.directory.iterdir():
            for path in storage.completed_checkpoints(str(directory)):
                try:
                    needed |= metadata_of(path).files() | {f"{path}/_metadata"}
                except CheckpointStorageError:
                    return False  # it is just being disposed of
        return {path for path in files_in(self.directory) if "/.probe-" not in path} == needed


@every_backend
@given_up
def test_some_failures_are_tolerated(backend: str, tmp_path: Path) -> None:
    faulty = FaultyJob(
        tmp_path,
        [pairs(0, 100), pairs(100, 200), [ABORT(), *pairs(200, 300)]],
        state__backend__type=backend,
        **{TOLERABLE: "2"},
    )
    faulty.job.checkpoint()
    for _ in range(2):
        faulty.faults.set("fail write")
        for _ in range(2):
            faulty.checkpoint_fails()
        faulty.faults.clear()
        faulty.job.checkpoint()
    faulty.clock.advance(HOUR)
    assert faulty.job.attempt == 0
    eventually(faulty.is_clean)
    faulty.job.checkpoint()
    faulty.clock.advance(HOUR)
    eventually(lambda: faulty.job.attempt == 1)
    faulty.job.runs(faulty.clock).checkpoint()
    eventually(lambda: Counter(faulty.job.results) == numbered(pairs(0, 300)))
    faulty.job.cancel()
    assert faulty.is_clean()
    assert faulty.job.statistics["counts"]["failed"] == 4


@pytest.mark.parametrize(("fault", "said"), [("fail write", "Input/output error"), ("full write", "No space left")])
@given_up
def test_then_the_job_fails_and_says_why(fault: str, said: str, tmp_path: Path) -> None:
    faulty = FaultyJob(tmp_path, [pairs(0, 100), []], restart_strategy__type="none", **{TOLERABLE: "1"})
    faulty.faults.set(f"{fault} in shared")
    faulty.checkpoint_fails()
    assert faulty.job.status is JobStatus.RUNNING
    message = faulty.checkpoint_fails()
    assert "Numberer" in message
    assert said in message
    failure = faulty.job.fails().failure
    assert failure.error_type == "CheckpointError"
    assert "tolerable-failed-checkpoints" in failure.message
    assert "'Numberer" in failure.message, "the task is named"
    assert said in failure.message
    assert faulty.job.status is JobStatus.FAILED


@given_up
def test_or_starts_again_from_the_last_checkpoint(tmp_path: Path) -> None:
    faulty = FaultyJob(tmp_path, [pairs(0, 100), pairs(100, 200)])
    faulty.job.checkpoint()
    faulty.clock.advance(HOUR)
    faulty.faults.set("fail write once")
    faulty.checkpoint_fails()
    eventually(lambda: faulty.job.attempt == 1)
    faulty.job.runs(faulty.clock).checkpoint()
    eventually(lambda: Counter(faulty.job.results) == numbered(pairs(0, 200)))
    faulty.job.cancel()
    assert faulty.is_clean()


@pytest.mark.parametrize("place", ["shared", "chk-", "_metadata"])
@given_up
def test_a_checkpoint_that_takes_too_long_is_given_up(place: str, tmp_path: Path) -> None:
    faulty = FaultyJob(
        tmp_path,
        [pairs(0, 100), pairs(100, 200)],
        execution__checkpointing__timeout="200 ms",
        **{TOLERABLE: "1000"},
    )
    eventually(lambda: faulty.job.handle.trigger_checkpoint().exception(30) is None)
    faulty.clock.advance(HOUR)
    faulty.faults.set(f"slow:1.5 write in {place}")
    with warning(r"aborted.*execution\.checkpointing\.timeout"):
        message = faulty.checkpoint_fails()
    if place != "_metadata":
        assert "Numberer" in message or "source" in message, "who had not acknowledged it"
    faulty.faults.clear()
    assert faulty.job.attempt == 0
    # on a slow machine more than one may take too long
    eventually(lambda: faulty.job.handle.trigger_checkpoint().exception(30) is None)
    eventually(lambda: Counter(faulty.job.results) == numbered(pairs(0, 200)))
    eventually(faulty.is_clean)
    faulty.job.cancel()
    assert faulty.is_clean()


@given_up
def test_a_storage_that_cannot_be_read_for_a_while(tmp_path: Path) -> None:
    faulty = FaultyJob(
        tmp_path,
        [pairs(0, 100), [ABORT(), *pairs(100, 200)]],
        restart_strategy__fixed_delay__attempts="1000000",  # until the test has seen some
        restart_strategy__fixed_delay__delay="5 ms",
    )
    faulty.job.checkpoint()
    faulty.faults.set("fail read in shared")
    faulty.clock._now += HOUR  # the job cannot come to rest as long as it is started again and again
    eventually(lambda: faulty.job.attempt >= 3)
    faulty.faults.clear()
    faulty.job.runs(faulty.clock).checkpoint()
    eventually(lambda: Counter(faulty.job.results) == numbered(pairs(0, 200)))
    faulty.job.cancel()


@every_backend
@given_up
def test_files_that_lose_their_ends(backend: str, tmp_path: Path) -> None:
    """Nobody notices when they are written. The restore does, and takes the older checkpoint."""
    faulty = FaultyJob(
        tmp_path,
        [pairs(0, 100), pairs(100, 200), [ABORT(), *pairs(200, 300)]],
        DiscardingSink(),
        state__backend__type=backend,
        execution__checkpointing__num_retained="2",
        restart_strategy__fixed_delay__delay="5 ms",
    )
    faulty.job.checkpoint()
    faulty.clock.advance(HOUR)
    faulty.faults.set("truncate write in shared")
    faulty.job.checkpoint()
    faulty.faults.clear()
    with warning(r"Checkpoint 2 cannot be restored.*checkpoint 1"):
        faulty.clock.advance(HOUR)
        eventually(lambda: faulty.job.attempt == 4)
        faulty.job.runs(faulty.clock)
    assert faulty.job.statistics["latest"]["restored"]["id"] == 1
    state = metadata_of(faulty.job.checkpoint()).operator("numbered")
    assert state is not None
    faulty.job.cancel()


def test_what_cannot_be_deleted_is_left(tmp_path: Path) -> None:
    faulty = FaultyJob(tmp_path, [pairs(0, 100), pairs(100, 200)])
    first = faulty.job.checkpoint()
    faulty.faults.set("fail delete")
    faulty.clock.advance(HOUR)
    for _ in range(3):
        last = faulty.job.checkpoint()
    assert faulty.job.attempt == 0
    assert Path(first).exists()
    faulty.faults.clear()
    faulty.job.checkpoint()
    eventually(lambda: not Path(last).exists())
    eventually(lambda: Counter(faulty.job.results) == numbered(pairs(0, 200)))
    faulty.job.cancel()
