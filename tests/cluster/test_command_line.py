"""The whole way with the command line alone: a cluster, jobs on it, savepoints, and its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from firesteel.testing import eventually
from tests.support.processes import descendants, is_alive, is_of_worker_daemon
from tests.support.visible_files import visible_lines
from tests.support.wheels import write_wheel

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
DEADLINE_S = 240.0

HEAD = """\
import sys
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import TestingSource
from beside_the_program import Reading, total
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(TestingSource([1, 2, 3], bounded=False), WatermarkStrategy.no_watermarks(), "numbers")
"""
ENDLESS = (
    HEAD
    + """
def late(reading):
    import imported_late
    return imported_late.labelled(reading.value)

numbers.map(Reading).key_by(lambda reading: reading.value % 2).reduce(total).map(late).uid("sums").print()
env.execute("".join(sys.argv[1:]) or "endless")
"""
)
DEPENDENCIES = ("-pyfs", "other", "-pyreq", "requirements.txt#wheels", "-pyarch", "words.zip#data")
SQL = """\
SET 'pipeline.name' = 'readings';
CREATE TABLE readings (
  place STRING, number BIGINT, at_ AS TO_TIMESTAMP_LTZ(number * 100, 3), WATERMARK FOR at_ AS at_
) WITH ('connector' = 'filesystem', 'path' = 'INPUT', 'format' = 'json', 'source.monitor-interval' = '100 ms');
CREATE TABLE totals (op STRING, place STRING, n BIGINT, total BIGINT) WITH (
  'connector' = 'filesystem', 'path' = 'totals', 'format' = 'json',
  'sink.rolling-policy.rollover-interval' = '1 ms', 'sink.rolling-policy.check-interval' = '50 ms');
CREATE TABLE seconds (second_ BIGINT, n BIGINT, places BIGINT)
  WITH ('connector' = 'filesystem', 'path' = 'seconds', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals SELECT * FROM TO_CHANGELOG(input => (
    SELECT place, COUNT(*) AS n, SUM(number) AS total FROM readings GROUP BY place));
  INSERT INTO seconds SELECT MIN(number) / 10, COUNT(*), COUNT(DISTINCT place)
    FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(at_), INTERVAL '1' SECOND)) GROUP BY window_start, window_end;
