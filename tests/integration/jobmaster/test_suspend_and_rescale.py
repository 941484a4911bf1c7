"""Jobs that are suspended with their JobManager, and jobs that are given another parallelism while they run."""

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError, JobCancelledError, NotEnoughSlotsError
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.jobmaster.model.events import RescaleJob
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.testing import eventually, test_environment
from firesteel.testing.in_process import InProcessExecutor

SECONDS = 60


class WithSlots(InProcessExecutor):
    """Jobs share the slots of an allocator."""

    def __init__(self, allocator):
        super().__init__()
        self._allocator = allocator

    def _create_host(self, job_graph):
        host, clocked = super()._create_host(job_graph)
        return QueuedHost(host, self._allocator, job_graph.job_id), clocked


def endless(tmp_path, parallelism=1, allocator=None, **settings):
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "50 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        **{key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()},
    }.items():
        configuration.set_string(key, value)
    env = test_environment(parallelism, configuration)
    if allocator is not None:
        env._executor = WithSlots(allocator)
    numbers = env.from_sequence(0, 1 << 60).name("numbers")
    numbers.key_by(lambda value: value % 7).map(lambda value: value).name("keyed").sink_to(CollectSink("unread"))
    client = env.execute_async("endless")
    runner = client._handle
    eventually(lambda: runner.checkpoint_statistics()["counts"]["completed"] > 0, SECONDS)
    return runner


def test_a_suspended_job_keeps_its_checkpoints(tmp_path):
    runner = endless(tmp_path)
    runner.suspend().result(SECONDS)
    assert runner.status() is JobStatus.SUSPENDED
    with pytest.raises(JobCancelledError, match="suspended"):
        runner.result_future().result()
    assert list((tmp_path / "checkpoints").glob("*/chk-*/_metadata"))


def test_a_cancelled_one_does_not(tmp_path):
    runner = endless(tmp_path)
    runner.cancel().result(SECONDS)
    assert not list((tmp_path / "checkpoints").glob("*/chk-*/_metadata"))


def test_a_job_goes_on_with_another_parallelism(tmp_path):
    runner = endless(tmp_path)
    source, keyed = (vertex.id for vertex in runner.job_graph.vertices)
    runner.rescale({keyed: 3})
    eventually(lambda: runner.status() is JobStatus.RUNNING and runner.snapshot.attempt == 1, SECONDS)
    graph = runner.snapshot.execution_graph
    assert [len(graph.vertices[vertex]) for vertex in (source, keyed)] == [1, 3]
    assert runner.checkpoint_statistics()["counts"]["restored"] == 1
    assert runner.snapshot.exception_history == ()
    runner.cancel().result(SECONDS)


def test_an_attempt_that_starts_before_the_job_is_rescaled_has_the_graph_it_has_slots_for(tmp_path, monkeypatch):
    runner = endless(tmp_path)
    asked = []
    put = runner._events.put
    monkeypatch.setattr(runner._events, "put", lambda e: asked.append(e) if isinstance(e, RescaleJob) else put(e))
    before = runner.job_graph, runner._job
    rescaled = runner.rescale({runner.job_graph.vertices[1].id: 3})
    again = runner.rescale({runner.job_graph.vertices[0].id: 2})
    assert (runner.job_graph, runner._job) == before
    assert [vertex.parallelism for vertex in rescaled.vertices] == [1, 3]
    assert [vertex.parallelism for vertex in again.vertices] == [2, 3], "the second one knows of the first"
    for event in asked:
        put(event)
    eventually(lambda: runner.status() is JobStatus.RUNNING and runner.snapshot.attempt > 0, SECONDS)
    eventually(lambda: [vertex.parallelism for vertex in runner._job.job_graph.vertices] == [2, 3], SECONDS)
    runner.cancel().result(SECONDS)


@pytest.mark.parametrize(("parallelism", "message"), [(0, "at least 1"), (129, "at most 128")])
def test_a_parallelism_that_cannot_be(tmp_path, parallelism, message):
    runner = endless(tmp_path)
    try:
        with pytest.raises(InvalidProgramError, match=message):
            runner.rescale({runner.job_graph.vertices[1].id: parallelism})
        with pytest.raises(InvalidProgramError, match="no vertex"):
            runner.rescale({"nobody": 1})
    finally:
        runner.cancel().result(SECONDS)


def parallelism_of(runner):
    return [len(tasks) for tasks in runner.snapshot.execution_graph.vertices.values()]


@pytest.mark.parametrize("is_fixed", [True, False])
def test_more_slots_than_there_are_is_refused_and_the_job_keeps_running(tmp_path, is_fixed):
    allocator = SlotAllocator(lambda: 3, is_fixed=is_fixed)
    allocator.request("another job", 1)
    runner = endless(tmp_path, allocator=allocator, restart_strategy__type="none")
    vertices = [vertex.id for vertex in runner.job_graph.vertices]
    kept = []
    with pytest.raises(NotEnoughSlotsError, match="needs 3 slots but the cluster has 2") as refused:
        runner.rescale(dict.fromkeys(vertices, 3), kept.append)
    assert "keeps its present parallelism" in refused.value.hint
    assert not kept, "the next leader does not know of it either"
    completed = runner.checkpoint_statistics()["counts"]["completed"]
    eventually(lambda: runner.checkpoint_statistics()["counts"]["completed"] > completed, SECONDS)
    assert (runner.status(), runner.snapshot.attempt) == (JobStatus.RUNNING, 0)
    runner.rescale(dict.fromkeys(vertices, 2))
    eventually(lambda: runner.status() is JobStatus.RUNNING and parallelism_of(runner) == [2, 2], SECONDS)
    runner.cancel().result(SECONDS)


def test_slots_that_come_when_they_are_asked_for_are_waited_for(tmp_path):
    total = [1]
    allocator = SlotAllocator(lambda: total[0], is_fixed=False, grows_on_demand=True, look_s=0.01)
    runner = endless(tmp_path, allocator=allocator, restart_strategy__type="none")
    runner.rescale(dict.fromkeys([vertex.id for vertex in runner.job_graph.vertices], 2))
    eventually(lambda: runner.status() is JobStatus.CREATED and runner.snapshot.attempt == 1, SECONDS)
    total[0] = 2
    eventually(lambda: runner.status() is JobStatus.RUNNING and parallelism_of(runner) == [2, 2], SECONDS)
    runner.cancel().result(SECONDS)


def test_slots_that_go_before_the_job_has_restarted_are_waited_for(tmp_path, monkeypatch):
    """The resource shrinks between the check and the restart."""
    total = [2]
    allocator = SlotAllocator(lambda: total[0], is_fixed=False, look_s=0.01)
    runner = endless(tmp_path, allocator=allocator, restart_strategy__type="none")
    asked = []
    put = runner._events.put
    monkeypatch.setattr(runner._events, "put", lambda e: asked.append(e) if isinstance(e, RescaleJob) else put(e))
    runner.rescale(dict.fromkeys([vertex.id for vertex in runner.job_graph.vertices], 2))
    total[0] = 1
    eventually(lambda: allocator.total == 1, SECONDS)
    put(*asked)
    eventually(lambda: runner.status() is JobStatus.CREATED and runner.snapshot.attempt == 1, SECONDS)
    total[0] = 2
    eventually(lambda: runner.status() is JobStatus.RUNNING and parallelism_of(runner) == [2, 2], SECONDS)
    runner.cancel().result(SECONDS)
