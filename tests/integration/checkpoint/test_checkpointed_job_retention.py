"""What is left of a job's checkpoints, while it runs, after failures and at its end: exactly what is needed."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, JobStatus, Types
from firesteel.common.errors import CheckpointStorageError
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.process import fault_points
from firesteel.runtime.checkpoint import storage
from firesteel.testing import ABORT, eventually
from firesteel.testing.in_process import InProcessExecutor
from tests.support.jobs.running_jobs import (
    HOUR,
    RunningJob,
    clock_of_today,
    environment,
    files_in,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    number_pairs,
    numbered,
    pairs,
    phases,
    start,
    warning,
)

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
RETENTION = "execution__checkpointing__externalized_checkpoint_retention"
RETAINED = {RETENTION: "RETAIN_ON_CANCELLATION"}
IN_FILES = {"execution__checkpointing__data_inline_threshold": "0 b"}


def needed_by(directory: Path) -> set[str]:
    """The files of all complete checkpoints of the one job in a checkpoint directory, with their metadata."""
    (job,) = directory.iterdir()
    needed: set[str] = set()
    for path in storage.completed_checkpoints(str(job)):
        needed |= metadata_of(path).files() | {f"{path}/_metadata"}
    return needed


def nothing_but_what_is_needed(directory: Path) -> bool:
    probes = {path for path in files_in(directory) if "/.probe-" in path}
    try:
        needed = needed_by(directory)
    except CheckpointStorageError:
        return False  # one is just being deleted
    assert files_in(directory) - probes == needed
    return True


# -- the end of a job ---------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("retention", ["RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"])
def test_a_job_that_finishes_leaves_nothing(retention: str, backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        state__backend__type=backend,
        execution__state_recovery__from_local="true",
        execution__checkpointing__local_backup__dirs=str(tmp_path / "local"),
        **IN_FILES,
        **{RETENTION: retention},
    )
    job = start(number_pairs(env, phases(clock, pairs(0, 100), pairs(100, 200), pairs(200, 300)))).runs(clock)
    temporary = set(Path(tempfile.gettempdir()).iterdir())
    for _ in range(2):
        job.checkpoint()
        assert files_in(tmp_path / "local"), "there are copies"
        clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 300))
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert [path for path in files_in(tmp_path / "local") if not path.endswith(".lock")] == []
    assert set(Path(tempfile.gettempdir()).iterdir()) <= temporary


def test_a_directory_that_was_made_up_is_gone_with_its_job(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, execution__checkpointing__dir="", **RETAINED)
    before = set(Path(tempfile.gettempdir()).iterdir())
    job = start(number_pairs(env, phases(clock, pairs(0, 100), [ABORT(), *pairs(100, 200)]))).runs(clock)
    path = Path(job.checkpoint())
    assert path.is_relative_to(tempfile.gettempdir())
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 200))
    assert set(Path(tempfile.gettempdir()).iterdir()) <= before


@pytest.mark.parametrize(
    ("retention", "end", "kept"),
    [
        ("RETAIN_ON_CANCELLATION", JobStatus.CANCELED, True),
        ("DELETE_ON_CANCELLATION", JobStatus.CANCELED, False),
        ("NO_EXTERNALIZED_CHECKPOINTS", JobStatus.CANCELED, False),
        ("RETAIN_ON_CANCELLATION", JobStatus.FAILED, True),
        ("DELETE_ON_CANCELLATION", JobStatus.FAILED, True),
        ("NO_EXTERNALIZED_CHECKPOINTS", JobStatus.FAILED, False),
    ],
)
def test_a_job_that_is_cancelled_or_fails(retention: str, end: JobStatus, kept: bool, tmp_path: Path) -> None:
    clock = clock_of_today()
    settings = {RETENTION: retention, "restart_strategy__type": "none", **IN_FILES}
    items = phases(clock, pairs(0, 100), [ABORT(), *pairs(100, 200)])
    job = start(number_pairs(environment(tmp_path, 2, clock, **settings), items)).runs(clock)
    path = job.checkpoint()
    if end is JobStatus.CANCELED:
        job.cancel()
    clock.advance(HOUR)
    if end is JobStatus.FAILED:
        assert job.fails().failure.error_type == "InjectedFailure"
    assert job.status is end
    assert Counter(job.results) == numbered(pairs(0, 100))
    if not kept:
        assert files_in(tmp_path / "checkpoints") == set()
        return
    assert nothing_but_what_is_needed(tmp_path / "checkpoints")
    assert not any("/.probe-" in file for file in files_in(tmp_path / "checkpoints"))
    resumed = environment(tmp_path / "resumed", 3, clock, execution__state_recovery__path=path)
    again = [item for item in items if not isinstance(item, ABORT)]
    results = start(number_pairs(resumed, again)).wait()
    assert Counter(results) == numbered(pairs(0, 200)) - numbered(pairs(0, 100))
    assert Path(path).exists(), "it is not the resumed job's"


def test_how_many_are_kept(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **RETAINED, **IN_FILES, execution__checkpointing__num_retained="3")
    job = start(number_pairs(env, phases(clock, pairs(0, 100), []))).runs(clock)
    paths = [job.checkpoint() for _ in range(5)]
    job.cancel()
    assert [Path(path).exists() for path in paths] == [False, False, True, True, True]
    assert nothing_but_what_is_needed(tmp_path / "checkpoints")
    newest = environment(tmp_path / "resumed", 2, clock, execution__state_recovery__path=str(Path(paths[0]).parent))
    resumed = start(number_pairs(newest, phases(clock, pairs(0, 100), []))).runs(clock)
    assert resumed.statistics["latest"]["restored"]["id"] == 5
    resumed.cancel()


# -- while it runs ------------------------------------------------------------------------------------


def later(clock: Any, count: int, aborts: set[int]) -> list[Any]:
    """A part for each of so many hours, each about other keys; some fail the job at their end."""
    parts = [[*pairs(100 * n, 100 * n + 100, keys=3 + n), *([ABORT()] if n in aborts else [])] for n in range(count)]
    return phases(clock, *parts)


@every_backend
@pytest.mark.parametrize("aborts", [set(), {3, 5, 6}], ids=["without failures", "with failures"])
def test_shared_files_after_many_checkpoints(aborts: set[int], backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        state__backend__type=backend,
        execution__checkpointing__num_retained="2",
        **RETAINED,
        **IN_FILES,
    )
    items = later(clock, 10, aborts)
    job = start(number_pairs(env, items, bounded=False)).runs(clock)
    shared = 0
    for hour in range(9):
        path = job.checkpoint()
        shared = max(shared, sum("/shared/" in file for file in metadata_of(path).files()))
        clock.advance(HOUR)
        if hour + 1 in aborts:
            eventually(lambda n=hour + 1: job.attempt == len([each for each in aborts if each <= n]))
            job.runs(clock)
    path = job.checkpoint()
    assert shared > 1, "checkpoints share files"
    job.cancel()
    assert len(storage.completed_checkpoints(str(Path(path).parent))) == 2
    assert nothing_but_what_is_needed(tmp_path / "checkpoints")
    everything = [item for item in items if isinstance(item, tuple)]
    assert Counter(job.results) == numbered(everything)
    settings = {"state__backend__type": backend, "execution__state_recovery__path": path}
    resumed = environment(tmp_path / "resumed", 2, clock, **settings)
    counts = start(number_pairs(resumed, [*items, *pairs(0, 12, keys=12)])).wait()
    assert Counter(counts) == numbered([*everything, *pairs(0, 12, keys=12)]) - numbered(everything)


@pytest.fixture
def armed(tmp_path: Path) -> Iterator[Any]:
    """Arms a fault point of this process, once."""

    def arm(point: str) -> Path:
        mark = tmp_path / "armed"
        mark.write_text("")
        fault_points.arm(f"{point}=raise@{mark}")
        return mark

    yield arm
    fault_points.arm("")


@every_backend
@pytest.mark.parametrize(
    "point",
    [
        "checkpoint.trigger",
        "checkpoint.sync",
        "checkpoint.write",
        "checkpoint.ack",
        "checkpoint.metadata",
        "checkpoint.stored",
        "sink.commit",
        "sink.committed",
    ],
)
@pytest.mark.filterwarnings("ignore::firesteel.common.errors.FiresteelWarning")
def test_an_error_at_every_step(point: str, backend: str, armed: Any, tmp_path: Path) -> None:
    """Nothing is lost, nothing comes twice, and nothing but what is needed is left."""
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        state__backend__type=backend,
        execution__checkpointing__tolerable_failed_checkpoints="5",
        **RETAINED,
        **IN_FILES,
    )
    items = later(clock, 4, {2})
    stream = number_pairs(env, items, bounded=False).map(str, Types.STRING())
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    job = start(stream, sink).runs(clock)
    job.checkpoint()
    clock.advance(HOUR)
    mark = armed(point)
    failed = job.handle.trigger_checkpoint()
    eventually(lambda: not mark.exists() and failed.done())
    if point.startswith("sink."):
        eventually(lambda: job.attempt == 1)
    else:
        assert failed.exception() is not None
    job.runs(clock).checkpoint()
    clock.advance(HOUR)
    eventually(
        lambda: job.status is JobStatus.RUNNING and job.attempt >= 1 and job.handle._master.checkpoints.is_running
    )
    clock.advance(HOUR)
    job.runs(clock).stop(drain=True)
    lines = [line for path in sorted(files_in(tmp_path / "out")) for line in Path(path).read_text().splitlines()]
    everything = [item for item in items if isinstance(item, tuple)]
    assert Counter(lines) == Counter(str(each) for each in numbered(everything).elements())
    assert files_in(tmp_path / "checkpoints") == set(), "the job has finished"


@every_backend
@pytest.mark.parametrize("point", ["checkpoint.write", "checkpoint.ack", "checkpoint.metadata", "checkpoint.stored"])
def test_what_a_failed_checkpoint_wrote_is_gone(point: str, backend: str, armed: Any, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        state__backend__type=backend,
        execution__checkpointing__tolerable_failed_checkpoints="5",
        **RETAINED,
        **IN_FILES,
    )
    job = start(number_pairs(env, later(clock, 3, set()), bounded=False)).runs(clock)
    job.checkpoint()
    clock.advance(HOUR)
    armed(point)
    with warning("Checkpoint 2 was aborted"):
        error = job.handle.trigger_checkpoint().exception(30)
    assert "fault injected" in str(error)
    eventually(lambda: nothing_but_what_is_needed(tmp_path / "checkpoints"))
    clock.advance(HOUR)
    job.checkpoint()
    job.cancel()
    assert nothing_but_what_is_needed(tmp_path / "checkpoints")


def test_what_slots_that_were_killed_left_is_gone(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **RETAINED, **IN_FILES)
    job = start(number_pairs(env, later(clock, 3, {1}), bounded=False)).runs(clock)
    path = Path(job.checkpoint())
    for orphan in (path.parent / "shared" / "orphan", path.parent / "chk-7" / "orphan"):
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"written, and never acknowledged")
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    assert nothing_but_what_is_needed(tmp_path / "checkpoints")
    job.cancel()


def test_local_copies_make_a_restart_read_nothing(tmp_path: Path) -> None:
    """The state files are gone from the storage; only what the host kept is left."""
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        execution__state_recovery__from_local="true",
        execution__checkpointing__local_backup__dirs=str(tmp_path / "local"),
        **IN_FILES,
    )
    job = start(number_pairs(env, later(clock, 2, {1}), bounded=False)).runs(clock)
    files = metadata_of(job.checkpoint()).files()
    assert files
    kept = {file: Path(file).read_bytes() for file in files}
    for file in files:
        Path(file).write_bytes(b"")
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    for file, data in kept.items():
        Path(file).write_bytes(data)
    job.checkpoint()
    everything = [item for item in later(clock, 2, set()) if isinstance(item, tuple)]
    eventually(lambda: Counter(job.results) == numbered(everything))
    job.cancel()


def test_jobs_share_a_directory(tmp_path: Path) -> None:
    """One job's end is no concern of another's."""
    clock = clock_of_today()
    jobs: list[RunningJob] = []
    executor = InProcessExecutor(clock)
    for _ in range(2):
        env = environment(tmp_path, 2, clock, executor=executor, **RETAINED, **IN_FILES)
        jobs.append(start(number_pairs(env, phases(clock, pairs(0, 100), [ABORT(), *pairs(100, 200)]))).runs(clock))
    paths = [job.checkpoint() for job in jobs]
    jobs[0].cancel()
    storage.dispose(paths[0])
    clock.advance(HOUR)
    assert Counter(jobs[1].wait()) == numbered(pairs(0, 200))
    assert files_in(tmp_path / "checkpoints") == set()
