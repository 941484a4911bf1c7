"""Generated programs under faults on two JobManagers: the parts of the kit, and a short run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.source import InputStatus
from firesteel.testing.programs.running.split_source import Position, Split
from firesteel.testing.programs.running.store_sink import StoreSink, _Batch
from tests.support.chaos.cluster.cluster import DIRECTORY, EMBEDDED, STANDALONE, ZOOKEEPER
from tests.support.chaos.cluster.faults import ClusterInjector, NotReached
from tests.support.chaos.cluster.plan import cluster_kinds, draw_faults
from tests.support.chaos.cluster.programs import Gate, GatedReader, GatedSource, ProgramJob, draw_jobs

ROOT = Path(__file__).parents[2]


class FakeContext:
    execution = PIPELINED

    def send_split_request(self) -> None:
        pass


class FakeOutput:
    def __init__(self) -> None:
        self.records: list[Any] = []
        self.released: list[str] = []

    def collect(self, _split: str, values: list[Any], _timestamps: Any) -> None:
        self.records += values

    def release_split(self, split: str) -> None:
        self.released.append(split)


def read(reader: GatedReader, output: FakeOutput, until: Callable[[], bool]) -> InputStatus:
    while True:
        status = reader.poll_next(output, 100)  # type: ignore[arg-type]
        if until():
            return status


def test_a_source_gives_no_more_than_the_gate_allows(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    gate.open(0.5)
    records = tuple((0, number, number) for number in range(100))
    source = GatedSource((Split(records), Split(())), gate=str(gate.path))
    reader = GatedReader(FakeContext(), source)  # type: ignore[arg-type]
    reader.add_splits([Position("0"), Position("1")])
    reader.notify_no_more_splits()
    output = FakeOutput()
    read(reader, output, lambda: len(output.records) >= 50)
    for _ in range(10):
        assert reader.poll_next(output, 100) is InputStatus.NOTHING_AVAILABLE  # type: ignore[arg-type]
    assert len(output.records) == 50
    assert output.released == [], "also a split without records ends only when all is allowed"
    gate.open(1.0)
    assert read(reader, output, lambda: len(output.released) == 2) is InputStatus.END_OF_INPUT
    assert len(output.records) == 100


def test_the_same_seed_draws_the_same_programs(tmp_path: Path) -> None:
    jobs = draw_jobs(7, 3, tmp_path)
    assert list(map(str, jobs)) == list(map(str, draw_jobs(7, 3, tmp_path)))
    assert [job.phase.execution for job in jobs].count("epochs") == 1
    assert all(job.results for job in jobs)


def commit(job: ProgramJob, records: dict[int, list[Any]], name: str) -> None:
    for sink, values in records.items():
        batch = _Batch(name, pickle.dumps(values))
        StoreSink(str(job.directory / f"sink-{sink}")).create_committer().commit([batch, batch])


def settled_job(directory: Path) -> ProgramJob:
    jobs = draw_jobs(7, 5, directory)
    return next(
        job
        for job in jobs
        if all(job.program.types()[sink.inputs[0]].at(sink.parallelism).settled for sink in job.program.sinks)
    )


def test_lost_and_doubled_records_are_noticed(tmp_path: Path) -> None:
    job = settled_job(tmp_path)
    expected = dict(job._expected)
    commit(job, expected, "all")
    assert job.surplus(0.0) == []
    assert job.check() == []
    sink, records = next((sink, records) for sink, records in expected.items() if records)
    commit(job, {sink: records[:1]}, "again")
    (told,) = job.surplus(0.0)
    assert repr(records[0]) in told
    assert "committed in again" in told
    assert "too many" in job.check()[0]
    (job.directory / f"sink-{sink}" / "again").unlink()
    (job.directory / f"sink-{sink}" / "all").unlink()
    assert "missing" in job.check()[0]


def test_every_kind_of_fault_can_be_made(tmp_path: Path) -> None:
    injector = ClusterInjector(None)  # type: ignore[arg-type]
    for spark in (EMBEDDED, STANDALONE):
        for store in (DIRECTORY, ZOOKEEPER):
            kinds = cluster_kinds(spark, store)
            named = {kind for kind in kinds if not kind.startswith(("crash at ", "error at "))}
            assert named <= set(injector._methods)
            faults = draw_faults(7, len(kinds), kinds)
            assert [fault.kind for fault in faults] == kinds
            assert faults == draw_faults(7, len(kinds), kinds)


class FakeZooKeeper:
    is_running = True

    def kill(self) -> None:
        assert self.is_running
        self.is_running = False

    def pause(self) -> None:
        assert self.is_running

    resume = pause

    def start(self) -> None:
        self.is_running = True


def test_faults_of_zookeeper_may_overlap() -> None:
    zookeeper, later = FakeZooKeeper(), []
    run = SimpleNamespace(
        cluster=SimpleNamespace(zookeeper=zookeeper), struck=lambda: None, later=lambda _s, action: later.append(action)
    )
    injector = ClusterInjector(run)  # type: ignore[arg-type]
    stopped, killed = draw_faults(7, 2, ["ZooKeeper is stopped", "ZooKeeper is killed"])
    injector.inject(stopped)
    injector.inject(killed)
    for fault in (stopped, killed):
        with pytest.raises(NotReached, match="still down"):
            injector.inject(fault)
    for action in later:
        action()
    assert zookeeper.is_running


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_programs_survive_the_end_of_their_leader(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--programs=1", "--faults=1", "--seed=7", f"--directory={tmp_path}"]
    command += ["--kinds=kill the leader"]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "faults: 1" in ended.stdout
