"""``firesteel run`` with a cluster: the program runs here, its jobs there."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.cli.main import main
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator
from firesteel.runtime.dependencies.bundle import bundle_of
from firesteel.testing import eventually
from tests.support.rest.cluster_in_process import InProcessCluster

ROOT = Path(__file__).parents[3]
HEAD = """\
import sys
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import TestingSource
env = StreamExecutionEnvironment.get_execution_environment()
def endless():
    return env.from_source(TestingSource([1, 2, 3], bounded=False), WatermarkStrategy.no_watermarks(), "numbers")
"""
ENDLESS = "endless().map(lambda n: n + 1).print()\nenv.execute('endless')\n"

Write = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str, name: str = "program.py") -> str:
        path = tmp_path / name
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_jobs_run_on_the_cluster_that_runs_here(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        "env.from_collection([1, 2]).map(lambda n: n * 10).print()\n"
        "result = env.execute('tens')\n"
        "print('over', result.get_job_id(), result.get_net_runtime() >= 0)\n"
    )
    assert main(["run", path]) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(r"over [0-9a-f]{32} True\n", printed.out)
    assert cluster.printed == ["10", "20"]
    assert printed.err.startswith(f"firesteel: job 'tens' was submitted to {cluster.url}")
    assert printed.err.endswith("firesteel: job 'tens' is FINISHED\n")


def test_a_program_says_what_its_job_waits_for(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.slots = SlotAllocator(lambda: 2, is_fixed=False)
    path = script("env.from_collection([1]).map(lambda n: n).set_parallelism(3).print()\nenv.execute('wide')\n")
    said: list[str] = []

    def waits() -> bool:
        said.append(capsys.readouterr().err)
        return "waits for slots" in "".join(said)

    def wait_and_cancel() -> None:
        try:
            eventually(waits)
        finally:
            eventually(lambda: len(cluster.dispatcher.jobs()) == 1)
            cluster.dispatcher.jobs()[0].cancel()

    canceller = threading.Thread(target=wait_and_cancel)
    canceller.start()
    assert main(["run", path]) == 1
    canceller.join()
    assert "job 'wide': The job waits for slots: it requests 3, and 2 of 2 are free.\n" in "".join(said)


def test_the_address_can_be_given(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script("env.from_collection([1]).print()\nenv.execute('one')\n")
    assert main(["run", "-m", cluster.address, path]) == 0
    monkeypatch.setenv("FIRESTEEL_JOBMANAGER", cluster.url)
    assert main(["run", "-t", "remote", path]) == 0
    assert cluster.printed == ["1", "1"]


def test_embedded_jobs_are_not_submitted(cluster: InProcessCluster, script: Write) -> None:
    assert main(["run", "--embedded", script("print('nothing to execute')\n")]) == 0
    assert cluster.dispatcher.jobs() == []


def test_detached(cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(ENDLESS.replace("env.execute('endless')", "print(env.execute('endless'))"))
    assert main(["run", "-d", path]) == 0
    printed = capsys.readouterr()
    job_id = cluster.dispatcher.jobs()[0].job_id
    assert printed.out == f"Job has been submitted with JobID {job_id}\nJob {job_id} was submitted.\n"
    assert printed.err == ""
    assert not cluster.dispatcher.job(job_id).is_over


def test_what_a_detached_job_does_not_know(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(ENDLESS.replace("env.execute('endless')", "env.execute('x').get_net_runtime()"))
    assert main(["run", "-d", path]) == 1
    assert "detached mode" in capsys.readouterr().err


def test_a_failed_job_names_the_line(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("env.from_collection(['x']).map(lambda t: int(t)).name('parse').print()\nenv.execute('numbers')\n")
    assert main(["run", path]) == 1
    error = capsys.readouterr().err
    assert "firesteel: Job 'numbers' failed.\nValueError: invalid literal" in error
    assert "operator: parse" in error
    assert "program.py:8" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("detached", [[], ["-d"]])
def test_a_job_that_cannot_be_prepared_is_an_error_at_once(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path, detached: list[str]
) -> None:
    assert main(["run", *detached, "-s", str(tmp_path / "no-savepoint"), script(ENDLESS)]) == 1
    assert f"no checkpoint or savepoint in {tmp_path / 'no-savepoint'}" in capsys.readouterr().err


def test_what_cannot_be_sent_is_said_before(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(
        "import threading\nlock = threading.Lock()\n"
        "env.from_collection([1]).map(lambda n: lock.locked()).name('locks').print()\nenv.execute('x')\n"
    )
    assert main(["run", path]) == 1
    assert "Operator 'locks'" in capsys.readouterr().err
    assert cluster.dispatcher.jobs() == []


def test_a_program_without_execute(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("env.from_collection([1]).print()\n")
    assert main(["run", path]) == 1
    assert f"{path} ended without submitting a job" in capsys.readouterr().err
    assert main(["run", script("sys.exit(7)\n")]) == 7


def test_results_can_be_collected(cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(
        "with env.from_sequence(1, 1000).execute_and_collect('numbers') as numbers:\n    print(sum(numbers))\n"
        "print(endless().execute_and_collect('some', limit=2))\n"
    )
    assert main(["run", path]) == 0
    assert capsys.readouterr().out == "500500\n[1, 2]\n"
    eventually(lambda: [job.status.name for job in cluster.dispatcher.jobs()] == ["FINISHED", "CANCELED"])


def test_the_client_of_a_job(
    cluster: InProcessCluster, script: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = script(
        "from firesteel.testing import eventually\n"
        "endless().key_by(lambda n: n).map(lambda n: n).print()\n"
        "client = env.execute_async('endless')\n"
        "eventually(lambda: any('numRecordsIn' in values for values in client.get_metrics().result().values()))\n"
        "print(client.get_job_status().result().name)\n"
        "print(client.trigger_savepoint(sys.argv[1]).result().startswith(sys.argv[1]))\n"
        "print(client.get_accumulators().result())\n"
        "print(client.stop_with_savepoint(False, sys.argv[1]).result().startswith(sys.argv[1]))\n"
        "print(client.get_job_execution_result().result().get_job_id() == client.get_job_id())\n"
    )
    assert main(["run", path, str(tmp_path / "savepoints")]) == 0
    assert capsys.readouterr().out == "RUNNING\nTrue\n{}\nTrue\nTrue\n"
    assert len(list((tmp_path / "savepoints").iterdir())) == 2


def test_a_cluster_that_does_not_answer(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # so that nobody else gets the port; nobody listens
        assert main(["run", "-m", f"localhost:{unused.getsockname()[1]}", script("print('ran')\n")]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "cannot be reached" in printed.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-d"], 2, "Detached mode requires"),
        (["-t", "remote"], 3, "No cluster is running on this machine"),
        (["--embedded", "-m", "localhost:1"], 2, "Conflicting options"),
        (["-m", "ftp://there"], 2, "not a valid JobManager address"),
        (["-pyfs", "missing.zip"], 2, "missing.zip does not exist"),
    ],
)
def test_what_cannot_be_done(
    script: Write, capsys: pytest.CaptureFixture[str], options: list[str], code: int, message: str
) -> None:
    assert main(["run", *options, script("print('ran')\n")]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_without_the_token_nothing_is_submitted(
    cluster: InProcessCluster,
    script: Write,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = script("env.from_collection([1]).print()\nenv.execute('one')\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert main(["run", "-m", cluster.address, path]) == 1
    assert "FIRESTEEL_REST_TOKEN_FILE" in capsys.readouterr().err
    assert cluster.dispatcher.jobs() == []
    monkeypatch.setenv("FIRESTEEL_REST_TOKEN_FILE", str(cluster.token_file))
    assert main(["run", "-m", cluster.address, path]) == 0


def test_modules_and_files_travel_with_the_job(
    cluster: InProcessCluster, script: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "neighbour_of_the_program.py").write_text("def twice(n):\n    return 2 * n\n")
    archive = tmp_path / "sent.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("sent_in_zip.py", "def lazily(n):\n    return n + 1\n")
    directory = tmp_path / "more"
    directory.mkdir()
    (directory / "sent_in_directory.py").write_text("NAME = 'x'\n")
    path = script(
        "import neighbour_of_the_program\n"
        "def late(n):\n    import sent_in_zip\n    return sent_in_zip.lazily(n)\n"
        "env.from_collection([1]).map(lambda n: late(neighbour_of_the_program.twice(n))).print()\nenv.execute('x')\n"
    )
    before = list(sys.path)
    assert main(["run", "-d", "-pyfs", f"{archive},{directory}", path]) == 0
    submission = cluster.store.submissions[0]
    bundle = bundle_of(submission.artifacts)
    assert bundle is not None
    assert [file.name for file in bundle.files] == ["sent.zip", "more.zip"]
    assert sys.path == before
    # another process has nothing but the job and its files
    check = (
        "import pickle, sys, zipfile\n"
        "graph = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "assert 'neighbour_of_the_program' not in sys.modules\n"
        "print(graph.job_name)\n"
    )
    graph = tmp_path / "job.graph"
    graph.write_bytes(submission.serialized)
    done = subprocess.run(
        [sys.executable, "-c", check, str(graph)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("x\n", "")


@pytest.mark.parametrize("arguments", [["-py", "{path}", "a", "-p", "7"], ["-py", "{path}", "--", "a", "-p", "7"]])
def test_programs_named_as_for_flink(script: Write, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    path = script("print(env.get_parallelism(), sys.argv[1:])\n")
    assert main(["run", "--embedded", "-p", "2", *(word.format(path=path) for word in arguments)]) == 0
    assert capsys.readouterr().out == "2 ['a', '-p', '7']\n"


def test_modules_as_programs(
    script: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_of_programs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text("NAME = 'named'\n")
    (package / "program.py").write_text("import sys\nfrom .names import NAME\nprint(NAME, __name__, sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--embedded", "-pym", "package_of_programs.program", "--own", "x"]) == 0
    assert capsys.readouterr().out == "named __main__ ['--own', 'x']\n"
    assert main(["run", "--embedded", "-pym", "package_of_programs.missing"]) == 2
    assert "Module package_of_programs.missing does not exist" in capsys.readouterr().err


def test_ctrl_c_leaves_the_job_alone(cluster: InProcessCluster, script: Write, state_directory: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "firesteel", "run", "-m", cluster.address, script(ENDLESS)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "XDG_STATE_HOME": str(state_directory.parent)},
        # a shell that runs the tests in the background has them ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        eventually(lambda: [job.status.name for job in cluster.dispatcher.jobs()] == ["RUNNING"], timeout=180)
        assert running.stderr is not None
        assert any("is RUNNING" in line for line in running.stderr)
        os.kill(running.pid, signal.SIGINT)
        _, error = running.communicate(timeout=180)
        job = cluster.dispatcher.jobs()[0]
        assert running.returncode == 130
        assert f"continues to run. To cancel it: firesteel cancel {job.job_id}" in error
        assert job.status.name == "RUNNING"
    finally:
        running.kill()
        running.communicate()


def test_settings_reach_the_job(cluster: InProcessCluster, script: Write) -> None:
    assert main(["run", "-d", "-D", "pipeline.name=given", "-p", "2", script(ENDLESS.replace("'endless'", ""))]) == 0
    job = cluster.dispatcher.jobs()[0]
    assert job.name == "given"
    eventually(lambda: job.runner is not None)
    assert job.runner is not None
    assert job.runner.job_graph.vertices[0].parallelism == 2
