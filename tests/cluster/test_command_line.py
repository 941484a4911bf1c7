"""The whole way with the command line alone: a cluster, jobs on it, savepoints, and its end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from firesteel.testing import eventually
from tests.support.processes import is_alive
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
FAILING = HEAD + 'numbers.map(lambda n: 1 // (n - 2)).name("divide").print()\nenv.execute("failing")\n'


@dataclass(frozen=True)
class CommandLine:
    """Runs commands as a user does, with state of the test's own."""

    directory: Path

    def __call__(self, *arguments: str, code: int = 0, within: float = 300) -> str:
        """What a command prints; it must end with the exit code."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self.directory / "state"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-m", "firesteel", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.directory,
            timeout=within,
            check=False,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stderr

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
        yield command
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
