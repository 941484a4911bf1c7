"""The ``firesteel`` command itself: exit codes, messages without tracebacks, help."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel import __version__
from firesteel.cli.main import main, parser
from firesteel.cli.terminal.output import bytes_text, count, table, time_text

ROOT = Path(__file__).parents[3]


def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "firesteel", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=180,
        check=False,
    )


def test_runs_as_a_module() -> None:
    done = run_process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"firesteel {__version__}\n", "")


def test_the_command_line_does_not_need_spark() -> None:
    code = "import sys, firesteel.cli.main; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["savepoint"], ["savepoint", "inspect"], ["savepoint", "inspect", "x", "--limit", "many"]],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    assert capsys.readouterr().err.startswith("usage: firesteel")


def _verbs(commands: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in commands._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield ".".join(words).replace("-", "_"), commands
    for group in groups:
        for name, below in group.choices.items():
            yield from _verbs(below, *words, name)


def test_every_verb_is_the_module_of_its_name() -> None:
    verbs = dict(_verbs(parser()))
    assert "cluster.start" in verbs
    for name, verb in verbs.items():
        assert verb.get_default("run").__module__ == f"firesteel.cli.{name}"


def test_every_module_of_a_verb_is_part_of_the_command() -> None:
    folder = ROOT / "firesteel" / "cli"
    modules = {
        file.relative_to(folder).as_posix().removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for file in folder.rglob("*.py")
        if "\ndef register(" in file.read_text()
    }
    registered = set(dict(_verbs(parser())))
    groups = {name.rpartition(".")[0] for name in registered} - {""}
    assert modules == registered | groups, "add the verb to _VERBS in firesteel/cli/main.py, or to its group"


def test_every_verb_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    verbs = {name.partition(".")[0].replace("_", "-") for name in dict(_verbs(parser()))}
    assert not {verb for verb in verbs if f"`{verb}" not in page}, "add the verb to the table in docs/cli.md"


@pytest.mark.parametrize("verb", ["inspect", "diff", "dispose"])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["savepoint", verb, "--help"])
    assert exited.value.code == 0
    assert f"usage: firesteel savepoint {verb}" in capsys.readouterr().out


def test_errors_are_messages_not_tracebacks(tmp_path: Path) -> None:
    done = run_process("savepoint", "inspect", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"firesteel: There is no checkpoint or savepoint in {tmp_path}")
    assert "Hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setting_without_a_value_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", str(tmp_path), "-D", "s3.endpoint"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m firesteel savepoint --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_table() -> None:
    lines = table(["state", "keys", "type"], [["sum", 1200, None], ["a\nb", 3, "Long"]], right=["keys"])
    assert lines == ["state  keys  type", "sum    1200  -", "a b       3  Long"]
    assert table(["only", "headers"], []) == ["only  headers"]


def test_figures() -> None:
    assert [bytes_text(size) for size in (0, 1023, 1024, 5 << 20, 3 << 30, 2 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
        "2.0 TiB",
    ]
    assert (count(1, "key"), count(0, "key"), count(2, "entry", "entries")) == ("1 key", "0 keys", "2 entries")
    assert time_text(0) == "1970-01-01 00:00:00 UTC"
