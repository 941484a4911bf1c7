"""Savepoints of running jobs, jobs that stop with one, and jobs that start from one."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, JobStatus, Types
from firesteel.common.errors import (
    CheckpointError,
    CheckpointStorageError,
    StateIncompatibleError,
)
from firesteel.common.time import Time
from firesteel.datastream import KeyedProcessFunction, ProcessWindowFunction
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.testing import ABORT, WATERMARK, At, eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    Numbered,
    Probe,
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
    source,
    start,
    warning,
)

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
WITHOUT_CHECKPOINTS = {"execution__checkpointing__interval": ""}
RETAINED = {"execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION"}
CLAIM = {"execution__state_recovery__claim_mode": "CLAIM"}


def lines_in(directory: Path) -> list[str]:
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return sorted(line for path in files for line in path.read_text().splitlines())


# -- trigger ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [False, True], ids=["canonical", "native"])
@pytest.mark.parametrize("interval", ["1 h", ""], ids=["with checkpoints", "without"])
@every_backend
def test_the_job_goes_on_after_a_savepoint(backend: str, interval: str, native: bool, tmp_path: Path) -> None:
    clock = clock_of_today()
    settings = {"execution__checkpointing__interval": interval, "state__backend__type": backend}
    env = environment(tmp_path, 2, clock, **settings)
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    job = start(number_pairs(env, items)).runs(clock)
    path = job.savepoint(tmp_path / "mine", native=native)
    assert Path(path).parent == tmp_path / "mine"
    assert Path(path).name.startswith(f"savepoint-{job.client.get_job_id()}"[: len("savepoint-") + 6])
    metadata = metadata_of(path)
    assert metadata.kind is (SnapshotKind.NATIVE_SAVEPOINT if native else SnapshotKind.SAVEPOINT)
    assert all(file.startswith(path + "/") for file in metadata.files()), "it is all in one place"
    assert job.status is JobStatus.RUNNING
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 200))
    assert metadata_of(path) == metadata, "it outlives its job"

    resumed = environment(tmp_path, 3, clock, **settings, execution__state_recovery__path=path)
    assert Counter(start(number_pairs(resumed, items)).wait()) == (numbered(pairs(0, 200)) - numbered(pairs(0, 100)))


def test_two_savepoints_at_once(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    job = start(number_pairs(env, phases(clock, pairs(0, 100), []))).runs(clock)
    futures = [job.handle.trigger_savepoint(str(tmp_path / "savepoints")) for _ in range(2)]
    first, second = (future.result(120) for future in futures)
    assert first != second
    assert {metadata_of(path).operator("numbered").size for path in (first, second)} != {0}  # type: ignore[union-attr]
    job.cancel()


def test_a_savepoint_beside_checkpoints(tmp_path: Path) -> None:
    """It subsumes none, and shares nothing with them."""
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **RETAINED, execution__checkpointing__data_inline_threshold="0 b")
    job = start(number_pairs(env, phases(clock, pairs(0, 100), []))).runs(clock)
    checkpoint = job.checkpoint()
    savepoint = job.savepoint()
    assert metadata_of(checkpoint).checkpoint_id == 1
    assert metadata_of(savepoint).files().isdisjoint(metadata_of(checkpoint).files())
    job.cancel()
    shutil.rmtree(savepoint)
    storage.check_files(metadata_of(checkpoint))


def test_a_savepoint_of_a_job_that_has_ended(tmp_path: Path) -> None:
    env = environment(tmp_path, 2)
    job = start(number_pairs(env, pairs(0, 10)))
    job.wait()
    for request in (
        job.client.trigger_savepoint(str(tmp_path / "s")),
        job.client.stop_with_savepoint(False, str(tmp_path / "s")),
    ):
        with pytest.raises(CheckpointError, match=r"'job'.*(ended|FINISHED)"):
            request.result(60)
    assert not (tmp_path / "s").exists()


def test_a_savepoint_without_a_directory(tmp_path: Path) -> None:
    env = environment(tmp_path, 1, execution__checkpointing__savepoint_dir="")
    job = start(number_pairs(env, [], bounded=False)).runs()
    with pytest.raises(CheckpointError) as raised:
        job.client.trigger_savepoint().result(60)
    assert "execution.checkpointing.savepoint-dir" in (raised.value.hint or "")
    job.cancel()


def test_a_checkpoint_of_a_job_that_takes_none(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **WITHOUT_CHECKPOINTS)
    job = start(number_pairs(env, phases(clock, pairs(0, 10), pairs(10, 20)))).runs(clock)
    with pytest.raises(CheckpointError, match="takes no checkpoints"):
        job.checkpoint()
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 20)), "it is none the worse for it"


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_savepoint_under_way_when_the_job_ends(end: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, restart_strategy__type="none")
    items = phases(clock, pairs(0, 3000), [ABORT()])
    job = start(number_pairs(env, items), GatedSink("results", gate)).runs()
    savepoint = job.handle.trigger_savepoint(str(tmp_path / "s"))
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    if end == "cancelled":
        job.cancel()
    else:
        clock.advance(HOUR)
        job.fails()
    assert isinstance(savepoint.exception(30), CheckpointError)
    assert files_in(tmp_path / "s") == set()


def test_a_job_goes_on_from_a_savepoint_it_was_drained_with(tmp_path: Path) -> None:
    """Its windows have fired; time begins anew for what comes later."""
    clock = clock_of_today()
    items = phases(clock, [*timed(0, 150), WATERMARK(149)], [*timed(300, 450), WATERMARK(449)])
    path = start(in_windows(environment(tmp_path, 2, clock), items)).runs(clock).stop(drain=True)
    clock.advance(HOUR)
    resumed = start(in_windows(environment(tmp_path, 2, clock, execution__state_recovery__path=path), items))
    assert sorted(resumed.wait()) == [("k", 300, list(range(300, 400))), ("k", 400, list(range(400, 450)))]


@pytest.mark.parametrize("stop", [False, True], ids=["trigger", "stop"])
def test_a_place_for_a_savepoint_that_is_none(stop: bool, tmp_path: Path) -> None:
    """The user hears of it, and the job does not: without checkpoints it could not start again."""
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **WITHOUT_CHECKPOINTS)
    (tmp_path / "file").write_text("in the way")
    job = start(number_pairs(env, phases(clock, pairs(0, 100), pairs(100, 200)))).runs(clock)
    target = str(tmp_path / "file" / "beneath")
    request = job.handle.stop_with_savepoint(False, target) if stop else job.handle.trigger_savepoint(target)
    with pytest.raises(CheckpointError, match=r"'job': No savepoint can be written to .*file/beneath.*Not a directory"):
        request.result(120)
    assert (job.status, job.attempt) == (JobStatus.RUNNING, 0)
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 200))


@pytest.fixture
def unchecked_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place for savepoints that was good when it was looked at."""
    monkeypatch.setattr(storage, "check_target", lambda _directory: None)


