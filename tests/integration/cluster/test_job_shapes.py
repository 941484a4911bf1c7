"""Every answer about jobs has the keys and types that Flink's own clients demand, whatever state the job is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.rest.request import RestError
from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.testing import FakeClock, eventually
from tests.support.jobs.running_jobs import (
    Gate,
    GatedSink,
    Numbered,
    RunningJob,
    clock_of_today,
    environment,
    no_job_goes_on,
    pairs,
    phases,
    source,
    start,
)
from tests.support.rest.flink_shapes import SHAPES
from tests.support.rest.shown_jobs import ShownJob, ShownJobs, check_shape

_ = no_job_goes_on  # a fixture

WITHOUT_VERTICES = [path for path in SHAPES if ":vertexid" not in path and ":checkpointid" not in path]


def _running(tmp_path: Path, clock: FakeClock, **settings: str) -> RunningJob:
    env = environment(tmp_path, 2, clock, **settings)
    stream = source(env, phases(clock, pairs(0, 50), pairs(50, 60)), phases(clock, pairs(60, 90), pairs(90, 95)))
    return start(stream.key_by(lambda pair: pair[0]).process(Numbered()), name="shown").runs(clock)


def _ask_everything(shown: ShownJobs, job: RunningJob, checkpoint_id: int | None) -> dict[str, list[Any]]:
    """All answers about a job, by path; those about vertices for each of them."""
    answers: dict[str, list[Any]] = {}
    for path, shape in SHAPES.items():
        names: dict[str, Any] = {"subtaskindex": 1, "attempt": job.attempt, "checkpointid": checkpoint_id}
        if ":checkpointid" in path and checkpoint_id is None:
            continue
        for vertex in job.handle.snapshot.execution_graph.vertices:
            answer = shown.get(path, vertexid=vertex, **names)
            check_shape(answer, shape, path)
            answers.setdefault(path, []).append(answer)
            if path.endswith("metrics"):
                wanted = [metric["id"] for metric in answer]
                check_shape(shown.get(path, vertexid=vertex, query={"get": wanted}, **names), shape, path)
    return answers


def test_a_job_that_runs(tmp_path: Path) -> None:
    clock = clock_of_today()
    job = _running(tmp_path, clock)
    job.checkpoint()
    shown = ShownJobs(ShownJob(job.handle))
    vertex = next(iter(job.handle.snapshot.execution_graph.vertices))
    clock.advance(5_000)
    eventually(lambda: shown.get("/jobs/:jobid/vertices/:vertexid/metrics", vertexid=vertex) != [])
    answers = _ask_everything(shown, job, 1)
    assert answers["/jobs/:jobid"][0]["state"] == "RUNNING"
    assert answers["/jobs/:jobid"][0]["end-time"] == -1
    assert answers["/jobs/:jobid/execution-result"][0] == {"status": {"id": "IN_PROGRESS"}}


def test_a_job_that_has_finished(tmp_path: Path) -> None:
    clock = clock_of_today()
    job = _running(tmp_path, clock)
    job.stop()
    shown = ShownJobs(ShownJob(job.handle))
    answers = _ask_everything(shown, job, 1)
    details = answers["/jobs/:jobid"][0]
    assert details["state"] == "FINISHED"
    assert details["end-time"] == details["timestamps"]["FINISHED"] > details["start-time"]
    assert details["duration"] == details["end-time"] - details["start-time"]
    assert answers["/jobs/:jobid/checkpoints"][0]["latest"]["savepoint"]["checkpoint_type"] == "SYNC_SAVEPOINT"
    result = answers["/jobs/:jobid/execution-result"][0]
    assert result["status"] == {"id": "COMPLETED"}
    assert result["job-execution-result"]["application-status"] == "SUCCEEDED"


def test_a_job_that_was_cancelled_and_one_that_never_took_a_checkpoint(tmp_path: Path) -> None:
    clock = clock_of_today()
    job = _running(tmp_path, clock, execution__checkpointing__interval="")
    job.cancel()
    answers = _ask_everything(ShownJobs(ShownJob(job.handle)), job, None)
    assert answers["/jobs/:jobid"][0]["vertices"][0]["status"] == "CANCELED"
    assert answers["/jobs/:jobid/execution-result"][0]["job-execution-result"]["application-status"] == "CANCELED"
    assert answers["/jobs/:jobid/checkpoints/config"][0]["interval"] == 2**63 - 1
    assert answers["/jobs/:jobid/checkpoints"][0]["history"] == []


def test_a_job_in_its_second_attempt(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    gate = Gate()

    def fail_while_closed(pair: Any) -> Any:
        if not gate.is_open and pair[1] == 20:
            gate.open()
            raise ValueError("first time")
        return pair

    stream = source(env, phases(clock, pairs(0, 50), pairs(50, 60)))
    job = start(stream.key_by(lambda pair: pair[0]).process(Numbered()).map(fail_while_closed), name="again")
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    shown = ShownJobs(ShownJob(job.handle))
    _ask_everything(shown, job, None)
    vertex = list(job.handle.snapshot.execution_graph.vertices)[1]
    path = "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex/attempts/:attempt"
    first = [shown.get(path, vertexid=vertex, subtaskindex=index, attempt=0) for index in range(2)]
    assert sorted(attempt["status"] for attempt in first) == ["CANCELED", "FAILED"]
    for attempt in first:
        check_shape(attempt, SHAPES[path])
        assert attempt["endpoint"] == "localhost:0", "where it ran is known after it has ended"
        assert attempt["end-time"] >= attempt["start-time"] > 0
    assert shown.get(path, vertexid=vertex, subtaskindex=0, attempt=1)["status"] == "RUNNING"
    with pytest.raises(RestError) as absent:
        shown.get(path, vertexid=vertex, subtaskindex=0, attempt=2)
    assert absent.value.status == 404


@pytest.mark.parametrize("status", [JobStatus.INITIALIZING, JobStatus.FAILED, JobStatus.FINISHED, JobStatus.CANCELED])
def test_a_job_that_never_got_a_graph(status: JobStatus) -> None:
    failure = TaskFailure("no such module", "ModuleNotFoundError", user_file="job.py", user_line=3)
    shown = ShownJobs(ShownJob(status=status, failure=failure if status is JobStatus.FAILED else None))
    for path in WITHOUT_VERTICES:
        check_shape(shown.get(path), SHAPES[path], path)
    assert shown.get("/jobs/:jobid")["plan"]["nodes"] == []
    assert shown.get("/jobs/:jobid")["vertices"] == []
    assert shown.get("/jobs/overview")["jobs"][0]["tasks"]["total"] == 0
    entries = shown.get("/jobs/:jobid/exceptions")["exceptionHistory"]["entries"]
    if status is JobStatus.FAILED:
        assert "job.py:3" in entries[0]["stacktrace"]
        assert "taskName" not in entries[0]
    else:
        assert entries == []
    with pytest.raises(RestError) as absent:
        shown.get("/jobs/:jobid/vertices/:vertexid", vertexid="a" * 32)
    assert absent.value.status == 404


def test_every_endpoint_is_checked() -> None:
    """What has no shape is Firesteel's own."""
    ours = {route.endpoint.path for route in ShownJobs().routes if route.endpoint.is_ours}
    paths = {route.endpoint.path for route in ShownJobs().routes}
    assert paths - set(SHAPES) == ours == {"/jobs/:jobid/diagnosis", "/metrics"}


