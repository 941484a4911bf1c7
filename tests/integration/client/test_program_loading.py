"""Building a script's job without running it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.client.errors import UsageError
from firesteel.client.program import load_program
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.executor import context_executor

HEAD = """\
import sys
from pathlib import Path
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([1, 2])
"""

Write = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_the_job_is_built_and_nothing_after_it_runs(script: Write, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = script(f"numbers.print()\nenv.execute('my job')\nPath({str(marker)!r}).touch()\n")
    with load_program(path) as program:
        assert program.job_graph.job_name == "my job"
        assert program.execute_calls == 1
    assert not marker.exists()


@pytest.mark.parametrize("call", ["env.execute()", "env.execute_async()", "numbers.execute_and_collect()"])
def test_every_way_to_execute_is_caught(script: Write, call: str) -> None:
    with load_program(
        script(f"numbers.print()\ntry:\n    {call}\nexcept Exception:\n    raise SystemExit(3)\n")
    ) as program:
        assert program.job_graph.vertices


def test_arguments_and_neighbours_of_the_script(script: Write, tmp_path: Path) -> None:
    (tmp_path / "beside_the_program.py").write_text("NAME = 'neighbour'\n")
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    path = script(
        "import beside_the_program\nassert __name__ == '__main__'\nnumbers.print()\n"
        "env.execute(beside_the_program.NAME + ' '.join(sys.argv[1:]))\n"
    )
    try:
        with load_program(path, ["--a", "b"]) as program:
            assert program.job_graph.job_name == "neighbour--a b"
            assert sys.modules["__main__"].__dict__["numbers"] is not None
    finally:
        sys.modules.pop("beside_the_program", None)
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_settings_are_defaults_that_the_program_may_override(script: Write) -> None:
    settings = {"parallelism.default": "3", "pipeline.name": "named"}
    with load_program(script("numbers.rebalance().map(lambda x: x).print()\nenv.execute()\n"), (), settings) as program:
        assert {vertex.parallelism for vertex in program.job_graph.vertices} == {1, 3}
        assert program.job_graph.job_name == "named"
    overriding = script("env.set_parallelism(2)\nnumbers.rebalance().map(lambda x: x).print()\nenv.execute()\n")
    with load_program(overriding, (), settings) as program:
        assert {vertex.parallelism for vertex in program.job_graph.vertices} == {1, 2}
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() != 3


def test_the_executor_is_itself_again_afterwards(script: Write) -> None:
    with pytest.raises(UsageError), load_program(script("raise OSError\n")):
        pass
    assert context_executor() is None


def test_what_the_script_prints_does_not_mix_with_the_output(script: Write, capsys: pytest.CaptureFixture[str]) -> None:
    with load_program(script("print('hello')\nnumbers.print()\nenv.execute()\n")):
        pass
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "hello\n")


def test_several_jobs_are_counted(script: Write) -> None:
    with load_program(script("numbers.print()\nenv.execute('first')\nenv.execute('second')\n")) as program:
        assert program.job_graph.job_name == "first"
        assert program.execute_calls == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("numbers.print()\n", "without executing a job"),
        ("sys.exit(7)\n", "exited with code 7"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("this is no python\n", "SyntaxError"),
    ],
)
def test_a_script_that_builds_no_job(script: Write, text: str, message: str) -> None:
    path = script(text)
    with pytest.raises(UsageError) as raised, load_program(path):
        pass
    assert message in str(raised.value)
    assert path in str(raised.value)
    assert "cli/program.py" not in str(raised.value)


def test_an_invalid_program_says_so_itself(script: Write) -> None:
    with pytest.raises(InvalidProgramError), load_program(script("env.execute()\n")):
        pass


def test_no_such_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError), load_program(str(tmp_path / "missing.py")):
        pass
