"""Aggregates in streaming queries: changelogs recorded from Flink 2.3, and phases and options that change no result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.table import DataTypes, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.nodes import LogicalNode
from firesteel.types.internal import to_column
from tests.support.sql_expressions import from_recorded, logical_type
from tests.support.sql_streams import Tables, materialized

HERE = Path(__file__).parent / "recorded"
INPUTS = json.loads((HERE / "changelog_inputs.json").read_text())
RECORDED = json.loads((HERE / "changelogs.json").read_text())
TYPES = {name: logical_type(text) for name, text in INPUTS["columns"]}
ANY_ORDER = [(sql, changes) for sql, changes in RECORDED if "LISTAGG" not in sql]
"""Queries whose results do not depend on the order in which subtasks come."""
PER_ROW = {"table.exec.mini-batch.enabled": "false"}
PHASES = [{"table.optimizer.agg-phase-strategy": name} for name in ("ONE_PHASE", "TWO_PHASE")]


def _row(values: list[Any]) -> tuple[Any, ...]:
    return tuple(from_recorded(value, type_) for value, type_ in zip(values, TYPES.values(), strict=True))


def _tables(configuration: dict[str, str]) -> Tables:
    tables = Tables(configuration)
    changes: list[tuple[RowKind, tuple[Any, ...]]] = []
    for operation, *rows in INPUTS["changes"]:
        kinds = {"c": [RowKind.INSERT], "u": [RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER], "d": [RowKind.DELETE]}
        changes += [(kind, _row(row)) for kind, row in zip(kinds[operation], rows, strict=True)]
    tables.add("t", TYPES, [row for _, row in changes], [kind for kind, _ in changes])
    tables.add("i", TYPES, [_row(rows[0]) for operation, *rows in INPUTS["changes"] if operation == "c"])
    return tables


def _expected(plan: LogicalNode, changes: list[list[Any]]) -> list[tuple[str, tuple[Any, ...]]]:
    """Recorded changes with values as a stream of rows has them."""
    types = [part.type for part in plan.row_type.fields]
    columns = zip(*([from_recorded(v, t) for v, t in zip(row[1:], types, strict=True)] for row in changes), strict=True)
    arrays = [to_column(values, type_).to_pylist() for values, type_ in zip(columns, types, strict=True)]
    return [(row[0], values) for row, values in zip(changes, zip(*arrays, strict=True), strict=True)]


@pytest.mark.parametrize(("sql", "changes"), RECORDED, ids=[sql for sql, _ in RECORDED])
def test_changes_row_by_row_are_those_of_flink(sql: str, changes: list[list[Any]]) -> None:
    tables = _tables(PER_ROW)
    assert tables.run(sql, 1) == _expected(tables.plan(sql), changes)


@pytest.mark.parametrize("configuration", PHASES, ids=["one phase", "two phases"])
@pytest.mark.parametrize(("sql", "changes"), ANY_ORDER, ids=[sql for sql, _ in ANY_ORDER])
def test_batches_and_phases_have_the_same_result(
    sql: str, changes: list[list[Any]], configuration: dict[str, str]
) -> None:
    tables = _tables(configuration)
    assert tables.result(sql) == materialized(_expected(tables.plan(sql), changes))


def test_a_function_without_retraction_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValidationError, match="does not support retraction"):
        _tables({}).run("SELECT k, APPROX_COUNT_DISTINCT(n) FROM t GROUP BY k")


def test_groups_in_a_table_environment(table_env: TableEnvironment) -> None:
    rows = table_env.execute_sql(
        "SELECT name, COUNT(*) AS c, SUM(DISTINCT v) AS s FROM "
        "(VALUES ('a', 1), ('b', 2), ('a', 1), ('a', 5)) AS t(name, v) GROUP BY name HAVING COUNT(*) < 10"
    )
    found: dict[Any, Any] = {}
    with rows.collect() as results:
        for row in results:
            if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                found[row[0]] = tuple(row)[1:]
    assert found == {"a": (3, 6), "b": (1, 2)}


def test_percentiles_have_flinks_digits() -> None:
    tables = Tables()
    tables.add("t", {"n": DataTypes.INT()}, [(74,), (90,)])
    assert tables.result("SELECT PERCENTILE(n, 0.1), PERCENTILE(n, 0.9) FROM t") == [(75.6, 88.39999999999999)]


def test_time_to_live_is_read_from_the_session() -> None:
    tables = Tables({"table.exec.state.ttl": "1 h"})
    tables.add("t", {"k": DataTypes.INT(), "n": DataTypes.INT()}, [(1, 5), (1, 4)])
    # with time-to-live a result is emitted again although it is the same
    tables_per_row = Tables({"table.exec.state.ttl": "1 h", **PER_ROW})
    tables_per_row.add("t", {"k": DataTypes.INT(), "n": DataTypes.INT()}, [(1, 5), (1, 4)])
    assert tables_per_row.run("SELECT k, MAX(n) FROM t GROUP BY k", 1) == [
        ("+I", (1, 5)),
        ("-U", (1, 5)),
        ("+U", (1, 5)),
    ]
    assert tables.result("SELECT k, MAX(n) FROM t GROUP BY k") == [(1, 5)]
