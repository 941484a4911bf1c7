"""Every ``firesteel run`` and ``firesteel info`` that the documentation shows is one that the command understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from firesteel.cli import info, run
from firesteel.cli.main import main, parser
from firesteel.cli.savepoint import with_verb
from firesteel.cli.terminal.command_parser import CommandParser
from firesteel.cli.terminal.settings import program_settings

ROOT = Path(__file__).parents[3]
COMMAND = re.compile(r"^(?:\$ |[\d*/ ]+ )firesteel ((?:run|info) .*)$", re.MULTILINE)


def documented() -> list[str]:
    return [command for page in sorted((ROOT / "docs").glob("*.md")) for command in COMMAND.findall(page.read_text())]


def test_there_are_some() -> None:
    assert len(documented()) > 8
    assert any("--available-now" in command and "s3://" in command for command in documented())  # the line for cron


@pytest.mark.parametrize("command", documented())
def test_it_is_understood(command: str) -> None:
    top = CommandParser()
    verbs = top.add_subparsers()
    run.register(verbs)
    info.register(verbs)
    options = top.parse_args(shlex.split(command))
    assert program_settings(options) is not None
    if options.program.startswith("examples/"):
        assert (ROOT / options.program).is_file()


@pytest.mark.parametrize("command", [c for c in documented() if c.startswith("info ") or "--explain" in c])
def test_plans_are_shown(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr()
    assert "pipelined" in printed.out or "blocking" in printed.out


def of_the_command_line() -> list[str]:
    text = (ROOT / "docs" / "cli.md").read_text()
    return re.findall(r"^\$ firesteel (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("command", of_the_command_line())
def test_commands_of_the_command_lines_own_page(command: str) -> None:
    options = parser().parse_args(with_verb(shlex.split(command)))
    assert callable(options.run)


def test_every_verb_has_its_place_on_the_page() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    verbs = next(action for action in parser()._actions if isinstance(action.choices, dict)).choices
    assert verbs is not None
    assert [verb for verb in verbs if f"`{verb}" not in text] == []
