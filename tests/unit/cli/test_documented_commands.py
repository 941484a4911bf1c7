"""The commands of docs/savepoints.md do what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from firesteel.cli.main import main
from firesteel.runtime.model.state_handles import StateMeta
from tests.support.checkpoints.savepoints import Keyed, Operator, write_savepoint

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Each command with the lines the page shows behind it."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall((ROOT / "docs" / "savepoints.md").read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, shown) for command, shown in found if command.startswith("firesteel ")]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    spent = {"ada": 120.0, "grace": 80.5, "ken": 9.5}
    total = Keyed(StateMeta("total", "value", "Double"), spent)
    orders = Operator("Source: Collection Source", "orders", lists={"_splits": ("split", [["orders"], []])})
    write_savepoint(
        tmp_path / "savepoints" / "totals", [orders, Operator("Total", "totals", [total])], job_name="totals"
    )
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    documented = commands()
    assert {command.split()[2] for command, _ in documented} == {"inspect", "diff", "dispose"}
    for command, shown in documented:
        assert main(shlex.split(command)[1:]) == 0, command
        printed = capsys.readouterr()
        assert printed.err == ""
        if shown:
            assert printed.out.splitlines() == shown, command
