"""Late rows, and early and late results of group windows, against the changes that Flink emitted for the same rows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.testing.in_process import InProcessExecutor
from tests.support.sql_windows.tables import RECORDED

INPUTS: dict[str, Any] = json.loads((RECORDED / "late_rows_inputs.json").read_text("utf-8"))
PROGRAMS: list[Any] = json.loads((RECORDED / "late_rows.json").read_text("utf-8"))
REFUSED = [found for found in PROGRAMS if isinstance(found["changes"], str)]
RUN = [found for found in PROGRAMS if not isinstance(found["changes"], str)]
EMITTING = [
    found
    for found in RUN
    # the order of changes of different keys is not defined
    if any("fire.enabled" in key for key in found["program"]["options"]) and "SUM(c)" not in found["program"]["query"]
]
PARTS = 8


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["" if value is None else value for value in row] for row in INPUTS["rows"]])
    return path


def execute(program: dict[str, Any], path: Path, settings: dict[str, str]) -> list[list[Any]]:
    """The changes of a program."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment._session.environment._executor = InProcessExecutor()
    for key, value in {"parallelism.default": "1", **program["options"], **settings}.items():
        environment.get_config().set(key, value)
    environment.execute_sql(
        f"CREATE TABLE s ({INPUTS['columns']}, WATERMARK FOR ts AS {program['watermark']}) WITH ("
        f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'csv.null-literal' = '')"
    )
    with environment.execute_sql(program["query"]).collect() as rows:
        return [[str(row.get_row_kind()), *map(_plain, row)] for row in rows]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else _time(value)


def _time(value: Any) -> str:
    return str(value.isoformat(timespec="milliseconds")).replace(".000", "")


def left_of(changes: list[list[Any]]) -> Counter[str]:
    """The rows that are left of a changelog, and how often."""
    left: Counter[str] = Counter()
    for kind, *row in changes:
        left[_text(row)] += 1 if kind in ("+I", "+U") else -1
    assert all(count >= 0 for count in left.values())
    return +left


def _text(row: list[Any]) -> str:
    # Java leaves out seconds that are zero
    return json.dumps([f"{value}:00" if len(str(value)) == len("2024-01-01T00:00") else value for value in row])


def by_window(changes: list[list[Any]]) -> dict[str, list[str]]:
    """The changes of each window of a key, in order."""
    found: dict[str, list[str]] = {}
    for kind, *row in changes:
        found.setdefault(_text([value for value in row if isinstance(value, str)]), []).append(kind + _text(row))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_the_rows_that_are_left_are_those_of_flink(part: int, rows_path: Path) -> None:
    for found in RUN[part::PARTS]:
        ours, flinks = left_of(execute(found["program"], rows_path, {})), left_of(found["changes"])
        if "RANGE BETWEEN" in found["program"]["query"]:
            # Flink takes late rows of keys whose state it has removed meanwhile
            assert len(flinks - ours) <= 2
            flinks = flinks & ours
        assert ours == flinks, found["program"]


def test_two_phases_drop_the_same_rows(rows_path: Path) -> None:
    programs = [
        found for found in RUN if "TABLE(" in found["program"]["query"] and "SUM(v)" in found["program"]["query"]
    ]
    for found in programs[::2]:
        changes = execute(found["program"], rows_path, {"table.optimizer.agg-phase-strategy": "TWO_PHASE"})
        assert left_of(changes) == left_of(found["changes"]), found["program"]


@pytest.mark.parametrize("part", range(PARTS))
def test_windows_that_emit_row_by_row_have_the_changes_of_flink(part: int, rows_path: Path) -> None:
    for found in EMITTING[part::PARTS]:
        changes = execute(found["program"], rows_path, {"table.exec.mini-batch.enabled": "false"})
        assert by_window(changes) == by_window(found["changes"]), found["program"]


def test_what_flink_refuses(rows_path: Path) -> None:
    assert len(REFUSED) > 5
    for found in REFUSED:
        with pytest.raises(ValidationError, match=r"Early-fire|Late-fire|AFTER WATERMARK|Session window|early-fire"):
            execute(found["program"], rows_path, {})


def test_an_unknown_strategy_of_watermarks_is_refused(rows_path: Path) -> None:
    program = {
        "options": {},
        "watermark": "ts",
        "query": "SELECT * FROM s /*+ OPTIONS('scan.watermark.emit.strategy'='x') */",
    }
    with pytest.raises(ValidationError, match=r"scan\.watermark\.emit\.strategy"):
        execute(program, rows_path, {})
    program["query"] = "SELECT COUNT(*) FROM s /*+ OPTIONS('scan.watermark.emit.strategy'='on-event') */"
    assert left_of(execute(program, rows_path, {})) == {f"[{len(INPUTS['rows'])}]": 1}
