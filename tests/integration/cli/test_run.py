"""``firesteel run``: a program runs as python would run it, with the command line's settings as its defaults."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firesteel.cli.main import main
from firesteel.common import Configuration
from firesteel.common.errors import FiresteelWarning
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.executor import context_executor, default_configuration, execution_context
from firesteel.testing.in_process import InProcessExecutor

ROOT = Path(__file__).parents[3]

HEAD = """\
import sys
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""

Write = Callable[[str], str]


@pytest.fixture(autouse=True)
def in_process() -> Iterator[None]:
    with execution_context(executor=InProcessExecutor()):
        yield


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_a_program_runs_to_its_end(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(
        "class Doubled:\n"
        "    def __call__(self, n):\n"
        "        return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    env.from_collection([1, 2]).map(Doubled()).print()\n"
        "    env.execute('job')\n"
        "    print('over', *sys.argv[1:])\n"
    )
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    assert main(["run", path, "--its-own", "-p", "7"]) == 0
    assert capsys.readouterr() == ("2\n4\nover --its-own -p 7\n", "")
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        (["-p", "3"], "parallelism.default", "3"),
        (["--parallelism", "3"], "parallelism.default", "3"),
        (["-D", "parallelism.default=3"], "parallelism.default", "3"),
        (["-p", "3", "-D", "parallelism.default=2"], "parallelism.default", "3"),
        (["-s", "/some/where"], "execution.state-recovery.path", "/some/where"),
        (["--fromSavepoint", "/some/where"], "execution.state-recovery.path", "/some/where"),
        (["-n"], "execution.state-recovery.ignore-unclaimed-state", "true"),
        (["--allowNonRestoredState"], "execution.state-recovery.ignore-unclaimed-state", "true"),
        (["--mode", "batch"], "execution.runtime-mode", "BATCH"),
        (["--available-now"], "execution.exchange", "spark"),
        (["--available-now"], "execution.epoch.trigger", "available-now"),
        (["-D", "a.b=1", "-D", "c=x=y"], "c", "x=y"),
    ],
)
def test_options_are_settings(
    script: Write, capsys: pytest.CaptureFixture[str], options: list[str], key: str, value: str
) -> None:
    assert main(["run", *options, script(f"print(env.get_configuration().to_dict()[{key!r}])\n")]) == 0
    assert capsys.readouterr().out == f"{value}\n"


