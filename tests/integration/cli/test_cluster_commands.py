"""``firesteel cluster``: starts a process, waits for it, says why not, and ends it with all it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from firesteel.cli.main import main, parser
from firesteel.cli.terminal.job_manager import _warnings
from firesteel.client import cluster_processes
from firesteel.testing import eventually
from tests.support.rest.cluster_in_process import InProcessCluster

JOB_MANAGER = """\
import http.server, json, os, subprocess, sys, threading, time
from pathlib import Path

told = json.loads(Path(sys.argv[1]).read_text())
behaviour = told["configuration"].get("test.behaviour", "")
if behaviour == "fails":
    print("firesteel: Port 8081 of localhost is taken.\\nHint: Choose another.", flush=True)
    sys.exit(1)
directory = Path(told["configuration"]["cluster.directory"])
(directory / "token").write_text("0123456789abcdef0123456789abcdef")
(directory / "token").chmod(0o600)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = json.dumps({"taskmanagers": 1, "slots-total": 4, "slots-available": 4, "jobs-running": 0,
            "jobs-finished": 0, "jobs-cancelled": 0, "jobs-failed": 0, "flink-version": "x", "flink-commit": "x",
            "jobs": []}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
entry = {"pid": os.getpid(), "address": "", "url": f"http://localhost:{server.server_address[1]}",
         "started_at": int(time.time() * 1000), "mode": told["mode"], "token_file": str(directory / "token")}
import signal
if behaviour == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    def end(*_):
        child.kill(); child.wait()
        (directory / "jobmanagers" / f"{os.getpid()}.json").unlink(missing_ok=True)
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
print(json.dumps({"child": child.pid, "told": told, "session": os.getsid(0)}), flush=True)
if behaviour != "silent":
    # the last thing it does: whoever finds it may ask it, read its output or end it
    (directory / "jobmanagers").mkdir(exist_ok=True)
    (directory / "entry").write_text(json.dumps(entry))
    (directory / "entry").rename(directory / "jobmanagers" / f"{os.getpid()}.json")
server.serve_forever()
"""

Start = Callable[..., int]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def start(tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts clusters whose JobManager is a script of the test's."""
    (tmp_path / "job_manager_of_the_test.py").write_text(JOB_MANAGER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(cluster_processes, "JOB_MANAGER", "job_manager_of_the_test")

    others = set(psutil.Process().children(recursive=True))  # servers that other tests share

    def run(*options: str, behaviour: str = "") -> int:
        return main(["cluster", "start", "--directory", str(directory), "-D", f"test.behaviour={behaviour}", *options])

    yield run
    for process in set(psutil.Process().children(recursive=True)) - others:
        with suppress(psutil.NoSuchProcess):
            process.kill()
        process.wait()


def output_of(directory: Path) -> dict[str, object]:
    lines = (directory / "log" / "jobmanager.out").read_text().splitlines()
    return dict(json.loads(lines[-1]))


def stop(directory: Path, *options: str) -> int:
    return main(["cluster", "stop", "--directory", str(directory), *options])


def test_start_status_stop(start: Start, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--directory", str(directory)]
    assert main(["cluster", "status", *where]) == 3
    assert "is not running" in capsys.readouterr().out
    assert start("--port", "8099", "--slots", "3", "--host", "0.0.0.0", "--master", "local[3]") == 0
    shown = capsys.readouterr().out
    assert "is running: http://localhost:" in shown
    assert str(directory / "token") in shown
    assert f"firesteel cluster stop --directory {directory}" in shown
    said = output_of(directory)
    assert said["session"] != os.getsid(0)
    told = said["told"]
    assert isinstance(told, dict)
    assert told["mode"] == "session"
    assert {key: told["configuration"][key] for key in told["configuration"] if key != "test.behaviour"} == {
        "cluster.directory": str(directory),
        "rest.port": "8099",
        "taskmanager.numberOfTaskSlots": "3",
        "rest.bind-address": "0.0.0.0",
        "spark.master": "local[3]",
    }
    assert [path.stat().st_mode & 0o077 for path in (directory / "launch").iterdir()] == [0]
    assert main(["cluster", "status", *where, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["running"], status["slots-total"]) == (True, 4)
    assert [each["role"] for each in status["job-managers"]] == ["leader"]
    assert stop(directory) == 0
    assert "is stopped" in capsys.readouterr().out
    eventually(lambda: not psutil.pid_exists(int(str(said["child"]))))
    assert main(["cluster", "status", *where, "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"running": False}


def test_one_that_runs_is_left_alone(start: Start, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert start("--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert (first["already-running"], again["already-running"]) == (False, True)
    assert first["pid"] == again["pid"]
    assert start("--standby", "--json") == 0
    standby = json.loads(capsys.readouterr().out)
    assert standby["pid"] != first["pid"]
    assert stop(directory, "--json") == 0
    assert not any(psutil.pid_exists(each["pid"]) and _lives(each["pid"]) for each in (first, standby))


def test_a_standby_by_id_is_in_the_directory_of_its_cluster(
    start: Start, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert start("--id", "far") == 0
    assert main(["cluster", "start", "--standby", "--id", "far"]) == 0
    assert len(list((directory / "jobmanagers").iterdir())) == 2
    told = output_of(directory)["told"]
    assert isinstance(told, dict)
    # also after the leader, by which the id leads to the directory, is gone
    assert told["configuration"]["cluster.directory"] == str(directory)
    assert stop(directory) == 0


def _lives(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_why_it_could_not_be_started(start: Start, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start(behaviour="fails") == 1
    error = capsys.readouterr().err
    assert "could not be started: Port 8081 of localhost is taken." in error
    assert str(directory / "log") in error


def test_one_that_does_not_come_up_is_ended(start: Start, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(psutil.Process().children(recursive=True))
    assert start("--timeout", "1", behaviour="silent") == 1
    assert "was not ready after 1 s" in capsys.readouterr().err
    assert set(psutil.Process().children(recursive=True)) <= before


def test_one_that_does_not_end_is_killed(start: Start, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start(behaviour="stubborn") == 0
    child = int(str(output_of(directory)["child"]))
    assert stop(directory, "--timeout", "0.5") == 0
    assert "2 processes did not exit in time and had to be killed" in capsys.readouterr().out
    eventually(lambda: not psutil.pid_exists(child))
    assert list((directory / "jobmanagers").iterdir()) == []


def test_a_standby_needs_a_cluster(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--standby") == 2
    assert "Cannot start a standby" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [["--port", "many"], ["--port", "65536"], ["-D", "rest.port=many"], ["-D", "high-availability.type=telepathy"]],
)
def test_wrong_options(start: Start, options: list[str], directory: Path) -> None:
    assert start(*options) == 2
    assert not directory.exists()


def test_an_application_without_a_program_leaves_nothing(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-application", "--directory", str(directory), str(tmp_path / "missing.py")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert not directory.exists()


def test_in_the_foreground(tmp_path: Path, start: Start, directory: Path) -> None:
    code = (
        "import sys; from firesteel.client import cluster_processes; from firesteel.cli.main import main\n"
        "cluster_processes.JOB_MANAGER = 'job_manager_of_the_test'\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    root = Path(__file__).parents[3]
    before = set(psutil.Process().children(recursive=True))
    running = subprocess.Popen(
        [sys.executable, "-c", code, "cluster", "start", "--foreground", "--directory", str(directory)],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stderr is not None
        assert "the JobManager of cluster 'default' is running at http://" in running.stderr.readline()
        os.kill(running.pid, signal.SIGTERM)
        running.communicate(timeout=180)
        assert running.returncode == 0
        eventually(lambda: set(psutil.Process().children(recursive=True)) <= before)
    finally:
        running.kill()
        running.communicate()


def test_run_application_tells_the_jobmanager_of_the_program(
    start: Start, tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("")
    base = ["run-application", "--directory", str(directory), "--id", "mine", "-p", "2"]
    assert main([*base, str(tmp_path / "missing.py")]) == 2
    assert main([*base, str(program), "--own", "x"]) == 0
    told = output_of(directory)["told"]
    assert isinstance(told, dict)
    assert (told["mode"], told["program"], told["arguments"]) == ("application", str(program), ["--own", "x"])
    assert told["configuration"]["parallelism.default"] == "2"
    assert told["configuration"]["high-availability.cluster-id"] == "mine"
    assert main([*base, str(program)]) == 2
    assert "is already running" in capsys.readouterr().err
    assert stop(directory) == 0


def test_status_of_a_cluster_elsewhere(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status", "-m", cluster.address]) == 0
    shown = capsys.readouterr().out
    assert f"The cluster is running: {cluster.url}" in shown
    assert main(["cluster", "status", "-m", "localhost:1"]) == 3
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "run-application" in script
    assert "--fromSavepoint" in script
    if shell == "bash":
        completed = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert (completed.returncode, completed.stderr) == (0, "")


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = next(action for action in parser()._actions if isinstance(action.choices, dict)).choices
    assert verbs is not None
    for verb in verbs:
        with pytest.raises(SystemExit) as exited:
            main([verb, "--help"])
        assert exited.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: firesteel {verb}")


def test_the_command_line_is_quick_to_load() -> None:
    heavy = ("pyspark", "msgspec", "cloudpickle", "firesteel.datastream", "firesteel.rest.client")
    code = f"import sys, firesteel.cli.main as m; m.parser(); print([n for n in {heavy} if n in sys.modules])"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({}, []),
        ({"rest.bind-address": "localhost", "rest.authentication.reads": "false"}, []),
        ({"rest.bind-address": "0.0.0.0"}, ["0.0.0.0 without TLS"]),
        ({"rest.bind-address": "0.0.0.0", "security.ssl.rest.enabled": "true"}, []),
        ({"rest.bind-address": "::", "rest.authentication.reads": "false"}, [":: without TLS", "without a token"]),
    ],
)
def test_a_port_that_others_reach_is_warned_of(settings: dict[str, str], warned: list[str]) -> None:
    found = _warnings(settings)
    assert len(found) == len(warned)
    assert all(part in warning for part, warning in zip(warned, found, strict=True))