@pytest.mark.usefixtures("unchecked_target")
@pytest.mark.parametrize("stop", [False, True], ids=["trigger", "stop"])
def test_a_savepoint_that_cannot_be_written(stop: bool, tmp_path: Path) -> None:
    """The user hears of it; the job goes on, or starts again from its last checkpoint."""
    clock = clock_of_today()
    env = environment(
        tmp_path,
        2,
        clock,
        execution__checkpointing__tolerable_failed_checkpoints="3",
        execution__checkpointing__data_inline_threshold="0 b",
    )
    (tmp_path / "file").write_text("in the way")
    job = start(number_pairs(env, phases(clock, pairs(0, 100), pairs(100, 200)))).runs(clock)
    job.checkpoint()
    target = str(tmp_path / "file" / "beneath")
    with warning("Savepoint 2 was aborted"):
        request = job.handle.stop_with_savepoint(False, target) if stop else job.handle.trigger_savepoint(target)
        with pytest.raises(CheckpointError, match=r"'job'.*file"):
            request.result(120)
    if stop:
        eventually(lambda: job.attempt == 1)
    job.runs(clock)
    assert job.attempt == int(stop)
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 200))
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.usefixtures("unchecked_target")
def test_a_checkpoint_goes_on_when_a_later_savepoint_fails(tmp_path: Path) -> None:
    gate = Gate()
    env = environment(
        tmp_path,
        2,
        execution__checkpointing__tolerable_failed_checkpoints="3",
        execution__checkpointing__data_inline_threshold="0 b",
    )
    (tmp_path / "file").write_text("in the way")
    stream = source(env, pairs(0, 3000), [], bounded=False).key_by(lambda pair: pair[0]).process(Numbered())
    job = start(stream, GatedSink("results", gate)).runs()
    checkpoint = job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    with warning("Savepoint 2 was aborted"):
        savepoint = job.handle.trigger_savepoint(str(tmp_path / "file"))
        assert isinstance(savepoint.exception(30), CheckpointError)
    assert not checkpoint.done()
    gate.open()
    assert Path(checkpoint.result(120)).name == "chk-1"
    job.cancel()


