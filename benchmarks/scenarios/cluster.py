"""Session clusters: REST under load, how fast jobs are taken, and how fast a standby takes over."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks.runner import Run
from benchmarks.scenarios.job import KeyedSum
from firesteel.client.connection import ClusterAddress, ClusterClient
from firesteel.client.remote_executor import RemoteExecutor
from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError
from firesteel.common.job_client import JobClient
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.rest import checkpoints, jobs

__all__ = ["run"]

T = TypeVar("T")

_START_S = 120.0
_PATIENCE_S = 300.0
_CHECKPOINTS = {"execution.checkpointing.interval": "1 s"}


def run(run: Run) -> dict[str, Any]:
    """One of the measurements below."""
    measure: Callable[[Run], dict[str, Any]] = {
        "load": _load,
        "submission": _submission,
        "many": _many,
        "takeover": _takeover,
    }[run.params["measure"]]
    return measure(run)


@dataclass
class _Cluster:
    """JobManager processes that share a directory, and so are one cluster."""

    directory: Path
    slots: int
    settings: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def job_manager(self) -> Iterator[subprocess.Popen[bytes]]:
        """Starts one more; gives it once it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        launch = self.directory / f"launch-{time.monotonic_ns()}.json"
        configuration = {
            "cluster.directory": str(self.directory),
            "taskmanager.numberOfTaskSlots": str(self.slots),
            "rest.bind-port": "0",
            **self.settings,
        }
        launch.write_text(json.dumps({"mode": "session", "configuration": configuration}))
        process = subprocess.Popen(
            [sys.executable, "-m", "firesteel.cluster.main", str(launch)], start_new_session=True
        )
        try:
            _wait(lambda: self._entry(process).exists(), "a JobManager", _START_S)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _entry(self, process: subprocess.Popen[bytes]) -> Path:
        if process.poll() is not None:
            raise RuntimeError(f"a JobManager ended with exit code {process.returncode}")
        return self.directory / "jobmanagers" / f"{process.pid}.json"

    def client(self, process: subprocess.Popen[bytes]) -> ClusterClient:
        """A client of one JobManager."""
        known = json.loads(self._entry(process).read_text())
        return ClusterAddress((known["url"],), Configuration(), known["token_file"]).client()

    def await_leader(self, process: subprocess.Popen[bytes]) -> ClusterClient:
        """A client of a JobManager, once that leads."""
        client = self.client(process)
        _wait(lambda: _answers(client), "the leader", _START_S)
        return client


def _answers(client: ClusterClient) -> bool:
    try:
        client.call(jobs.JOBS_OVERVIEW)
    except FiresteelError:
        return False
    return True


def _wait(condition: Callable[[], T], what: str, patience_s: float = _PATIENCE_S, pause_s: float = 0.02) -> T:
    deadline = time.monotonic() + patience_s
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience_s:g} s for {what}")
        time.sleep(pause_s)
    return result


def _environment(client: ClusterClient, parallelism: int, settings: dict[str, str]) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env._executor = RemoteExecutor(client, detached=True)
    return env


def _submit_sum(client: ClusterClient, name: str, last: int, parallelism: int, settings: dict[str, str]) -> JobClient:
    env = _environment(client, parallelism, settings)
    pairs = env.from_sequence(0, last).map(lambda x: (x % 1000, x))
    pairs.key_by(lambda pair: pair[0]).process(KeyedSum()).filter(lambda pair: pair[1] < 0).print()
    return env.execute_async(name)


def _submit_tiny(client: ClusterClient, name: str) -> JobClient:
    env = _environment(client, 1, {"execution.runtime-mode": "STREAMING"})
    env.from_collection([1, 2, 3]).map(lambda x: x).print()
    return env.execute_async(name)


def _states(client: ClusterClient) -> dict[str, str]:
    return {job.name: job.state for job in client.call(jobs.JOBS_OVERVIEW).jobs}


# -- REST under load ----------------------------------------------------------------------------------


def _load(run: Run) -> dict[str, Any]:
    """Requests at a fixed rate while a job runs at full speed; its throughput with and without them, in turns."""
    params = run.params
    cluster = _Cluster(Path(run.scratch) / "cluster", 2)
    with cluster.job_manager() as process:
        client = cluster.await_leader(process)
        for number in range(params["jobs"] - 1):
            _submit_tiny(client, f"done {number}")
        _wait(lambda: list(_states(client).values()).count("FINISHED") == params["jobs"] - 1, "the other jobs")
        job = str(_submit_sum(client, "busy", 1 << 60, 1, {}).get_job_id())
        _wait(lambda: _records(client, job) > 0, "the job")
        time.sleep(params["warmup_s"])
        quiet, loaded, figures = [], [], []
        for _ in range(params["turns"]):
            quiet.append(_rate(client, job, lambda: time.sleep(params["seconds"])))
            loaded.append(_rate(client, job, lambda: figures.append(_requests(client, params))))
        quiet.append(_rate(client, job, lambda: time.sleep(params["seconds"])))
        client.call(jobs.JOBS_OVERVIEW)
    around = [(before + after) / 2 for before, after in itertools.pairwise(quiet)]
    return {
        "requests_per_s": median(figure["requests_per_s"] for figure in figures),
        "failed": sum(figure["failed"] for figure in figures),
        **{name: max(figure[name] for figure in figures) for name in ("p50_ms", "p99_ms", "max_ms")},
        "records_per_s": median(quiet),
        "loss_percent": median(100 * (1 - during / alone) for during, alone in zip(loaded, around, strict=True)),
    }


