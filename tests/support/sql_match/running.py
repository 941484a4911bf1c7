"""Runs queries over the tables of this folder step by step: each row brings its watermark, as in the recordings."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from firesteel.table.bound.session import Session
from firesteel.table.casts.row import cast_row
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.time_attributes import is_rowtime, regular
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType, RowField, RowType, TimestampKind
from tests.support.sql_harness import HarnessTable, QueryHarness
from tests.support.sql_match.queries import TABLES

__all__ = ["as_text", "harness_tables", "run", "run_bounded", "types_of", "write_tables"]

DELAY_MS = 2_000
_COLUMNS = ["id", "k", "v", "w", "s", "b", "d", "ts"]
_TIMESTAMP = t.TimestampType(3)
_TYPES: list[LogicalType] = [
    t.IntType(),
    t.VarCharType(),
    t.IntType(),
    t.DoubleType(),
    t.VarCharType(),
    t.BooleanType(),
    t.DecimalType(8, 2),
    _TIMESTAMP,
]
_ROWTIME = t.TimestampType(3, TimestampKind.ROWTIME)
_LTZ_ROWTIME = t.LocalZonedTimestampType(3, TimestampKind.ROWTIME)
_PROCTIME = t.LocalZonedTimestampType(3, TimestampKind.PROCTIME, nullable=False)


def harness_tables() -> dict[str, HarnessTable]:
    """The tables into which rows are pushed."""
    inner = RowType.of(["x", "y"], [t.IntType(), t.VarCharType()])
    types = {
        "t": RowType.of(_COLUMNS, [*_TYPES[:-1], _ROWTIME], nullable=False),
        "p": RowType.of([*_COLUMNS, "pt"], [*_TYPES, _PROCTIME], nullable=False),
        "z": RowType.of([*_COLUMNS, "tl"], [*_TYPES, _LTZ_ROWTIME], nullable=False),
        "n": RowType.of(
            ["id", "k", "v", "r", "ts"],
            [
                t.IntType(nullable=False),
                t.VarCharType(nullable=False),
                t.BigIntType(nullable=False),
                inner,
                t.TimestampType(3, TimestampKind.ROWTIME, nullable=False),
            ],
            nullable=False,
        ),
    }
    return {name: HarnessTable(name, type_) for name, type_ in types.items()}


def internal(row: list[Any]) -> tuple[Any, ...]:
    """A row of the tables with values as the engine has them."""
    *values, amount, time = row
    return (*values, Decimal(amount), _nanos(time))


def _nanos(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    return int(moment.timestamp()) * 10**9


class MatchHarness(QueryHarness):
    """Keeps the plan as it was bound."""

    def _optimized(self, query: LogicalNode, options: Any) -> LogicalNode:
        self.bound = query
        return super()._optimized(query, options)


def types_of(query: LogicalNode) -> list[list[str]]:
    """The columns of a query with their types."""
    return [[part.name, part.type.as_summary_string()] for part in query.row_type.fields]


Results = tuple[list[list[str]], list[tuple[Any, ...]]]
"""The columns of a query, and its rows as texts."""


def run(sql: str) -> Results:
    """What a query gives if each row brings its watermark, as when it was recorded."""
    harness = MatchHarness(sql, harness_tables(), session=Session(now=lambda: 0))
    latest = 0
    for row in TABLES["t"][1]:
        values = internal(row)
        latest = max(latest, values[-1])
        for name in _tables_of(sql):
            harness.push(name, [("+I", values if name == "t" else (*values, values[-1]))])
        harness.watermark(latest // 10**6 - DELAY_MS)
    return _results(harness)


def run_bounded(sql: str) -> Results:
    """What a query gives in batch mode, where tables have no row time."""
    tables = {name: replace(table, type=_without_rowtime(table.type)) for name, table in harness_tables().items()}
    harness = MatchHarness(sql, tables, session=Session(now=lambda: 0, is_streaming=False))
    rows = [internal(row) for row in TABLES["t"][1]]
    for name in _tables_of(sql):
        harness.push(name, [("+I", row if name == "t" else (*row, row[-1])) for row in rows])
    return _results(harness)


def _tables_of(sql: str) -> list[str]:
    return [name for name in ("t", "p", "z") if re.search(rf"(FROM|JOIN) {name}\b", sql)]


def _without_rowtime(type_: RowType) -> RowType:
    fields = [RowField(part.name, regular(part.type) if is_rowtime(part.type) else part.type) for part in type_.fields]
    return RowType(fields, nullable=False)


def _results(harness: MatchHarness) -> Results:
    harness.watermark(2**63 - 1)
    types = [part.type for part in harness.plan.row_type.fields]
    left: list[tuple[Any, ...]] = []
    for kind, result in harness.take():
        texts = tuple(as_text(value, type_) for value, type_ in zip(result, types, strict=True))
        if kind in ("+I", "+U"):
            left.append(texts)
        else:
            left.remove(texts)
    harness.close()
    return types_of(harness.bound), left


def as_text(value: Any, type_: LogicalType) -> str | None:
    """A value as CAST(… AS STRING) gives it."""
    if value is None:
        return None
    convert = cast_row(type_, t.VarCharType(), False, Session())
    return str(value if convert is None else convert(value))


def write_tables(directory: Path) -> None:
    """Writes the rows of the tables as files."""
    for name, (_, rows) in TABLES.items():
        with (directory / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["" if value is None else value for value in row] for row in rows])
