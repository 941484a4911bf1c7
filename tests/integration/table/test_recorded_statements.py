"""Statements one after the other: what is printed, and what is refused, is what was recorded from Flink 2.3."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.parser import SqlParserException
from firesteel.testing.in_process import InProcessExecutor

RECORDED = json.loads((Path(__file__).parent / "recorded" / "statements.json").read_text("utf-8"))
QUOTED_FUNCTIONS = ("DESCRIBE wm3",)
"""Where Flink quotes the name of a function: it does so for some of its own."""


def _environment(mode: str) -> TableEnvironment:
    created = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
    created.get_config().set("parallelism.default", "1").set_local_timezone("UTC")
    created._session.environment._executor = InProcessExecutor()
    return created


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_statements(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    environment = _environment(mode)
    wrong = []
    for recorded in RECORDED[mode]:
        difference = _difference(environment, recorded, capsys)
        if difference is not None:
            wrong.append((recorded["sql"], *difference))
    assert not wrong, "\n\n".join(f"{sql}\n--- Flink:\n{theirs}\n--- here:\n{ours}" for sql, theirs, ours in wrong)


def _difference(
    environment: TableEnvironment, recorded: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> tuple[str, str] | None:
    sql = recorded["sql"]
    try:
        result = environment.execute_sql(sql)
        result.print()
        schema = str(result.get_resolved_schema())
    except (FiresteelError, SqlParserException) as error:
        reasons = recorded.get("errors", ["no error"])
        fits = any(_first_line(reason) in str(error) for reason in reasons)
        return None if fits else ("\n".join(reasons), str(error))
    printed = capsys.readouterr().out
    if "printed" not in recorded:
        return "\n".join(recorded["errors"]), printed
    if printed != recorded["printed"] and sql not in QUOTED_FUNCTIONS:
        return recorded["printed"], printed
    return None if schema == recorded["schema"] else (recorded["schema"], schema)


def _first_line(reason: str) -> str:
    """What is wrong, without the place, for which there are other words here."""
    line = re.sub(r",? at line \d+, column \d+\.?", "", reason.splitlines()[0])
    return re.sub(r"^Unknown identifier ('\w+')$", r"Column \1 not found", line)
