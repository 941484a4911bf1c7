"""JobManager processes of one cluster, and jobs that tell whether anything was lost or done twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firesteel.cluster.jobmanager import AGAIN
from firesteel.common import Configuration, Row, Types
from firesteel.common.serialization import Encoder
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.rest.client import RestClient
from firesteel.rest.submission import SUBMIT_JOB, JobSubmitRequest
from firesteel.rest.token import TOKEN_FILE_NAME, read_token
from firesteel.runtime.dependencies.collection import dependency_artifacts
from firesteel.table import Schema, StreamTableEnvironment
from firesteel.testing import eventually
from firesteel.testing.services.processes import die_with_parent
from tests.support.jobs.endless import endless
from tests.support.processes import command_line, descendants, is_alive
from tests.support.visible_files import visible_lines

ROOT = Path(__file__).parents[3]
START_S = 360.0
REQUEST_S = 30.0
"""Then it is asked again: it may have been stopped meanwhile."""
KEYS = 20


class JobManagerProcess:
    """One JobManager of the cluster whose directory is given."""

    def __init__(self, directory: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None):
        self.directory = directory
        configuration = {"rest.bind-port": "0", "cluster.directory": str(directory), **settings}
        launch = directory / f"launch-{len(list(directory.glob('launch-*')))}.json"
        launch.write_text(json.dumps({"mode": "session", "configuration": configuration}))
        self.output = launch.with_suffix(".txt")
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "firesteel.cluster.main", str(launch)],
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
                preexec_fn=die_with_parent,
            )
        self.pid = self._process.pid
        self._family: set[int] = set()

    def url(self) -> str:
        """Where it listens, once it does."""

        def read() -> str:
            if self._process.poll() is not None:
                raise RuntimeError(f"JobManager {self.pid} has ended: {self.output.read_text()[-3000:]}")
            entry = self.directory / "jobmanagers" / f"{self.pid}.json"
            assert entry.exists(), f"JobManager {self.pid} does not listen"
            return str(json.loads(entry.read_text())["url"]).rstrip("/")

        return eventually(read, timeout=START_S, interval=0.05)

    def get(self, path: str) -> Any:
        """What it answers itself: None if it does not lead."""
        request = urllib.request.Request(f"{self.url()}{path}")
        try:
            with NO_REDIRECTS.open(request, timeout=REQUEST_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code in (307, 503):
                return None
            raise AssertionError(f"{path}: {error.code} {error.read()[:1000]!r}") from None
        except OSError as error:
            raise AssertionError(f"{path}: {error}") from None

    def has_ended(self) -> bool:
        """Whether its process is over. One that begins anew is not, although it may look like a zombie for a moment."""
        return self._process.poll() is not None

    def is_up(self) -> bool:
        """Whether it says where it listens."""
        return (self.directory / "jobmanagers" / f"{self.pid}.json").exists()

    def begins_anew(self) -> None:
        """It runs, but has not been ready since it began anew."""
        assert is_alive(self.pid), f"JobManager {self.pid} has ended: {self.output.read_text()[-3000:]}"
        assert AGAIN in command_line(self.pid).split(), f"JobManager {self.pid} has not begun anew"

    def leads(self) -> bool:
        """Whether it answers for the cluster."""
        return self.get("/overview") is not None

    def post(self, path: str, body: Any) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url()}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return json.loads(answer.read())

    def signal(self, number: int) -> None:
        self._family |= descendants(self.pid)
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL; waits until all that it has started is gone as well, which nobody tells it to be."""
        self.signal(signal.SIGKILL)
        self._process.wait(120)

    def close(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self._process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        eventually(self.has_left_nothing, timeout=120)

    def has_left_nothing(self) -> None:
        left = [pid for pid in self._family if is_alive(pid)]
        assert not left, f"JobManager {self.pid} has left {left}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


NO_REDIRECTS = urllib.request.build_opener(_NoRedirects)


class Count(KeyedProcessFunction):
    """Each record with its key, and the how-manieth of its key it is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value % KEYS} {count} {value}"


def by_shipped_module(number: int) -> int:
    """Calls a function of a module that only the job's dependencies have."""
    import counted_numbers  # type: ignore[import-not-found]

    return int(counted_numbers.same(number))


def submit_counting(manager: JobManagerProcess, name: str, output: Path, per_second: float = 300) -> str:
    """Submits an endless job that writes what it counts to files, exactly once; its id.

    It needs a module that is shipped with it, and removed from here at once.
    """
    settings = {
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": str(output.parent / "checkpoints"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder())
    module = output.parent / f"modules of {name}" / "counted_numbers.py"
    module.parent.mkdir()
    module.write_text("def same(number):\n    return number\n")
    env.add_python_file(str(module))
    numbers = endless(env, per_second).map(by_shipped_module).uid("shipped")
    lines = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
    lines.sink_to(sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()).uid("files")
    job_id = submit(manager, env, name)
    shutil.rmtree(module.parent)
    return job_id


def submit_sql_counting(manager: JobManagerProcess, name: str, output: Path, per_second: float = 300) -> str:
    """Submits the same job as a query: its rows have the number of rows of their key so far."""
    settings = {
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": str(output.parent / "checkpoints"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    numbers = endless(env, per_second).map(Row, Types.ROW_NAMED(["v"], [Types.LONG()])).uid("numbers")
    schema = Schema.new_builder().column("v", "BIGINT").column_by_expression("p", "PROCTIME()").build()
    t_env.create_temporary_view("numbers", t_env.from_data_stream(numbers, schema))
    counts = t_env.sql_query(
        f"SELECT k, COUNT(*) OVER (PARTITION BY k ORDER BY p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), v "
        f"FROM (SELECT MOD(v, {KEYS}) AS k, v, p FROM numbers)"
    )
    lines = t_env.to_data_stream(counts).map(lambda row: f"{row[0]} {row[1]} {row[2]}").uid("lines")
    sink = FileSink.for_row_format(str(output), Encoder.simple_string_encoder())
    lines.sink_to(sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()).uid("files")
    return submit(manager, env, name)


def submit(manager: JobManagerProcess, env: StreamExecutionEnvironment, name: str) -> str:
    """Sends what was built in an environment to a JobManager; the job's id."""
    executor = _Submission(manager)
    env._executor = executor
    env.execute_async(name)
    return executor.job_id


class _Submission:
    """An executor that sends the job to a JobManager, and stays with it no longer."""

    def __init__(self, manager: JobManagerProcess):
        self._manager = manager
        self.job_id = ""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
        self.job_id = job_graph.job_id
        token = read_token(str(self._manager.directory / TOKEN_FILE_NAME))
        artifacts = dependency_artifacts(configuration)
        request = JobSubmitRequest(
            job_graph_file_name="graph",
            job_jar_file_names=list(artifacts),
            job_id=job_graph.job_id,
            job_name=job_graph.job_name,
        )
        uploads = {"graph": ("graph", serialize_job(job_graph))}
        uploads |= {f"artifact{number}": each for number, each in enumerate(artifacts.items())}
        with RestClient(self._manager.url(), token=token) as client:
            client.call(SUBMIT_JOB, body=request, uploads=uploads)


def check_counts(output: Path) -> int:
    """Every record is there once, and was counted once; how many there are."""
    records = [tuple(map(int, line.split())) for line in visible_lines(output)]
    values = Counter(value for _, _, value in records)
    assert [value for value, times in values.items() if times > 1] == [], "records that were written twice"
    missing = set(range(len(values))) - set(values)
    assert not missing, f"{len(missing)} of {len(values)} records are missing, {min(missing)} is the first"
    by_key = {key: sorted(count for k, count, _ in records if k == key) for key in range(KEYS)}
    for key, counts in by_key.items():
        assert counts == list(range(1, len(counts) + 1)), f"key {key} was miscounted"
    return len(values)