def test_every_vertex_of_the_plan_is_there(tmp_path: Path) -> None:
    """Flink's dashboard fails on a plan with a vertex that it is told nothing of."""
    clock = clock_of_today()
    job = _running(tmp_path, clock)
    details = ShownJobs(ShownJob(job.handle)).get("/jobs/:jobid")
    assert [node["id"] for node in details["plan"]["nodes"]] == [vertex["id"] for vertex in details["vertices"]]
    assert sum(details["status-counts"].values()) == len(details["vertices"]) == 2


def test_a_checkpoint_names_every_vertex_even_those_that_did_nothing(tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate(is_open=True)
    env = environment(tmp_path, 2, clock)
    stream = source(env, phases(clock, pairs(0, 50), pairs(50, 60)))
    job = start(stream.key_by(lambda pair: pair[0]).process(Numbered()), GatedSink("results", gate)).runs(clock)
    job.checkpoint()
    shown = ShownJobs(ShownJob(job.handle))
    vertices = set(job.handle.snapshot.execution_graph.vertices)
    checkpoint = shown.get("/jobs/:jobid/checkpoints/details/:checkpointid", checkpointid=1)
    assert set(checkpoint["tasks"]) == vertices
    assert shown.get("/jobs/:jobid/checkpoints")["history"][0]["tasks"] == {}
    for vertex in vertices:
        path = "/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid"
        part = shown.get(path, checkpointid=1, vertexid=vertex)
        assert [subtask["status"] for subtask in part["subtasks"]] == ["completed"] * part["num_subtasks"]
    with pytest.raises(RestError) as absent:
        shown.get("/jobs/:jobid/checkpoints/details/:checkpointid", checkpointid=77)
    assert absent.value.status == 404
