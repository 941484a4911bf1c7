"""Programs kept on the cluster: what can be uploaded, and what a program that misbehaves does to the JobManager."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.cluster.dispatcher.programs import (
    ProgramArguments,
    ProgramFailedError,
    ProgramRunner,
    ProgramStore,
    UnknownProgramError,
    split_arguments,
)
from firesteel.cluster.rest.handlers import jobs as job_handlers
from firesteel.cluster.rest.handlers import programs as program_handlers
from firesteel.cluster.rest.handlers import submission as submission_handlers
from firesteel.cluster.rest.request import Route
from firesteel.cluster.rest.server import RestServer
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.rest import programs
from firesteel.rest.client import RestClient, RestClientError
from firesteel.rest.cluster import CLUSTER_OVERVIEW, FLINK_VERSION, ClusterOverview
from firesteel.rest.programs import ProgramRequest
from firesteel.testing import eventually
from tests.support.jobs.dispatched_jobs import Cluster, MemoryStore


def archive_of(**files: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        for name, text in files.items():
            opened.writestr(name.replace("__slash__", "/") + ".py", text)
    return content.getvalue()


# -- what is kept ----------------------------------------------------------------------------------------


def test_programs_are_kept_listed_and_deleted(tmp_path: Path) -> None:
    store = ProgramStore(tmp_path / "programs")
    assert store.all() == []
    first = store.add("word count.py", b"1")
    second = store.add("jobs.zip", archive_of(a="", b=""))
    os.utime(first.path, (1, 1))
    assert [program.name for program in store.all()] == ["jobs.zip", "word_count.py"]
    assert store.find(first.id).path.read_bytes() == b"1"
    store.delete(first.id)
    assert [program.id for program in store.all()] == [second.id]
    with pytest.raises(UnknownProgramError):
        store.delete(first.id)


@pytest.mark.parametrize("name", ["job.jar", "", ".py", "noext", "x.zip", "..", "a/.py", "....py"])
def test_what_is_no_program_is_not_kept(tmp_path: Path, name: str) -> None:
    store = ProgramStore(tmp_path / "programs")
    with pytest.raises(UnknownProgramError):
        store.add(name, b"not a zip archive")
    assert store.all() == []


def test_an_archive_that_is_broken_is_not_kept(tmp_path: Path) -> None:
    """Its end is that of an archive, which is all a first look sees."""
    store = ProgramStore(tmp_path)
    broken = archive_of(only="").replace(b"PK\x01\x02", b"PK\xff\xff")
    with pytest.raises(UnknownProgramError, match="not a zip archive"):
        store.add("jobs.zip", broken)
    kept = store.add("jobs.zip", archive_of(only=""))
    kept.path.write_bytes(broken)
    with pytest.raises(UnknownProgramError, match="not a zip archive"):
        kept.entry()


@pytest.mark.parametrize("name", ["../../evil.py", "/etc/evil.py", "..\\evil.py", "-rf.py", "a\0b.py", "é x.py"])
def test_names_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    store = ProgramStore(tmp_path / "programs")
    program = store.add(name, b"")
    assert program.path.parent == tmp_path / "programs"
    assert [path.name for path in (tmp_path / "programs").iterdir()] == [program.id]
    assert [path.name for path in tmp_path.iterdir()] == ["programs"]


@pytest.mark.parametrize("program_id", ["", ".", "..", "../x.py", "x.py", "%2e%2e", "a" * 36 + "_x.py", "token"])
def test_ids_cannot_leave_the_directory(tmp_path: Path, program_id: str) -> None:
    (tmp_path / "x.py").write_text("")
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "token").write_text("secret")
    store = ProgramStore(tmp_path / "programs")
    with pytest.raises(UnknownProgramError):
        store.delete(program_id)
    assert (tmp_path / "x.py").exists()
    assert store.all() == []


@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"__main__": "", "other": ""}, "__main__"),
        ({"only": "", "package__slash__x": ""}, "only"),
        ({"a": "", "b": ""}, None),
    ],
)
def test_where_an_archive_begins(tmp_path: Path, files: dict[str, str], entry: str | None) -> None:
    assert ProgramStore(tmp_path).add("jobs.zip", archive_of(**files)).entry() == entry


# -- running ---------------------------------------------------------------------------------------------


class Runs:
    """Runs programs with a stand-in for the firesteel command: the program itself, with the same arguments."""

    def __init__(self, directory: Path, timeout: str = "120 s"):
        self._store = ProgramStore(directory / "programs")
        stand_in = directory / "firesteel"
        stand_in.write_text(
            "import runpy, sys\n"
            "path = next(a for a in sys.argv if a.endswith('.py') and '_program' in a)\n"
            "runpy.run_path(path, run_name='__main__')\n"
        )
        configuration = Configuration.from_dict({"web.program.timeout": timeout, "security.ssl.rest.ca": "ca.pem"})
        self.runner = ProgramRunner(configuration, "/secret/token", (sys.executable, str(stand_in)))

    def run(self, text: str, **options: Any) -> str:
        program = self._store.add("program.py", text.encode())
        return self.runner.run(program, ProgramArguments(**options), "http://localhost:1")


def test_a_program_is_run_with_what_was_asked_for(tmp_path: Path) -> None:
    # without paths of the test's directory, because long lines are shortened
    said = "[[each for each in sys.argv if not each.endswith('.py')], os.environ['FIRESTEEL_REST_TOKEN_FILE']]"
    text = f"import json, os, sys\nprint(json.dumps({said}))\n"
    with pytest.raises(ProgramFailedError, match="without executing a job") as raised:
        Runs(tmp_path).run(
            text,
            arguments=["--x", "a b"],
            parallelism=3,
            savepoint="/s",
            allow_non_restored_state=True,
            job_id="d" * 32,
            settings={"k": "v=1"},
        )
    arguments, token = json.loads(next(line for line in raised.value.message.splitlines() if line.startswith("[[")))
    assert token == "/secret/token"
    text = " ".join(arguments)
    assert text.startswith("run -m http://localhost:1 -d -s /s -n -p 3 ")
    assert "-D k=v=1" in text
    assert "-D security.ssl.rest.ca=ca.pem" in text
    assert f"job-id={'d' * 32}" in text
    assert arguments[-2:] == ["--x", "a b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print('nothing to do')", "without executing a job"),
        ("import sys\nsys.exit(3)", "exit code 3"),
        ("import sys\nsys.exit()", "without executing a job"),
        ("raise ValueError('my mistake')", "my mistake"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "exit code -9"),
        ("this is no python", "SyntaxError"),
    ],
)
def test_a_program_that_does_not_come_to_its_job(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ProgramFailedError, match=expected):
        Runs(tmp_path).run(text)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"savepoint": "a\0b"}, "null character"),
        ({"job_id": "a\0b"}, "null character"),
        ({"settings": {"a\0b": "c"}}, "null character"),
        ({"arguments": ["a\0b"]}, "null character"),
        ({"arguments": ["x" * 4_000_000]}, "too long"),
    ],
)
def test_what_no_process_can_be_given(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ProgramFailedError, match=expected):
        Runs(tmp_path).run("", **options)


def test_a_program_that_prints_megabytes_is_cut_to_its_last_lines(tmp_path: Path) -> None:
    text = "import sys\nfor _ in range(20000): print('x' * 1000)\nsys.stderr.write('the last line\\n')\nsys.exit(1)"
    with pytest.raises(ProgramFailedError, match="the last line") as raised:
        Runs(tmp_path).run(text)
    assert len(raised.value.message) < 100_000


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The time of a program is over when it has made this file, however long a process takes to start here."""
    mark = tmp_path / "started"

    class Patient(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if timeout != TOO_SHORT_S:
                return super().wait(timeout)
            eventually(mark.exists, timeout=60)
            return super().wait(0.001)

    monkeypatch.setattr(subprocess, "Popen", Patient)
    return mark


TOO_SHORT_S = 1.0


def test_a_program_that_loops_is_ended_with_all_it_has_started(tmp_path: Path, started: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('still here', flush=True)\n"
        f"open({str(started)!r}, 'w').close()\n"
        "while True: time.sleep(0.01)\n"
    )
    with pytest.raises(ProgramFailedError, match=r"did not submit a job within 1 s.*\n.*\nstill here"):
        Runs(tmp_path, "1 s").run(text)
    for pid in pids.read_text().split():
        eventually(lambda pid=pid: not _runs(int(pid)))  # type: ignore[misc]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_goes_on_after_its_job_is_ended_and_the_job_counts(tmp_path: Path, started: Path) -> None:
    text = (
        f"import time\nprint('Job has been submitted with JobID {'e' * 32}', flush=True)\n"
        f"open({str(started)!r}, 'w').close()\ntime.sleep(600)"
    )
    assert Runs(tmp_path, "1 s").run(text) == "e" * 32


def test_nothing_is_left_of_a_program_s_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with pytest.raises(ProgramFailedError):
        Runs(tmp_path).run("import tempfile\nopen('here', 'w')\ntempfile.mkstemp()")
    assert list(place.iterdir()) == []


def test_arguments_that_cannot_be_split() -> None:
    assert split_arguments("") == []
    with pytest.raises(ProgramFailedError, match="quotation"):
        split_arguments("'open")


# -- over HTTP -------------------------------------------------------------------------------------------

TOKEN = "0123456789abcdef-token"
PROGRAM = """
import sys
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(sys.argv[1:]).map(str.upper).print()
if sys.argv[1:] != ["nothing"]:
    env.execute("from the page")
"""


class Served(Cluster):
    """A JobManager that programs can be uploaded to."""

    def __init__(self, directory: Path, *, is_enabled: bool = True):
        super().__init__(MemoryStore(), directory)
        (directory / "token").write_text(TOKEN)
        (directory / "token").chmod(0o600)
        configuration = Configuration.from_dict({"rest.port": "0"})
        runner = ProgramRunner(configuration, str(directory / "token"))
        overview = ClusterOverview(1, 4, 4, 0, 0, 0, 0, FLINK_VERSION, "firesteel")
        routes = [
            Route(CLUSTER_OVERVIEW, lambda _: overview),
            *job_handlers.routes(self.dispatcher),
            *submission_handlers.routes(self.dispatcher),
            *program_handlers.routes(ProgramStore(directory / "programs"), runner, is_enabled=is_enabled),
        ]
        self.server = RestServer(routes, configuration, token=TOKEN, static_directory=None)
        self.server.start()
        self.client = RestClient(self.server.url, token=TOKEN)

    def upload(self, name: str, content: bytes) -> str:
        answer = self.client.call(programs.UPLOAD_PROGRAM, uploads={"jarfile": (name, content)})
        assert answer.status == "success"
        return answer.filename.rpartition("/")[2]

    def close(self) -> None:
        self.client.close()
        self.server.close()
        self.dispatcher.close(60.0)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


def test_a_program_from_upload_to_its_job(served: Served) -> None:
    program_id = served.upload("upper.py", PROGRAM.encode())
    (listed,) = served.client.call(programs.PROGRAMS).files
    assert (listed.id, listed.name) == (program_id, "upper.py")
    path = {"jarid": program_id}
    answer = served.client.call(
        programs.RUN_PROGRAM, path, body=ProgramRequest(program_args="a 'b c'", job_id="a" * 32, parallelism=1)
    )
    assert answer.jobid == "a" * 32
    job = served.dispatcher.job(answer.jobid)
    job.result_future().result(60)
    assert (job.name, job.status) == ("from the page", JobStatus.FINISHED)
    assert served.lines == ["A", "B C"]
    served.client.call(programs.DELETE_PROGRAM, path)
    with pytest.raises(RestClientError) as raised:
        served.client.call(programs.RUN_PROGRAM, path, body=ProgramRequest())
    assert raised.value.status == 400


def test_a_program_is_code_and_needs_the_token(served: Served) -> None:
    program_id = served.upload("upper.py", PROGRAM.encode())
    path = {"jarid": program_id}
    with RestClient(served.server.url) as stranger:
        for call in (
            lambda: stranger.call(programs.UPLOAD_PROGRAM, uploads={"jarfile": ("evil.py", b"1")}),
            lambda: stranger.call(programs.RUN_PROGRAM, path, body=ProgramRequest()),
            lambda: stranger.call(programs.PLAN_PROGRAM, path, body=ProgramRequest()),
            lambda: stranger.call(programs.PLAN_PROGRAM_GET, path, body=ProgramRequest()),
        ):
            with pytest.raises(RestClientError) as raised:
                call()
            assert raised.value.status == 401
    assert served.dispatcher.jobs() == []


def test_secrets_of_a_program_are_not_on_its_command_line(served: Served) -> None:
    text = "import os, sys, json\nfrom pathlib import Path\n"
    text += "seen = Path('/proc/self/cmdline').read_text().replace(chr(0), ' ')\n"
    text += "from firesteel.datastream import StreamExecutionEnvironment\n"
    text += "env = StreamExecutionEnvironment.get_execution_environment()\n"
    text += "own = env.get_configuration().to_dict()['s3.secret-key']\n"
    text += "env.from_collection([str('tell-nobody' in seen), own[:4]]).print()\nenv.execute('quiet')\n"
    program_id = served.upload("quiet.py", text.encode())
    settings = {"s3.secret-key": "tell-nobody", "parallelism.default": "1"}
    answer = served.client.call(
        programs.RUN_PROGRAM, {"jarid": program_id}, body=ProgramRequest(flink_configuration=settings)
    )
    served.dispatcher.job(answer.jobid).result_future().result(60)
    assert served.lines == ["False", "tell"]


def test_the_plan_of_a_program_in_an_archive(served: Served) -> None:
    program_id = served.upload("jobs.zip", archive_of(upper=PROGRAM, other="1"))
    query = {"entry-class": "upper", "parallelism": 2, "programArg": ["x", "y"]}
    answer = served.client.call(programs.PLAN_PROGRAM_GET, {"jarid": program_id}, query, body=ProgramRequest())
    assert answer.plan["name"] == "from the page"
    assert len(answer.plan["nodes"]) >= 1
    assert served.dispatcher.jobs() == []
    with pytest.raises(RestClientError, match="entryClass"):
        served.client.call(programs.PLAN_PROGRAM, {"jarid": program_id}, body=ProgramRequest())


def test_an_archive_with_a_main_module_runs_it(served: Served) -> None:
    program_id = served.upload("jobs.zip", archive_of(__main__=PROGRAM, helper="1"))
    answer = served.client.call(
        programs.RUN_PROGRAM, {"jarid": program_id}, body=ProgramRequest(program_args_list=["a"])
    )
    job = served.dispatcher.job(answer.jobid)
    job.result_future().result(60)
    assert (job.name, served.lines) == ("from the page", ["A"])


def test_what_a_bad_program_says_is_in_the_answer(served: Served) -> None:
    path = {"jarid": served.upload("upper.py", PROGRAM.encode())}
    for body, text in [
        (ProgramRequest(program_args_list=["nothing"]), "without submitting a job"),
        (ProgramRequest(flink_configuration={"parallelism.default": "many"}), "parallelism.default"),
        (ProgramRequest(parallelism=0), "parallelism"),
    ]:
        with pytest.raises(RestClientError, match=text) as raised:
            served.client.call(programs.RUN_PROGRAM, path, body=body)
        assert raised.value.status == 400
    assert served.dispatcher.jobs() == []


def test_a_form_without_a_program_is_refused(served: Served) -> None:
    for uploads in ({}, {"other": ("a.py", b"")}, {"jarfile": ("a.jar", b"")}):
        with pytest.raises(RestClientError) as raised:
            served.client.call(programs.UPLOAD_PROGRAM, uploads=uploads)
        assert raised.value.status == 400


def test_programs_can_be_switched_off(tmp_path: Path) -> None:
    served = Served(tmp_path, is_enabled=False)
    try:
        with pytest.raises(RestClientError) as raised:
            served.upload("a.py", b"")
        assert raised.value.status == 403
        assert served.client.call(programs.PROGRAMS).files == []
    finally:
        served.close()