def test_unknown_keys_are_warnings_or_errors(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("env.from_collection([1]).print()\nenv.execute()\n")
    with pytest.warns(FiresteelWarning, match=r"parallelism\.defualt.*parallelism\.default"):
        assert main(["run", "-D", "parallelism.defualt=2", path]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["run", "--strict-config", "-D", "parallelism.defualt=2", path]) == 2
    assert "Did you mean 'parallelism.default'?" in capsys.readouterr().err
    strict = script(
        "env.configure(Configuration().set_string('my.key', '1'))\nenv.from_collection([1]).print()\nenv.execute()\n"
    )
    assert main(["run", "--strict-config", strict]) == 1
    assert "'my.key' is not a configuration key" in capsys.readouterr().err


def test_what_the_program_sets_wins(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(
        "env.set_parallelism(2)\n"
        "config = Configuration().set_string('pipeline.name', 'of the program')\n"
        "other = StreamExecutionEnvironment.get_execution_environment(config)\n"
        "print(env.get_parallelism(), other.get_parallelism(), other.get_configuration().get('pipeline.name'))\n"
    )
    assert main(["run", "-p", "3", "-D", "pipeline.name=of the command", path]) == 0
    assert capsys.readouterr().out == "2 3 of the program\n"
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 1


def test_environments_made_in_threads_have_the_settings_too(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(
        "import threading\n"
        "def make():\n"
        "    print(StreamExecutionEnvironment.get_execution_environment().get_parallelism())\n"
        "thread = threading.Thread(target=make)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    assert main(["run", "-p", "3", path]) == 0
    assert capsys.readouterr().out == "3\n"


def test_a_failed_job_is_a_message_and_exit_code_1(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("env.from_collection(['x']).map(lambda t: int(t)).name('parse').print()\nenv.execute('numbers')\n")
    assert main(["run", path]) == 1
    error = capsys.readouterr().err
    assert error.startswith("firesteel: Job 'numbers' failed.\nValueError: invalid literal")
    assert "operator: parse" in error
    assert "program.py:5" in error
    assert "Traceback" not in error


def test_an_invalid_program_is_exit_code_1(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--mode", "batch", "-D", "execution.exchange=pipelined", script(JOB)]) == 1
    assert "execution.exchange is pipelined" in capsys.readouterr().err


def test_a_program_that_fails_itself_shows_its_own_frames_only(
    script: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", script("def fail():\n    return 1 / 0\nfail()\n")]) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError" in error
    assert re.findall(r'File ".*/([\w.]+)", line', error) == ["program.py", "program.py"]


@pytest.mark.parametrize(
    ("statement", "code", "error"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no luck')", 1, "no luck\n"),
        ("raise KeyboardInterrupt", 130, ""),
    ],
)
def test_exit_codes(script: Write, capsys: pytest.CaptureFixture[str], statement: str, code: int, error: str) -> None:
    assert main(["run", script(statement + "\n")]) == code
    assert capsys.readouterr() == ("", error)


def test_settings_are_gone_after_a_failure(script: Write) -> None:
    before = context_executor()
    assert main(["run", "-p", "3", script("1 / 0\n")]) == 1
    assert default_configuration() == Configuration()
    assert context_executor() is before


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "-p", "0", "x.py"],
        ["run", "-p", "many", "x.py"],
        ["run", "--mode", "fast", "x.py"],
        ["info", "--format", "yaml", "x.py"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    assert capsys.readouterr().err.startswith("usage: firesteel")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-D", "parallelism.default"], "KEY=VALUE"),
        (["-D", "execution.exchange=carrier-pigeon"], "execution.exchange"),
        (["-D", "execution.epoch.interval=soon"], "execution.epoch.interval"),
    ],
)
def test_wrong_settings_are_exit_code_2(
    script: Write, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["run", *options, script("print('ran')\n")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_no_such_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "missing.py")]) == 2
    assert "does not exist" in capsys.readouterr().err


JOB = "env.from_sequence(1, 4).key_by(lambda n: n % 2).sum().print()\nenv.execute('sums')\n"


@pytest.mark.parametrize("command", [["run", "--explain"], ["info"]])
def test_explaining_runs_nothing(script: Write, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    path = script("print('building')\n" + JOB + "print('not reached')\n")
    assert main([*command, "--available-now", "-p", "2", path]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Job 'sums': 2 vertices, 4 subtasks, 2 slots\nExecution: epochs, because")
    assert "trigger:     available-now" in printed.out
    assert printed.err == "building\n"


def test_info_in_other_formats(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(JOB + JOB)
    assert main(["info", "--format", "mermaid", path]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("flowchart LR\n")
    assert "calls execute() 2 times" in printed.err


@pytest.mark.parametrize("verb", ["run", "info"])
def test_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main([verb, "--help"])
    assert exited.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for option in ("-D KEY=VALUE", "-p N", "-s PATH", "-n", "--mode {batch,streaming,automatic}", "--available-now"):
        assert option in text
    assert "Exit codes:" in text


def test_ctrl_c_is_exit_code_130(script: Write) -> None:
    path = script("print('ready', flush=True)\nimport threading\nthreading.Event().wait()\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "firesteel", "run", path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell that runs the tests in the background has them ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    timer = threading.Timer(180, running.kill)
    timer.start()
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        os.kill(running.pid, signal.SIGINT)
        assert running.communicate(timeout=180) == ("", "")
        assert running.returncode == 130
    finally:
        timer.cancel()
        running.kill()
        running.communicate()


def test_contexts_add_up() -> None:
    executor = InProcessExecutor()
    with execution_context(Configuration.from_dict({"a": "1", "b": "1"}), executor):
        with execution_context(Configuration.from_dict({"b": "2"})):
            assert default_configuration().to_dict() == {"a": "1", "b": "2"}
            assert context_executor() is executor
        assert default_configuration().to_dict() == {"a": "1", "b": "1"}
