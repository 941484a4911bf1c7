"""Programs of a shop leave the rows that Flink left: row by row, and in batches at another parallelism."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor
from tests.support.sql.shop import PROGRAMS, TABLES, statements, write_files

RECORDED = json.loads((Path(__file__).parent / "recorded" / "shop.json").read_text("utf-8"))
WAYS = [("1", "false", "hashmap"), ("3", "true", "rocksdb")]
"""Parallelism, mini-batches and the state backend."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the tables."""
    path = tmp_path_factory.mktemp("shop")
    write_files(path)
    return path


def run(script: str, directory: Path, out: Path, parallelism: str, mini_batch: str, backend: str) -> Any:
    """The rows that are left of a query, or the lines of each table that is written."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    configuration = environment.get_config().set("parallelism.default", parallelism)
    configuration.set("table.exec.mini-batch.enabled", mini_batch).set("state.backend.type", backend)
    configuration.set_local_timezone("UTC")
    environment._session.environment._executor = InProcessExecutor()
    for statement in statements(TABLES.replace("{path}", f"file://{directory}")):
        environment.execute_sql(statement)
    *first, last = statements(script.replace("{out}", str(out)))
    for statement in first:
        environment.execute_sql(statement)
    if last.startswith("EXECUTE"):
        environment.execute_sql(last).wait()
        return {
            table.name: sorted(line for file in table.iterdir() for line in file.read_text().splitlines())
            for table in sorted(out.iterdir())
        }
    rows: Counter[str] = Counter()
    with environment.execute_sql(last).collect() as changes:
        for row in changes:
            is_added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            rows[json.dumps([_plain(value) for value in row])] += 1 if is_added else -1
    return Counter({row: count for row, count in rows.items() if count})


def _plain(value: Any) -> Any:
    """A value as it is recorded."""
    if isinstance(value, datetime):
        return value.isoformat().removesuffix(":00")
    return str(value) if isinstance(value, (date, Decimal)) else value


@pytest.mark.parametrize("way", WAYS, ids=["row by row", "in batches"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_flinks_rows(name: str, way: tuple[str, str, str], directory: Path, tmp_path: Path) -> None:
    found = run(PROGRAMS[name], directory, tmp_path, *way)
    expected = RECORDED[name]
    assert found == (expected if isinstance(expected, dict) else Counter(map(json.dumps, expected)))
