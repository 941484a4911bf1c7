"""Programs that run in the JobManager, jobs that are rescaled there, and what a JobManager is told to be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.application import DispatcherExecutor
from firesteel.cluster.ha.creation import create_services
from firesteel.cluster.launch import Launch, LaunchError
from firesteel.cluster.rest.handlers import rescaling
from firesteel.cluster.rest.request import RestError, RestRequest
from firesteel.common.errors import InvalidProgramError
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.rest.jobs import ParallelismBounds, VertexRequirements
from firesteel.testing import eventually
from tests.support.jobs.dispatched_jobs import Cluster, MemoryStore, bounded, endless, is_running, job_graph_of, numbers

CHECKPOINTED = {"execution.checkpointing.interval": "20 ms"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(MemoryStore(), tmp_path, slots=SlotAllocator(lambda: 4, is_fixed=True))
    yield cluster
    cluster.dispatcher.close(60.0)


def execute(cluster: Cluster, build: Any, executor: DispatcherExecutor, name: str = "a job") -> Any:
    return executor.execute(job_graph_of(build, CHECKPOINTED, name), Configuration())


class TestApplication:
    def test_jobs_run_and_are_awaited(self, cluster: Cluster) -> None:
        executor = DispatcherExecutor(cluster.dispatcher, "mine", "program.py")
        client = execute(cluster, bounded, executor)
        assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
        assert executor.await_jobs()
        assert [job.status for job in executor.jobs] == [JobStatus.FINISHED]

    def test_one_that_fails_is_told(self, cluster: Cluster) -> None:
        executor = DispatcherExecutor(cluster.dispatcher, "mine", "program.py")
        failing = job_graph_of(lambda env: numbers(env, [0], bounded=True).map(lambda n: 1 // n).print())
        executor.execute(failing, Configuration())
        assert not executor.await_jobs()

    def test_a_program_that_runs_again_finds_its_jobs(self, cluster: Cluster, tmp_path: Path) -> None:
        first = DispatcherExecutor(cluster.dispatcher, "mine", "program.py")
        done, going = execute(cluster, bounded, first), execute(cluster, endless, first)
        done.get_job_execution_result().result()
        eventually(lambda: is_running(first.jobs[1]))
        cluster.dispatcher.close(60.0)
        again = Cluster(cluster.store, tmp_path)
        try:
            again.dispatcher.recover()
            second = DispatcherExecutor(again.dispatcher, "mine", "program.py")
            assert execute(again, bounded, second).get_job_id() == done.get_job_id()
            assert execute(again, endless, second).get_job_id() == going.get_job_id()
            assert second.jobs[0].status is JobStatus.FINISHED
            eventually(lambda: is_running(second.jobs[1]))
            assert again.started == ["a job"]
        finally:
            again.dispatcher.close(60.0)

    def test_a_job_that_has_ended_long_ago_is_not_run_again(self, tmp_path: Path) -> None:
        settings = {"jobstore.expiration-time": "0", "high-availability.storageDir": str(tmp_path)}
        configuration, started = Configuration.from_dict(settings), []
        for _ in range(2):
            services = create_services(configuration, tmp_path, keeps_results=True)
            leadership = services.await_leadership("localhost:1", pytest.fail)
            cluster = Cluster(leadership.store, tmp_path, settings)  # type: ignore[arg-type]
            try:
                cluster.dispatcher.recover()
                executor = DispatcherExecutor(cluster.dispatcher, "mine", "program.py")
                execute(cluster, bounded, executor).get_job_execution_result().result(60)
                eventually(lambda cluster=cluster: not cluster.dispatcher.jobs())
                assert executor.await_jobs()
            finally:
                cluster.dispatcher.close(60.0)
                services.close()
            started += cluster.started
        assert started == ["a job"]

    def test_programs_of_other_clusters_have_other_jobs(self, cluster: Cluster) -> None:
        ids = {
            execute(cluster, bounded, DispatcherExecutor(cluster.dispatcher, name, "p.py")).get_job_id()
            for name in "ab"
        }
        assert len(ids) == 2


def keyed(environment: Any) -> None:
    numbers(environment, [1, 2, 3]).key_by(lambda n: n).map(lambda n: n).print()


class TestRescaling:
    def handler(self, cluster: Cluster) -> Any:
        return rescaling.routes(cluster.dispatcher)[0].handler

    def request(self, job: Any, parallelism: dict[str, int]) -> RestRequest[Any]:
        body = {vertex: VertexRequirements(ParallelismBounds(1, wanted)) for vertex, wanted in parallelism.items()}
        return RestRequest({"jobid": job.job_id}, {}, body)

    def running(self, cluster: Cluster, settings: dict[str, str] | None = None) -> tuple[Any, list[str]]:
        job = cluster.submit(keyed, settings=CHECKPOINTED if settings is None else settings)
        eventually(lambda: is_running(job))
        if settings is None:
            eventually(lambda: job.runner.checkpoint_statistics()["counts"]["completed"] > 0)
        return job, [vertex.id for vertex in job.runner.job_graph.vertices]

    def test_a_job_goes_on_with_it_and_so_does_the_next_leader(self, cluster: Cluster, tmp_path: Path) -> None:
        job, (source, sink) = self.running(cluster)
        assert self.handler(cluster)(self.request(job, {source: 1, sink: 3})) == {}
        eventually(lambda: is_running(job) and job.runner.snapshot.attempt == 1)
        assert [vertex.parallelism for vertex in job.runner.snapshot.job_graph.vertices] == [1, 3]
        cluster.dispatcher.close(60.0)
        again = Cluster(cluster.store, tmp_path)
        try:
            again.dispatcher.recover()
            recovered = again.dispatcher.job(job.job_id)
            eventually(lambda: is_running(recovered))
            assert [vertex.parallelism for vertex in recovered.runner.job_graph.vertices] == [1, 3]
            assert recovered.runner.checkpoint_statistics()["counts"]["restored"] == 1
        finally:
            again.dispatcher.close(60.0)

    def test_the_parallelism_that_a_job_has_restarts_nothing(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job, (source, sink) = self.running(cluster)
        monkeypatch.setattr(cluster.dispatcher, "rescale", lambda *_: pytest.fail("the job is restarted"))
        present = {vertex.id: vertex.parallelism for vertex in job.runner.job_graph.vertices}
        assert present.keys() == {source, sink}
        assert self.handler(cluster)(self.request(job, present)) == {}

    @pytest.mark.parametrize(
        ("wanted", "status", "message"),
        [
            ({"sink": 3}, 400, "missing"),
            ({"source": 1, "sink": 0}, 400, "does not hold"),
            ({"source": 1, "sink": 999}, 400, "at most 128"),
            ({"source": 1, "sink": 9}, 409, "needs 9 slots but the cluster has 4"),
            ({"source": 1, "sink": 2, "f" * 32: 1}, 400, "no vertex"),
        ],
    )
    def test_what_cannot_be(self, cluster: Cluster, wanted: dict[str, int], status: int, message: str) -> None:
        job, ids = self.running(cluster)
        names = dict(zip(("source", "sink"), ids, strict=True))
        with pytest.raises(RestError, match=message) as error:
            self.handler(cluster)(self.request(job, {names.get(name, name): n for name, n in wanted.items()}))
        assert error.value.status == status
        assert job.runner.snapshot.attempt == 0

    def test_without_checkpoints(self, cluster: Cluster) -> None:
        job, (source, sink) = self.running(cluster, {"restart-strategy.type": "none"})
        with pytest.raises(RestError, match="requires pipelined execution with checkpoints"):
            self.handler(cluster)(self.request(job, {source: 1, sink: 2}))

    def test_after_the_end(self, cluster: Cluster) -> None:
        job = cluster.submit(bounded)
        job.result_future().result(60)
        with pytest.raises(RestError, match="FINISHED") as error:
            self.handler(cluster)(self.request(job, {}))
        assert error.value.status == 409


class TestLaunch:
    def read(self, tmp_path: Path, told: Any) -> Launch:
        path = tmp_path / "launch.json"
        path.write_text(told if isinstance(told, str) else json.dumps(told))
        return Launch.read(str(path))

    def test_it_says_what_to_be(self, tmp_path: Path) -> None:
        told = {"mode": "application", "program": "p.py", "arguments": ["-x"], "configuration": {"a": "b"}}
        launch = self.read(tmp_path, told)
        assert (launch.mode, launch.program, launch.arguments) == ("application", "p.py", ("-x",))
        assert launch.configuration.to_dict() == {"a": "b"}

    @pytest.mark.parametrize(
        "told",
        [
            "{",
            "[]",
            {"mode": "session"},
            {"mode": "other", "configuration": {}},
            {"mode": "application", "configuration": {}},
        ],
    )
    def test_what_makes_no_sense(self, tmp_path: Path, told: Any) -> None:
        with pytest.raises(LaunchError):
            self.read(tmp_path, told)


def test_a_graph_that_does_not_fit_its_edges() -> None:
    from firesteel.graph.rescaling import with_parallelism

    graph = job_graph_of(lambda env: numbers(env, [1]).map(lambda n: n).start_new_chain().print())
    with pytest.raises(InvalidProgramError, match="same parallelism"):
        with_parallelism(graph, {graph.vertices[1].id: 2})