# -- stop ---------------------------------------------------------------------------------------------


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, sorted(value for _, value in elements)


def in_windows(env: Any, items: list[Any]) -> Any:
    keyed = source(env, items).key_by(lambda pair: pair[0])
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Values()).uid("windows")


def timed(first: int, stop: int) -> list[Any]:
    return [At(("k", number), number) for number in range(first, stop)]


@pytest.mark.parametrize("interval", ["1 h", ""], ids=["with checkpoints", "without"])
@every_backend
def test_stop_without_drain_keeps_windows_open(backend: str, interval: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    settings = {"execution__checkpointing__interval": interval, "state__backend__type": backend}
    items = phases(clock, [*timed(0, 150), WATERMARK(149)], [*timed(150, 250), WATERMARK(249)])
    job = start(in_windows(environment(tmp_path, 2, clock, **settings), items)).runs(clock)
    path = job.stop()
    assert job.status is JobStatus.FINISHED
    assert job.results == [("k", 0, list(range(100)))]
    resumed = environment(tmp_path, 1, clock, **settings, execution__state_recovery__path=path)
    clock.advance(HOUR)
    assert start(in_windows(resumed, items)).wait() == [
        ("k", 100, list(range(100, 200))),
        ("k", 200, list(range(200, 250))),
    ]


@pytest.mark.parametrize("interval", ["1 h", ""], ids=["with checkpoints", "without"])
def test_stop_with_drain_fires_windows_and_commits(interval: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, execution__checkpointing__interval=interval)
    items = phases(clock, [*timed(0, 150), WATERMARK(149)], timed(150, 250))
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    stream = in_windows(env, items).map(lambda result: f"{result[1]} {len(result[2])}", Types.STRING())
    job = start(stream, sink).runs(clock)
    job.stop(drain=True)
    assert job.status is JobStatus.FINISHED
    assert lines_in(tmp_path / "out") == ["0 100", "100 50"]
    assert [path for path in files_in(tmp_path / "out") if "inprogress" in path] == []


@pytest.mark.parametrize("interval", ["1 h", ""], ids=["with checkpoints", "without"])
def test_stop_without_drain_commits_what_was_before(interval: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, range(100), range(100, 150))

    def build(**overrides: str) -> RunningJob:
        env = environment(tmp_path, 2, clock, execution__checkpointing__interval=interval, **overrides)
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
        return start(source(env, items).rebalance().map(lambda number: f"{number:03}", Types.STRING()), sink)

    path = build().runs(clock).stop()
    before = lines_in(tmp_path / "out")
    clock.advance(HOUR)
    build(execution__state_recovery__path=path).wait()
    assert lines_in(tmp_path / "out") == [f"{number:03}" for number in range(150)]
    assert before == [f"{number:03}" for number in range(100)] or before == []


class Ticking(KeyedProcessFunction):
    """Has a timer in processing time that is due when the job stops."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        service = ctx.timer_service()
        service.register_processing_time_timer(service.current_processing_time() + 1000)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key()


def test_timers_due_after_a_stop_fire_in_the_job_that_goes_on(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 5), [])

    def build(**overrides: str) -> RunningJob:
        env = environment(tmp_path, 2, clock, **overrides)
        return start(source(env, items).key_by(lambda pair: pair[0]).process(Ticking()).uid("ticking"))

    first = build().runs(clock)
    path = first.stop()
    clock.advance(HOUR)
    second = build(execution__state_recovery__path=path)
    assert sorted(first.results + second.wait()) == [f"k{key}" for key in range(5)]


def test_a_job_is_stopped_while_records_wait(tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    items = phases(clock, pairs(0, 3000), [])

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(tmp_path, width, clock, **overrides)
        return start(number_pairs(env, items), GatedSink("results", gate))

    first = build(2).runs(clock)
    stopped = first.handle.stop_with_savepoint(False, str(tmp_path / "s"))
    other = first.handle.trigger_savepoint(str(tmp_path / "s"))
    with pytest.raises(CheckpointError, match="stopped"):
        other.result(120)
    gate.open()
    path = stopped.result(120)
    first.wait()
    clock.advance(HOUR)
    second = build(3, execution__state_recovery__path=path)
    assert Counter(first.results + second.wait()) == numbered(pairs(0, 3000))


# -- restore ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [False, True], ids=["canonical", "native"])
@every_backend
def test_from_one_parallelism_to_another(backend: str, native: bool, tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200), pairs(200, 300))
    results: list[Any] = []
    path = ""
    for width in (1, 3, 2):
        env = environment(tmp_path, width, clock, state__backend__type=backend, execution__state_recovery__path=path)
        job = start(number_pairs(env, items)).runs(clock)
        if width == 2:
            job.wait()
        else:
            path = job.stop(native=native)
            clock.advance(HOUR)
        results += job.results
    assert Counter(results) == numbered(pairs(0, 300))


def test_canonical_savepoints_go_from_one_backend_to_the_other(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200), pairs(200, 300))
    results: list[Any] = []
    path = ""
    for backend in ("hashmap", "rocksdb", "hashmap"):
        env = environment(tmp_path, 2, clock, state__backend__type=backend, execution__state_recovery__path=path)
        job = start(number_pairs(env, items)).runs(clock)
        if len(results) == 200:
            job.wait()
        else:
            path = job.stop()
            clock.advance(HOUR)
        results += job.results
    assert Counter(results) == numbered(pairs(0, 300))


def test_a_native_savepoint_is_only_for_its_own_backend(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), [])
    path = start(number_pairs(environment(tmp_path, 2, clock), items)).runs(clock).stop(native=True)
    env = environment(
        tmp_path,
        2,
        clock,
        state__backend__type="rocksdb",
        execution__state_recovery__path=path,
        restart_strategy__type="none",
    )
    error = refused(lambda: start(number_pairs(env, items)))
    assert error.operator == "KeyedProcess"
    assert "hashmap" in error.message
    assert "rocksdb" in error.message


def refused(submit: Any, kind: type[Exception] = StateIncompatibleError) -> Any:
    """What submitting a job raises, before anything runs."""
    with pytest.raises(kind) as raised:
        submit()
    return raised.value


@every_backend
def test_no_claim_leaves_the_savepoint_alone(backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200), [ABORT(), *pairs(200, 300)])
    settings = {"state__backend__type": backend, "execution__checkpointing__data_inline_threshold": "0 b"}
    path = start(number_pairs(environment(tmp_path, 2, clock, **settings), items)).runs(clock).stop()
    before = {file: Path(file).read_bytes() for file in files_in(path)}
    assert len(before) > 1
    clock.advance(HOUR)
    env = environment(tmp_path, 2, clock, **settings, **RETAINED, execution__state_recovery__path=path)
    job = start(number_pairs(env, items)).runs(clock)
    first = metadata_of(job.checkpoint())
    assert first.kind is SnapshotKind.FULL_CHECKPOINT
    assert not any(file.startswith(path) for file in first.files())
    assert metadata_of(job.checkpoint()).kind is SnapshotKind.CHECKPOINT
    assert {file: Path(file).read_bytes() for file in files_in(path)} == before
    shutil.rmtree(path)
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 300)) - numbered(pairs(0, 100))
    assert job.attempt == 1


def test_no_claim_and_a_failure_before_the_first_checkpoint(tmp_path: Path) -> None:
    """The job starts from the savepoint again; its first checkpoint is a full one still."""
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), [ABORT(), *pairs(100, 200)], [])
    path = start(number_pairs(environment(tmp_path, 2, clock), items)).runs(clock).stop()
    clock.advance(HOUR)
    job = start(number_pairs(environment(tmp_path, 2, clock, execution__state_recovery__path=path), items))
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    assert metadata_of(job.checkpoint()).kind is SnapshotKind.FULL_CHECKPOINT
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 200)) - numbered(pairs(0, 100))
    assert Path(path).exists()


@every_backend
@pytest.mark.parametrize("given", ["savepoint", "native", "checkpoint"])
def test_claim_takes_over_and_deletes(given: str, backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200), [ABORT(), *pairs(200, 300)])
    settings = {"state__backend__type": backend, "execution__checkpointing__data_inline_threshold": "0 b"}
    job = start(number_pairs(environment(tmp_path, 2, clock, **settings, **RETAINED), items)).runs(clock)
    if given == "checkpoint":
        path = job.checkpoint()
        job.cancel()
    else:
        path = job.stop(native=given == "native")
    given_files = files_in(path) | metadata_of(path).files()
    clock.advance(HOUR)
    env = environment(tmp_path, 2, clock, **settings, **CLAIM, execution__state_recovery__path=path)
    second = start(number_pairs(env, items)).runs(clock)
    for _ in range(4):
        needed = metadata_of(second.checkpoint()).files()
    assert not Path(path, "_metadata").exists(), "it was subsumed"
    eventually(lambda: {file for file in given_files if Path(file).exists()} <= needed)
    clock.advance(HOUR)
    assert Counter(second.wait()) == numbered(pairs(0, 300)) - numbered(pairs(0, 100))
    assert second.attempt == 1
    assert not any(Path(file).exists() for file in given_files), "nothing outlives the job that owns it"
    assert files_in(tmp_path / "checkpoints") == set()


def test_claim_and_no_checkpoint_of_its_own(tmp_path: Path) -> None:
    """A job without checkpoints that ends owns its savepoint, and deletes it as it would its own."""
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    path = start(number_pairs(environment(tmp_path, 2, clock), items)).runs(clock).stop()
    clock.advance(HOUR)
    env = environment(tmp_path, 2, clock, **CLAIM, execution__state_recovery__path=path, **WITHOUT_CHECKPOINTS)
    start(number_pairs(env, items)).wait()
    assert not Path(path).exists()


def test_state_of_an_operator_that_is_gone(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    path = start(number_pairs(environment(tmp_path, 2, clock), items)).runs(clock).stop()
    clock.advance(HOUR)

    def without(**overrides: str) -> RunningJob:
        env = environment(tmp_path, 2, clock, execution__state_recovery__path=path, **overrides)
        return start(source(env, items).map(lambda pair: pair))

    error = refused(without)
    assert error.operator == "KeyedProcess"
    assert "'numbered'" in error.message
    assert "ignore-unclaimed-state" in error.hint
    job = without(execution__state_recovery__ignore_unclaimed_state="true")
    assert sorted(job.wait()) == sorted(pairs(100, 200))


def test_a_savepoint_can_be_moved(tmp_path: Path) -> None:
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    settings = {"execution__checkpointing__data_inline_threshold": "0 b"}
    path = start(number_pairs(environment(tmp_path, 2, clock, **settings), items)).runs(clock).stop()
    moved = shutil.move(path, tmp_path / "elsewhere")
    clock.advance(HOUR)
    env = environment(tmp_path, 2, clock, execution__state_recovery__path=str(moved))
    assert Counter(start(number_pairs(env, items)).wait()) == numbered(pairs(0, 200)) - numbered(pairs(0, 100))


def test_dispose(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **RETAINED)
    job = start(number_pairs(env, phases(clock, pairs(0, 100), []))).runs(clock)
    savepoint, checkpoint = job.savepoint(), job.checkpoint()
    storage.dispose(savepoint)
    assert not Path(savepoint).exists()
    storage.check_files(metadata_of(checkpoint))
    job.cancel()
    storage.dispose(checkpoint)
    assert files_in(tmp_path / "checkpoints") == set()


def test_a_savepoint_path_that_does_not_exist(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    env = environment(tmp_path, 1, execution__state_recovery__path=missing)
    error = refused(lambda: start(number_pairs(env, [])), CheckpointStorageError)
    assert error.path == missing
    assert not (tmp_path / "checkpoints").exists(), "nothing was begun"


def test_uids_survive_a_changed_program(tmp_path: Path) -> None:
    """Operators are known by their uids, wherever they now stand and whatever is beside them."""
    clock = clock_of_today()
    items = phases(clock, pairs(0, 100), pairs(100, 200))
    path = start(number_pairs(environment(tmp_path, 2, clock), items)).runs(clock).stop()
    clock.advance(HOUR)
    probe = Probe()
    env = environment(tmp_path, 2, clock, execution__state_recovery__path=path)
    stream = source(env, items).map(lambda pair: pair).rebalance().filter(lambda _: True)
    changed = stream.key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered").name("other").map(probe.pass_on)
    assert sorted((key, value) for key, value, _ in start(changed).wait()) == sorted(pairs(100, 200))
    assert {number for _, _, number in probe.values} == set(range(20, 40))
