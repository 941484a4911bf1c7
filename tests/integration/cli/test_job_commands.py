"""The commands that look at jobs of a cluster and change them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from firesteel.cli.main import main
from firesteel.client.progress import duration_text
from firesteel.cluster.dispatcher.managed_job import ManagedJob
from firesteel.cluster.ha.services import JobSubmission
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.job_client import JobClient
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.testing import TestingSource, eventually
from tests.support.rest.cluster_in_process import InProcessCluster


class _Submit:
    """Gives the jobs of a program straight to the Dispatcher."""

    def __init__(self, cluster: InProcessCluster):
        self._cluster = cluster
        self.job: ManagedJob | None = None

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        job_id = self._cluster.dispatcher.submit(
            JobSubmission(job_graph.job_id, job_graph.job_name, serialize_job(job_graph))
        )
        self.job = self._cluster.dispatcher.job(job_id)
        return None  # type: ignore[return-value]


def start(cluster: InProcessCluster, name: str = "endless", *, fails: bool = False, **settings: str) -> ManagedJob:
    """A job that runs until it is told to end, or fails at once."""
    given = {f"execution.checkpointing.{key}": value for key, value in settings.items()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    env._executor = executor = _Submit(cluster)
    items: list[Any] = ["x"] if fails else ["1", "2"]
    numbers = env.from_source(TestingSource(items, bounded=False), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(lambda text: int(text)).name("parse").key_by(lambda n: n).map(lambda n: n).name("keep").print()
    env.execute_async(name)
    job = executor.job
    assert job is not None
    wanted = "FAILED" if fails else "RUNNING"
    eventually(lambda: job.status.name == wanted)
    if not fails:
        runner = job.running()
        eventually(lambda: runner._master.checkpoints.is_running)
    return job


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    assert main(list(arguments)) == code
    printed = capsys.readouterr()
    return printed.out if code == 0 else printed.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(run(capsys, *arguments, "--json"))


def test_list(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no jobs" in run(capsys, "list")
    job, failed = start(cluster, "one"), start(cluster, "two", fails=True)
    assert [line.split()[0] for line in run(capsys, "list").splitlines()] == ["JobID", job.job_id]
    assert failed.job_id in run(capsys, "list", "-a")
    assert "no scheduled jobs" in run(capsys, "list", "-s")
    told = run_json(capsys, "list", "-a")["jobs"]
    assert [(each["jid"], each["name"], each["state"]) for each in told] == [
        (job.job_id, "one", "RUNNING"),
        (failed.job_id, "two", "FAILED"),
    ]
    assert [each["jid"] for each in run_json(capsys, "list", "-r")["jobs"]] == [job.job_id]


def test_jobs_are_named_by_id_its_beginning_or_name(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job, other = start(cluster, "one"), start(cluster, "two")
    for named in (job.job_id, job.job_id.upper(), job.job_id[:20], "one"):
        assert run_json(capsys, "status", named)["job"]["jid"] == job.job_id
    again = start(cluster, "two", fails=True)
    assert run_json(capsys, "status", "two")["job"]["jid"] == other.job_id  # the one that runs
    third = start(cluster, "two")
    error = run(capsys, "status", "two", code=1)
    assert all(each.job_id in error for each in (other, third))
    assert again.job_id not in error
    assert "no job 'three'" in run(capsys, "cancel", "three", code=1)
    assert "no job" in run(capsys, "cancel", "0" * 32, code=1)


def test_status(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    job = start(cluster)
    shown = run(capsys, "status", "endless")
    assert re.search(rf"job +endless \({job.job_id}\)", shown)
    assert "RUNNING for" in shown
    assert re.search(r"vertex .*busy .*in/s", shown)
    assert re.search(r"Source: numbers -> parse +RUNNING +1", shown)
    failed = start(cluster, "bad", fails=True)
    assert f"firesteel exceptions {failed.job_id}" in run(capsys, "status", "bad")


def test_a_job_that_waits_says_for_what(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "slots", SlotAllocator(lambda: 2, is_fixed=False))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    env._executor = _Submit(cluster)
    env.from_collection([1]).map(lambda n: n).set_parallelism(3).key_by(lambda n: n).map(lambda n: n).print()
    env.execute_async("wide")
    expected = re.compile(r"^slots +The job waits for slots: it requests 3, and 2 of 2 are free\.$", re.MULTILINE)
    eventually(lambda: expected.search(run(capsys, "status", "wide")) is not None)


def test_a_job_that_could_not_be_prepared_has_no_table(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = cluster.dispatcher.submit(JobSubmission("ab" * 16, "garbled", b"no graph"))
    eventually(lambda: cluster.dispatcher.job(job_id).status.name == "FAILED")
    shown = run(capsys, "status", "garbled")
    assert "FAILED for" in shown
    assert "vertex" not in shown


def test_exceptions(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    start(cluster)
    assert run(capsys, "exceptions", "endless") == "Job 'endless' has had no failures.\n"
    start(cluster, "bad", fails=True)
    shown = run(capsys, "exceptions", "bad")
    assert "ValueError: invalid literal" in shown
    assert "test_job_commands.py" in shown
    entries = run_json(capsys, "exceptions", "bad")["exceptionHistory"]["entries"]
    assert entries[0]["exceptionName"] == "ValueError"


def test_metrics(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    start(cluster)
    eventually(lambda: "numRecordsOut" in run(capsys, "metrics", "endless"))

    def counted() -> bool:
        told = run_json(capsys, "metrics", "endless", "numRecordsOut", "--vertex", "numbers")["metrics"]
        return [(each["subtask"], each["value"]) for each in told] == [("0", "2")]

    eventually(counted)
    assert re.search(
        r"Source: numbers.* +0 +numRecordsOut +2$", run(capsys, "metrics", "endless", "numRecordsOut"), re.MULTILINE
    )
    assert "has no such metric" in run(capsys, "metrics", "endless", "numUnicorns", code=1)
    assert main(["metrics", "endless", "numRecords*", "numUnicorns"]) == 0
    assert "no such metric: numUnicorns\n" in capsys.readouterr().err
    assert "has no vertex 'unicorn'" in run(capsys, "metrics", "endless", "--vertex", "unicorn", code=1)


def test_cancel(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = start(cluster)
    assert run(capsys, "cancel", "endless") == f"Job {job.job_id} is cancelled.\n"
    assert job.status.name == "CANCELED"
    assert run(capsys, "cancel", job.job_id) == f"Job {job.job_id} is cancelled.\n"  # as Flink: it stays so
    failed = start(cluster, "bad", fails=True)
    assert "FAILED already" in run(capsys, "cancel", failed.job_id, code=1)
    job = start(cluster, "kept")
    shown = run(capsys, "cancel", "kept", "-s", str(tmp_path))
    assert re.match(
        rf"Savepoint completed\. Path: \S*{tmp_path}/savepoint-\S+\nJob {job.job_id} is cancelled\.\n", shown
    )


def test_savepoints(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = start(cluster)
    shown = run(capsys, "savepoint", "endless", str(tmp_path / "of job"))
    path = shown.removeprefix("Savepoint completed. Path: ").strip()
    assert Path(path.removeprefix("file:")).is_dir()
    assert job.status.name == "RUNNING"
    told = run_json(capsys, "savepoint", "endless", str(tmp_path), "-type", "native")
    assert Path(told["location"].removeprefix("file:"), "_metadata").is_file()
    assert re.fullmatch(
        r"[0-9a-f]{32}", run_json(capsys, "savepoint", job.job_id, str(tmp_path), "-detached")["request-id"]
    )
    assert run(capsys, "savepoint", "-d", path) == f"Savepoint {path} is deleted.\n"
    assert not Path(path.removeprefix("file:")).exists()
    assert "no checkpoint or savepoint" in run(capsys, "savepoint", "-d", path, code=1)
    assert "execution.checkpointing.savepoint-dir" in run(capsys, "savepoint", "endless", code=1)
    assert "No job given" in run(capsys, "savepoint", "--json", code=2)


def test_stop(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = start(cluster)
    shown = run(capsys, "stop", "-p", str(tmp_path), "endless")
    assert re.fullmatch(rf"Savepoint completed\. Path: \S*{tmp_path}/savepoint-\S+\n", shown)
    assert job.status.name == "FINISHED"
    assert "FINISHED" in run(capsys, "stop", "-p", str(tmp_path), job.job_id, code=1)
    start(cluster, "again")
    assert run_json(capsys, "stop", "--drain", "-p", str(tmp_path), "again")["state"] == "FINISHED"


def test_checkpoint(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    start(cluster)
    assert "takes no checkpoints" in run(capsys, "checkpoint", "endless", code=1)


@pytest.mark.parametrize("wanted", ["", "--full", "--incremental"])
def test_a_checkpoint_is_of_the_kind_that_was_asked_for(
    wanted: str, cluster: InProcessCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(cluster, interval="1 h", dir=str(tmp_path / "checkpoints"))
    answer = run_json(capsys, "checkpoint", *filter(None, [wanted]), "endless")
    assert answer["checkpoint-id"] == 1
    full = wanted == "--full"
    assert storage.load(answer["location"]).kind is SnapshotKind("full-checkpoint" if full else "checkpoint")
    shown = run(capsys, "checkpoint", *filter(None, [wanted]), "endless")
    assert re.fullmatch(rf"Checkpoint 2 completed\. Path: \S*{tmp_path}/checkpoints/\S+/chk-2\n", shown)


def test_rescale(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    start(cluster)
    assert "is being rescaled to parallelism 3" in run(capsys, "rescale", "endless", "-p", "3", "-d")
    bounds = {
        vertex: (wanted.parallelism.lower_bound, wanted.parallelism.upper_bound)
        for vertex, wanted in cluster.rescaled[0].items()
    }
    assert len(bounds) == 2
    assert set(bounds.values()) == {(1, 3)}
    assert "does not run with parallelism 3 after 0.1 s; its state is RUNNING" in run(
        capsys, "rescale", "endless", "-p", "3", "--timeout", "0.1", code=1
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["status", "x"],
        ["cancel", "x"],
        ["stop", "x"],
        ["savepoint", "x"],
        ["checkpoint", "x"],
        ["rescale", "x", "-p", "2"],
        ["metrics", "x"],
        ["exceptions", "x"],
        ["logs"],
        ["cluster", "stop"],
    ],
)
def test_without_a_cluster(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    error = run(capsys, *arguments, code=3)
    assert "No cluster is running on this machine" in error
    assert "Hint: " in error


def test_durations() -> None:
    assert [duration_text(ms) for ms in (0, 59_999, 60_000, 3_600_000, 86_400_000)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "1 h 00 min",
        "1 d 00 h",
    ]
