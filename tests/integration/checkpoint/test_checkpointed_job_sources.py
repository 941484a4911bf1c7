"""Checkpoints while sources are idle, held back or at their end, and the last checkpoint of a job that ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, JobStatus
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.testing import ABORT, EOF, eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    Numbered,
    RunningJob,
    clock_of_today,
    environment,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    numbered,
    pairs,
    phases,
    source,
    start,
)

UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true"}
every_barrier = pytest.mark.parametrize("barriers", [{}, UNALIGNED], ids=["aligned", "unaligned"])


def states_of(job: RunningJob, name: str) -> list[str]:
    """The states of the tasks of a vertex."""
    vertices = job.handle._master.execution_graph.vertices()
    return [vertex.current.state.name for vertex in vertices if name in vertex.task_name]


def file_sink(directory: Path) -> FileSink:
    return FileSink.for_row_format(str(directory), Encoder.simple_string_encoder()).build()


def lines_in(directory: Path) -> list[str]:
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return sorted(line for path in files for line in path.read_text().splitlines())


# -- sources that give nothing ------------------------------------------------------------------------


@every_barrier
def test_a_source_without_records(barriers: dict[str, str], tmp_path: Path) -> None:
    env = environment(tmp_path, 2, **barriers)
    job = start(source(env, [], [], bounded=False).key_by(lambda pair: pair[0]).process(Numbered()))
    assert [Path(job.checkpoint()).name for _ in range(3)] == ["chk-1", "chk-2", "chk-3"]
    job.cancel()
    assert job.results == []


@every_barrier
def test_a_source_that_pauses_and_readers_without_splits(barriers: dict[str, str], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 3, clock, **barriers)
    items = phases(clock, pairs(0, 10), [ABORT(), *pairs(10, 20)])
    job = start(source(env, items, bounded=False).key_by(lambda pair: pair[0]).process(Numbered()))
    job.runs(clock).checkpoint()
    eventually(lambda: sorted(states_of(job, "source")) == ["FINISHED", "FINISHED", "RUNNING"])
    assert metadata_of(job.checkpoint()).operator("source").finished == {1, 2}  # type: ignore[union-attr]
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock).checkpoint()
    eventually(lambda: Counter(job.results) == numbered(pairs(0, 20)))
    job.cancel()


def test_an_aligned_barrier_waits_behind_records_that_are_held_back(tmp_path: Path) -> None:
    gate = Gate()
    env = environment(tmp_path, 2)
    stream = source(env, pairs(0, 3000), [], bounded=False).key_by(lambda pair: pair[0]).process(Numbered())
    job = start(stream, GatedSink("results", gate)).runs()
    checkpoint = job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    assert not checkpoint.done()
    gate.open()
    assert Path(checkpoint.result(120)).name == "chk-1"
    job.checkpoint()
    eventually(lambda: Counter(job.results) == numbered(pairs(0, 3000)))
    job.cancel()


# -- sources that end ---------------------------------------------------------------------------------


@every_barrier
def test_one_source_ends_while_another_goes_on(barriers: dict[str, str], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **barriers)
    short = source(env, pairs(0, 50), uid="short")
    long = source(env, phases(clock, pairs(50, 100), pairs(100, 150), [ABORT(), *pairs(150, 200)]), uid="long")
    job = start(short.union(long).key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered"))
    job.runs(clock)
    assert states_of(job, "short") == ["RUNNING", "RUNNING"], "they wait for a checkpoint"
    assert metadata_of(job.checkpoint()).operator("short").finished == {0, 1}  # type: ignore[union-attr]
    eventually(lambda: states_of(job, "short") == ["FINISHED", "FINISHED"])
    clock.advance(HOUR)
    later = metadata_of(job.checkpoint())
    assert later.operator("short").finished == {0, 1}  # type: ignore[union-attr]
    assert later.operator("long").finished == {1}  # type: ignore[union-attr]
    clock.advance(HOUR)
    assert sorted((key, value) for key, value, _ in job.wait()) == sorted(pairs(0, 200))
    assert sorted((key, number) for key, _, number in job.results) == sorted(
        (f"k{key}", number) for key in range(5) for number in range(40)
    )
    assert job.attempt == 1


def test_some_readers_of_a_source_end_before_others(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    long = phases(clock, pairs(50, 100), [ABORT(), *pairs(100, 150)])
    stream = source(env, pairs(0, 50), long)
    job = start(stream.key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered"))
    job.runs(clock).checkpoint()
    eventually(lambda: sorted(states_of(job, "source")) == ["FINISHED", "RUNNING"])
    job.checkpoint()
    savepoint = job.savepoint()
    clock.advance(HOUR)
    assert sorted((key, value) for key, value, _ in job.wait()) == sorted(pairs(0, 150))
    assert len({(key, number) for key, _, number in job.results}) == 150
    again = environment(tmp_path, 3, clock, execution__state_recovery__path=savepoint)
    stream = source(again, pairs(0, 50), long)
    restored = start(stream.key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered"))
    assert sorted((key, value) for key, value, _ in restored.wait()) == sorted(pairs(100, 150))
    assert {number for _, _, number in restored.results} == set(range(20, 30))


@every_barrier
def test_all_of_a_pipeline_has_ended_while_another_goes_on(barriers: dict[str, str], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **barriers)
    short = source(env, pairs(0, 50), uid="short").key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered")
    short.sink_to(file_sink(tmp_path / "short"))
    long = source(env, phases(clock, range(10), [*range(10, 20)], [ABORT(), *range(20, 30)]), uid="long")
    job = start(long.rebalance().map(lambda number: number + 0))
    job.runs(clock).checkpoint()
    eventually(lambda: states_of(job, "KeyedProcess") == ["FINISHED", "FINISHED"])
    eventually(lambda: len(lines_in(tmp_path / "short")) == 50)
    clock.advance(HOUR)
    job.checkpoint()
    clock.advance(HOUR)
    assert sorted(job.wait()) == list(range(30))
    assert len(lines_in(tmp_path / "short")) == 50
    assert job.attempt == 1


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint"])
@every_barrier
def test_a_task_has_not_read_all_when_its_producers_have_ended(
    barriers: dict[str, str], kind: str, tmp_path: Path
) -> None:
    """The coordinator triggers such a task itself: what waits at its input belongs to the checkpoint."""
    clock = clock_of_today()
    gate = Gate()

    items = phases(clock, [], [ABORT(), 1])

    def build(env: Any) -> RunningJob:
        short = source(env, range(100), uid="short").rebalance().map(lambda number: number + 0).name("slow").uid("slow")
        source(env, items, uid="long").sink_to(GatedSink("other", gate)).uid("other")
        return start(short, GatedSink("results", gate))

    # without periodic checkpoints tasks end as soon as they can
    settings = {} if barriers else {"execution__checkpointing__interval": ""}
    env = environment(tmp_path, 2, clock, **barriers, **settings)
    job = build(env)
    job.runs(clock)
    if barriers:
        job.handle.trigger_checkpoint().result(120)
    eventually(lambda: states_of(job, "short") == ["FINISHED", "FINISHED"])
    assert states_of(job, "slow") == ["RUNNING", "RUNNING"]
    if kind == "checkpoint" and barriers:
        job.handle.trigger_checkpoint().result(120)
        gate.open()
        clock.advance(HOUR)
        assert sorted(job.wait()) == list(range(100))
        assert job.attempt == 1
        return
    waiting = job.handle.trigger_savepoint(str(tmp_path / "savepoint"))
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    # a slot is told to trigger all its tasks at once: when those of the long source have been, so have the others
    eventually(lambda: job.statistics["history"][0]["num_acknowledged_subtasks"] == 4)
    gate.open()
    path = waiting.result(120)
    if barriers:
        job.checkpoint()  # a savepoint by itself gives nothing out
        eventually(lambda: len(job.results) == 100)
    job.cancel()
    restored = build(environment(tmp_path, 2, clock, execution__state_recovery__path=path))
    clock.advance(HOUR)
    held = sorted([*restored.wait(), *job.results])
    assert held == list(range(100)), "each record either before the savepoint or after it"


@every_barrier
def test_a_pipeline_that_ends_drains_before_it_stops(barriers: dict[str, str], tmp_path: Path) -> None:
    """Stop with drain triggers a task whose producers have ended; it must read what waits first."""
    clock = clock_of_today()
    gate = Gate()
    settings = {} if barriers else {"execution__checkpointing__interval": ""}
    env = environment(tmp_path, 2, clock, **barriers, **settings)
    short = source(env, range(100), uid="short").rebalance().map(lambda number: number + 0).name("slow").uid("slow")
    source(env, phases(clock, [], [1]), uid="long").sink_to(GatedSink("other", gate)).uid("other")
    job = start(short, GatedSink("results", gate)).runs(clock)
    if barriers:
        job.handle.trigger_checkpoint().result(120)
    eventually(lambda: states_of(job, "short") == ["FINISHED", "FINISHED"])
    stopped = job.handle.stop_with_savepoint(True, str(tmp_path / "savepoint"))
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    gate.open()
    stopped.result(120)
    assert sorted(job.wait()) == list(range(100))
    assert job.status is JobStatus.FINISHED


# -- the end of a job ---------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2])
@every_barrier
def test_the_last_checkpoint_commits_the_last_output(
    barriers: dict[str, str], parallelism: int, tmp_path: Path
) -> None:
    env = environment(tmp_path, parallelism, **barriers)
    stream = source(env, range(100)).rebalance().map(lambda number: f"{number:03}")
    job = start(stream, file_sink(tmp_path / "out"))
    job.wait()
    assert lines_in(tmp_path / "out") == [f"{number:03}" for number in range(100)]
    assert job.completed == 1, "the interval is an hour: it was taken for the sake of the end"
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize("parallelism", [1, 2])
def test_without_checkpoints_the_end_commits(parallelism: int, tmp_path: Path) -> None:
    env = environment(tmp_path, parallelism, execution__checkpointing__interval="")
    job = start(source(env, range(100)).rebalance().map(lambda number: f"{number:03}"), file_sink(tmp_path / "out"))
    job.wait()
    assert lines_in(tmp_path / "out") == [f"{number:03}" for number in range(100)]
    assert job.completed == 0
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("items", [[], [EOF()]])
def test_empty_input(items: list[Any], parallelism: int, tmp_path: Path) -> None:
    env = environment(tmp_path, parallelism)
    stream = source(env, items).key_by(lambda pair: pair[0]).process(Numbered()).map(str)
    job = start(stream, file_sink(tmp_path / "out"))
    job.wait()
    assert lines_in(tmp_path / "out") == []
    assert job.status is JobStatus.FINISHED


def test_a_failure_after_the_end_of_the_input(tmp_path: Path) -> None:
    """All records are processed, but the job fails before the last checkpoint: they come again, once."""
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    first = source(env, pairs(0, 50), uid="first")
    second = source(env, phases(clock, [ABORT(), EOF()]), uid="second")
    job = start(first.union(second).key_by(lambda pair: pair[0]).process(Numbered()))
    assert Counter(job.wait()) == numbered(pairs(0, 50))
    assert job.attempt == 1


def test_checkpoints_that_end_with_the_first_task(tmp_path: Path) -> None:
    """checkpoints-after-tasks-finish off: tasks do not wait, and sinks commit at the end."""
    env = environment(tmp_path, 2, execution__checkpointing__checkpoints_after_tasks_finish="false")
    job = start(source(env, range(100)).rebalance().map(str), file_sink(tmp_path / "out"))
    job.wait()
    assert len(lines_in(tmp_path / "out")) == 100
    assert job.completed == 0
