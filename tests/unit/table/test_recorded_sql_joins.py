"""Join queries, row by row, against the changelogs that Flink 2.3 has made of the same rows.

``scripts/record_sql_joins.py`` has recorded them. Rows that one row causes may come in any order. If it changes several
inputs of a query, Flink reads these in any order, too: then what the changes amount to is compared. So it is with
mini-batches, which leave out rows that come and go at once.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.table import DataTypes
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import TableScan, walk
from firesteel.types.logical import LogicalType, RowType, TimestampKind, TimestampType
from tests.support.sql_harness import Change, HarnessTable, QueryHarness

DIRECTORY = Path(__file__).parent / "joins"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
INT, BIGINT, STRING = DataTypes.INT(), DataTypes.BIGINT().not_null(), DataTypes.STRING()
ROWTIME = TimestampType(3, TimestampKind.ROWTIME)
ALL = ChangelogMode.all()


def table(
    name: str, columns: dict[str, LogicalType], updating: bool = False, key: tuple[int, ...] = ()
) -> HarnessTable:
    type_ = RowType.of(list(columns), list(columns.values()), nullable=False)
    return HarnessTable(name, type_, ALL if updating else ChangelogMode.insert_only(), key)


TABLES = {
    found.name: found
    for found in (
        table("l", {"k": INT, "v": INT, "s": STRING}),
        table("r", {"k": INT, "v": INT, "s": STRING}),
        table("lk", {"k": INT, "m": INT}, True, (0,)),
        table("rk", {"k": INT, "m": INT}, True, (0,)),
        table("lq", {"k": INT, "n": BIGINT}, True, (0,)),
        table("rq", {"k": INT, "n": BIGINT}, True, (0,)),
        table("lc", {"n": BIGINT, "c": BIGINT}, True, (0,)),
        table("rc", {"n": BIGINT, "c": BIGINT}, True, (0,)),
        table("rd", {"n": BIGINT}, True, (0,)),
        table("rs", {"k": INT, "m": INT}, True, (0,)),
        table("total", {"top": INT, "n": BIGINT}, True),
        table("lt", {"k": INT, "v": INT, "ts": ROWTIME}),
        table("rt", {"k": INT, "v": INT, "ts": ROWTIME}),
        table("rv", {"k": INT, "v": INT, "ts": ROWTIME}, True, (0,)),
    )
}


def _statements() -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in (DIRECTORY / "queries.txt").read_text().splitlines():
        if line.startswith("-- "):
            name = line[3:].strip()
        elif line.strip():
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


QUERIES = _statements()
STEPS: list[dict[str, list[str]]] = json.loads((DIRECTORY / "steps.json").read_text())
EVENTS = (DIRECTORY / "events.txt").read_text().split()


def _value(text: str, type_: LogicalType) -> Any:
    if text == "null":
        return None
    if isinstance(type_, TimestampType):
        return int((datetime.fromisoformat(text) - EPOCH).total_seconds()) * 10**9
    return text if type_ == STRING else int(text)


def _change(line: str, type_: RowType) -> Change:
    values = line[3:-1].split(", ")
    return line[:2], tuple(_value(text, part.type) for text, part in zip(values, type_.fields, strict=True))


def _text(value: Any, type_: LogicalType) -> str:
    if value is None:
        return "null"
    if isinstance(type_, TimestampType):
        time = (EPOCH + timedelta(microseconds=value // 1000)).isoformat()
        return time.removesuffix(":00") if time.endswith(":00") else time
    return str(value)


def _lines(changes: list[Change], type_: RowType) -> list[str]:
    return sorted(
        f"{kind}[{', '.join(_text(value, part.type) for value, part in zip(row, type_.fields, strict=True))}]"
        for kind, row in changes
    )


def _sum(lines: list[str]) -> list[str]:
    """The rows that changes add, with ``+``, and remove."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts[line[2:]] += 1 if line[0] == "+" else -1
    return sorted(f"{count:+}{row}" for row, count in counts.items() if count)


def _latest_times() -> list[int]:
    """The latest event time in seconds at the end of each step; the first step may have two source rows."""
    rows = iter(EVENTS)
    latest, found = 0, []
    for step in STEPS:
        for _ in range(len(step.get("l", [])) + len(step.get("r", [])) or 1):
            latest = max(latest, int(next(rows).split(",")[4]))
        found.append(latest)
    assert not list(rows)
    return found


TIMES = _latest_times()


def test_the_recording_is_complete() -> None:
    assert len(EVENTS) - 1 <= len(STEPS) <= len(EVENTS)
    assert {name for step in STEPS for name in step} >= QUERIES.keys() - {"not_in_nulls"}
    assert len(QUERIES) >= 50


@pytest.mark.parametrize("name", QUERIES)
def test_changes_are_those_of_flink(name: str) -> None:
    _compare(name, QUERIES[name])


@pytest.mark.parametrize("name", [name for name in QUERIES if name.startswith("temporal")])
def test_a_query_for_the_last_rows_is_a_versioned_table(name: str) -> None:
    last = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS num FROM rt"
    view = f"WITH last_rows AS (SELECT k, v, ts FROM ({last}) WHERE num = 1)"
    _compare(name, f"{view} {QUERIES[name].replace(' rv ', ' last_rows ')}")


def _compare(name: str, sql: str) -> None:
    _compare_changes(name, QueryHarness(sql, TABLES, {"table.exec.mini-batch.enabled": "false"}), exact=True)
    _compare_changes(name, QueryHarness(sql, TABLES), exact=False)


def _compare_changes(name: str, query: QueryHarness, *, exact: bool) -> None:
    inputs = {node.identifier.object_name for node in walk(query.plan) if isinstance(node, TableScan)}
    for number, (step, latest) in enumerate(zip(STEPS, TIMES, strict=True)):
        for input_name, lines in step.items():
            if input_name in TABLES:
                query.push(input_name, [_change(line, TABLES[input_name].type) for line in lines])
        query.watermark(MAX_WATERMARK if number == len(STEPS) - 1 else 1_577_836_800_000 + latest * 1000 - 2000)
        ours, flinks = _lines(query.take(), query.plan.row_type), sorted(step.get(name, []))
        if len(inputs & step.keys()) > 1 or not exact:
            ours, flinks = _sum(ours), _sum(flinks)
        assert ours == flinks, number
