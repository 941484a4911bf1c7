"""Programs of several statements leave the rows that Flink left, in batches and row by row."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.types import RowKind
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor

HERE = Path(__file__).parent / "recorded"
TABLES = json.loads((HERE / "program_inputs.json").read_text("utf-8"))["tables"]
PROGRAMS = json.loads((HERE / "program_inputs.json").read_text("utf-8"))["programs"]
RECORDED = json.loads((HERE / "programs.json").read_text("utf-8"))
WAYS = [("1", "false", "hashmap"), ("4", "true", "rocksdb")]
"""Parallelism, mini-batches and the state backend."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the tables."""
    path = tmp_path_factory.mktemp("programs")
    for table in TABLES:
        (path / f"{table['name']}.json").write_text("\n".join(map(json.dumps, table["rows"])))
    return path


def _run(program: dict[str, Any], directory: Path, parallelism: str, mini_batch: str, backend: str) -> Counter[str]:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    configuration = environment.get_config().set("parallelism.default", parallelism)
    configuration.set("table.exec.mini-batch.enabled", mini_batch).set("state.backend.type", backend)
    configuration.set_local_timezone(program["zone"])
    environment._session.environment._executor = InProcessExecutor()
    for table in TABLES:
        options = f"'path' = 'file://{directory}/{table['name']}.json', 'format' = '{table['format']}'"
        environment.execute_sql(
            f"CREATE TABLE {table['name']} ({table['columns']}) WITH ('connector' = 'filesystem', {options})"
        )
    for statement in program["setup"]:
        environment.execute_sql(statement)
    rows: Counter[str] = Counter()
    with environment.execute_sql(program["query"]).collect() as changes:
        for row in changes:
            is_added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            rows[_text(list(row))] += 1 if is_added else -1
    return Counter({row: count for row, count in rows.items() if count})


def _text(values: list[Any]) -> str:
    return json.dumps([_plain(value) for value in values])


def _plain(value: Any) -> Any:
    """A value as it is recorded."""
    if isinstance(value, datetime):
        return value.isoformat().removesuffix(":00")
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return sorted([_plain(key), _plain(item)] for key, item in value.items())
    return [_plain(item) for item in value] if isinstance(value, (list, tuple, Row)) else value


def test_all_programs_are_recorded() -> None:
    assert [found["program"] for found in RECORDED] == PROGRAMS
    assert [found["program"] for found in RECORDED if isinstance(found["rows"], str)] == []


@pytest.mark.parametrize("way", WAYS, ids=["row by row", "in batches"])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["program"]["query"])
def test_a_program_leaves_flinks_rows(recorded: dict[str, Any], way: tuple[str, str, str], directory: Path) -> None:
    assert _run(recorded["program"], directory, *way) == Counter(map(_text, recorded["rows"]))