END
"""
SQL_SETTINGS = {
    "execution.checkpointing.interval": "200 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20",
    "restart-strategy.fixed-delay.delay": "100 ms",
}
FAILING = HEAD + 'numbers.map(lambda n: 1 // (n - 2)).name("divide").print()\nenv.execute("failing")\n'


@dataclass(frozen=True)
class CommandLine:
    """Runs commands as a user does, with state of the test's own."""

    directory: Path
    cluster: int = 0
    """The process of the cluster."""

    def __call__(self, *arguments: str, code: int = 0, within: float = 300) -> str:
        """What a command prints; it must end with the exit code."""
        with self.started(*arguments) as process:
            output, errors = process.communicate(timeout=within)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{output}\n{errors}"
        return output if code == 0 else errors

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs; it is killed at the end if it still does."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self.directory / "state"), "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-m", "firesteel", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=self.directory,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def json(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self(*arguments, "--json"))

    def state_of(self, job: str) -> str:
        """The state of a job."""
        return str(self.json("status", job)["job"]["state"])


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line, with a cluster that runs."""
    directory = tmp_path_factory.mktemp("command line")
    (directory / "endless.py").write_text(ENDLESS)
    (directory / "failing.py").write_text(FAILING)
    (directory / "beside_the_program.py").write_text(
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Reading:\n    value: int\n"
        "def total(a, b):\n    return Reading(a.value + b.value)\n"
    )
    (directory / "late").mkdir()
    (directory / "late" / "imported_late.py").write_text("def labelled(n):\n    return f'sum {n}'\n")
    (directory / "other").mkdir()
    (directory / "other" / "imported_late.py").write_text(
        "import tiny_package\n"
        "def labelled(n):\n    return f'{tiny_package.WORD} {open(\"data/word.txt\").read()} {n}'\n"
    )
    write_wheel(directory / "wheels", "tiny_package", "1.0", "WORD = 'other'\n")
    (directory / "requirements.txt").write_text("tiny_package\n")
    (directory / "impossible.txt").write_text("tiny_package>=2\n")
    with zipfile.ZipFile(directory / "words.zip", "w") as archive:
        archive.writestr("word.txt", "word")
    command = CommandLine(directory)
    started = command.json("cluster", "start", "--port", "0", "--slots", "2", "--timeout", "280")
    family = [psutil.Process(started["pid"])]
    try:
        yield replace(command, cluster=started["pid"])
        family += family[0].children(recursive=True)
        assert len(family) > 1, "the cluster's Spark"
        assert "is stopped" in command("cluster", "stop")
        assert [process for process in family if is_alive(process.pid)] == []
        command("cluster", "status", code=3)
    finally:
        for process in family:
            if is_alive(process.pid) and process.is_running():
                process.kill()


def test_the_life_of_a_job(command: CommandLine) -> None:
    submitted = command("run", "-d", "-pyfs", "late", "endless.py")
    job_id = re.search(r"JobID ([0-9a-f]{32})", submitted)
    assert job_id is not None
    eventually(lambda: command.state_of(job_id[1]) == "RUNNING", timeout=DEADLINE_S)
    eventually(lambda: "sum 4" in printed(command), timeout=DEADLINE_S)
    # beside it, with another module of the same name
    command("run", "-d", *DEPENDENCIES, "endless.py", "other")
    eventually(lambda: "other word 4" in printed(command), timeout=DEADLINE_S)
    command("cancel", "other")
    taken = command("savepoint", "endless", str(command.directory / "savepoints")).strip()
    assert Path(taken.removeprefix("Savepoint completed. Path: "), "_metadata").is_file()
    stopped = command.json("stop", "-p", str(command.directory / "savepoints"), "endless")
    assert stopped["state"] == "FINISHED"
    command("run", "-d", "-pyfs", "late", "-s", stopped["location"], "endless.py")
    eventually(lambda: command.state_of("endless") == "RUNNING", timeout=DEADLINE_S)
    restored = command.json("status", "endless")["checkpoints"]["latest"]["restored"]
    assert restored["external_path"] == stopped["location"]
    assert "is cancelled" in command("cancel", "endless")
    states = [job["state"] for job in command.json("list", "-a")["jobs"] if job["name"] == "endless"]
    assert states == ["FINISHED", "CANCELED"]


def test_the_life_of_a_sql_job(command: CommandLine) -> None:
    """Its workers are killed, it is stopped with a savepoint, and goes on with one subtask instead of two."""
    directory = command.directory / "sql"
    (directory / "input").mkdir(parents=True)
    text = SQL.replace("INPUT", str(directory / "input"))
    (directory / "job.sql").write_text(re.sub(r"'(totals|seconds)'", rf"'{directory}/\1'", text))
    sql = [f"-D{key}={value}" for key, value in SQL_SETTINGS.items()]
    sql = ["sql", *sql, f"-Dexecution.checkpointing.dir={directory}/checkpoints", "-f", str(directory / "job.sql")]
    with command.started(*sql, "-Dparallelism.default=2") as first:
        read(directory, range(200))
        for worker in sql_workers(command):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        read(directory, range(200, 400))
        assert command.json("exceptions", "readings")["exceptionHistory"]["entries"]
        stopped = command.json("stop", "-p", str(directory / "savepoints"), "readings")
        assert first.wait(DEADLINE_S) == 0, "the command ends with the job"
    settings = [f"-Dexecution.state-recovery.path={stopped['location']}", "-Dparallelism.default=1"]
    with command.started(*sql, *settings) as second:
        read(directory, range(400, 603))
        command("stop", "--drain", "-p", str(directory / "savepoints"), "readings")
        assert second.wait(DEADLINE_S) == 0
    seconds = [
        (row["second_"], row["n"], row["places"]) for row in map(json.loads, visible_lines(directory / "seconds"))
    ]
    assert sorted(seconds) == [(second, 10, 7) for second in range(60)] + [(60, 3, 3)]


def read(directory: Path, numbers: range) -> None:
    """Adds a file of readings, and waits until the totals have them."""
    lines = [json.dumps({"place": f"place {number % 7}", "number": number}) + "\n" for number in numbers]
    (directory / "input" / ".new").write_text("".join(lines))
    (directory / "input" / ".new").rename(directory / "input" / str(numbers.start))
    expected: dict[str, tuple[int, int]] = {}
    for number in range(numbers.stop):
        n, total = expected.get(place := f"place {number % 7}", (0, 0))
        expected[place] = n + 1, total + number

    def written() -> bool:
        left: Counter[tuple[Any, ...]] = Counter()
        for op, *row in (json.loads(line).values() for line in visible_lines(directory / "totals")):
            left[tuple(row)] += 1 if op in ("INSERT", "UPDATE_AFTER") else -1
        return {row: count for row, count in left.items() if count} == {
            (place, *values): 1 for place, values in expected.items()
        }

    eventually(written, timeout=DEADLINE_S, interval=0.2)


def sql_workers(command: CommandLine) -> set[int]:
    """The Python workers of the cluster."""
    family = descendants(command.cluster)
    daemons = {pid for pid in family if is_of_worker_daemon(pid)}
    return {worker for daemon in daemons for worker in descendants(daemon)}


def printed(command: CommandLine) -> str:
    """What the functions of all jobs have printed."""
    manager = next((process for process in command.json("logs") if process != "jobmanager"), None)
    assert manager is not None, "no TaskManager yet"
    return command("logs", manager, "--stdout")


def test_a_failing_job_names_the_line(command: CommandLine) -> None:
    error = command("run", "failing.py", code=1)
    assert "ZeroDivisionError" in error
    assert "operator: divide" in error
    assert re.search(rf"failing\.py:{len(HEAD.splitlines()) + 1}\b", error)
    assert "ZeroDivisionError" in command("exceptions", "failing")


def test_requirements_that_cannot_be_installed(command: CommandLine) -> None:
    error = command("run", "-pyreq", "impossible.txt#wheels", "failing.py", code=1)
    assert "No matching distribution found for tiny_package>=2" in error
    assert "ZeroDivisionError" not in error


def test_a_program_without_a_job(command: CommandLine) -> None:
    (command.directory / "nothing.py").write_text(HEAD + "numbers.print()\n")
    assert "ended without submitting a job" in command("run", "nothing.py", code=1)


def test_the_cluster_is_found_and_described(command: CommandLine) -> None:
    status = command.json("cluster", "status")
    assert (status["running"], status["slots-total"]) == (True, 2)
    assert "was already running" in command("cluster", "start")
    assert "jobmanager.log" in command("logs")
    assert "leads" in command("logs", "jobmanager")
    command("list", "-m", "localhost:1", code=3)


def test_an_application_ends_with_its_jobs(command: CommandLine) -> None:
    """The program runs in a JobManager of its own, whose exit code says how its jobs ended."""
    program = command.directory / "application.py"
    program.write_text(
        HEAD.replace("bounded=False", "bounded=True")
        + "bad = int(sys.argv[1])\n"
        + "readings = numbers.map(Reading).map(lambda reading: 6 // (reading.value - bad))\n"
        + "def word(n):\n    import imported_late\n    return imported_late.labelled(n)\n"
        + "readings.map(word).print()\n"
        + 'env.execute("application")\n'
    )
    command("run-application", "--foreground", "--port", "0", "--slots", "1", *DEPENDENCIES, "application.py", "0")