def _requests(client: ClusterClient, params: Any) -> dict[str, Any]:
    host, _, port = client.url.rpartition("//")[2].rpartition(":")
    command = [sys.executable, "-m", "benchmarks.scenarios.http_load", host, port, "/jobs/overview"]
    command += [str(params["rate"]), str(params["seconds"])]
    done = subprocess.run(command, check=True, capture_output=True, timeout=params["seconds"] + 60)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _records(client: ClusterClient, job_id: str) -> int:
    details = client.call(jobs.JOB, {"jobid": job_id})
    return max(vertex.metrics.read_records for vertex in details.vertices)


def _rate(client: ClusterClient, job_id: str, meanwhile: Callable[[], object]) -> float:
    """Records a second of a job while something else happens. Reports come twice a second: both ends wait for one."""

    def fresh() -> tuple[int, float]:
        known = _records(client, job_id)
        _wait(lambda: _records(client, job_id) != known, "a report", pause_s=0.005)
        return _records(client, job_id), time.monotonic()

    before, since = fresh()
    meanwhile()
    after, until = fresh()
    return (after - before) / (until - since)


# -- submission ---------------------------------------------------------------------------------------


def _submission(run: Run) -> dict[str, Any]:
    """From the call of execute_async() until the job is RUNNING with all its tasks, one job after the other."""
    cluster = _Cluster(Path(run.scratch) / "cluster", 4)
    taken = []
    with cluster.job_manager() as process:
        client = cluster.await_leader(process)
        for number in range(run.params["submissions"] + 1):
            began = time.perf_counter()
            job = _submit_sum(client, f"job {number}", 1 << 60, 2, {})
            _wait(lambda job=job: _all_run(client, str(job.get_job_id())), "the job", pause_s=0.005)
            taken.append(time.perf_counter() - began)
            job.cancel().result()
            _wait(lambda number=number: _states(client)[f"job {number}"] == "CANCELED", "the end")
    # the first one starts Spark's Python workers: the cluster is warm after it
    return {"submissions": len(taken) - 1, "cold_s": taken[0], "median_s": median(taken[1:]), "max_s": max(taken[1:])}


def _all_run(client: ClusterClient, job_id: str) -> bool:
    known = {job.jid: job for job in client.call(jobs.JOBS_OVERVIEW).jobs}.get(job_id)
    if known is None or known.state != "RUNNING":
        return False
    details = client.call(jobs.JOB, {"jobid": job_id})
    return all(vertex.status == "RUNNING" for vertex in details.vertices)


def _many(run: Run) -> dict[str, Any]:
    """Many jobs submitted as fast as one client can; all must end well, in the order in which they came.

    There is one slot, so that nothing but the queue decides which job runs next.
    """
    count = run.params["jobs"]
    cluster = _Cluster(Path(run.scratch) / "cluster", 1)
    with cluster.job_manager() as process:
        client = cluster.await_leader(process)
        began = time.perf_counter()
        for number in range(count):
            _submit_tiny(client, f"job {number}")
        submitted = time.perf_counter() - began
        _wait(lambda: list(_states(client).values()).count("FINISHED") == count, "all jobs", 900.0)
        over = time.perf_counter() - began
        started = []
        for job in client.call(jobs.JOBS_OVERVIEW).jobs:
            details = client.call(jobs.JOB, {"jobid": job.jid})
            started.append((int(job.name.split()[1]), details.timestamps.running))
    in_order = [at for _, at in sorted(started)]
    return {
        "jobs": len(started),
        "lost": count - len(started),
        "overtaken": sum(later < earlier for earlier, later in itertools.pairwise(in_order)),
        "submitted_s": submitted,
        "over_s": over,
    }


# -- takeover -----------------------------------------------------------------------------------------


def _takeover(run: Run) -> dict[str, Any]:
    """SIGKILL of the leader, with a standby that waits: until every job runs again from a checkpoint of its own."""
    params = run.params
    cluster = _Cluster(Path(run.scratch) / "cluster", params["jobs"], params["settings"])
    taken = []
    with ExitStack() as stack:
        leader = stack.enter_context(cluster.job_manager())
        client = cluster.await_leader(leader)
        for number in range(params["jobs"]):
            _submit_sum(client, f"job {number}", 1 << 60, 1, _CHECKPOINTS)
        for _ in range(params["kills"]):
            standby = stack.enter_context(cluster.job_manager())
            time.sleep(params["load_s"])  # its Spark has started meanwhile
            _wait(lambda client=client: _all_checkpointed(client), "checkpoints")
            began = time.perf_counter()
            os.kill(leader.pid, signal.SIGKILL)
            leader.wait()
            client = cluster.client(standby)
            _wait(lambda client=client: _answers(client) and _all_resumed(client, params["jobs"]), "the jobs")
            taken.append(time.perf_counter() - began)
            leader = standby
    return {"kills": len(taken), "median_s": median(taken), "max_s": max(taken)}


def _all_checkpointed(client: ClusterClient) -> bool:
    return all(
        client.call(checkpoints.CHECKPOINTS, {"jobid": job.jid}).counts.completed > 1
        for job in client.call(jobs.JOBS_OVERVIEW).jobs
    )


def _all_resumed(client: ClusterClient, count: int) -> bool:
    known = client.call(jobs.JOBS_OVERVIEW).jobs
    return len(known) == count and all(
        _all_run(client, job.jid) and client.call(checkpoints.CHECKPOINTS, {"jobid": job.jid}).counts.restored == 1
        for job in known
    )
