"""Aggregates whose distinct values are split into buckets have the results of those that are not."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Aggregate, walk
from firesteel.table.plan.windows import WindowAggregate
from firesteel.table.translate.signatures import signature_of
from firesteel.types.logical import LocalZonedTimestampType, RowField, RowType, TimestampKind, TimestampType
from tests.support.sql_harness import Change, HarnessTable, QueryHarness

ENABLED = "table.optimizer.distinct-agg.split.enabled"
BUCKETS = "table.optimizer.distinct-agg.split.bucket-num"
SPLIT = {ENABLED: "true", BUCKETS: "3"}
ROW_TYPE = RowType.of(
    ["k", "s", "n", "t", "d", "x", "b", "l", "ts"],
    [
        DataTypes.INT(),
        DataTypes.STRING(),
        DataTypes.INT(),
        DataTypes.TINYINT(nullable=False),
        DataTypes.DECIMAL(10, 8),
        DataTypes.DOUBLE(),
        DataTypes.BOOLEAN(),
        DataTypes.STRING(),
        TimestampType(3, TimestampKind.ROWTIME, nullable=False),
    ],
    nullable=False,
)
TABLES = {
    "t": HarnessTable("t", ROW_TYPE),
    "u": HarnessTable("u", ROW_TYPE, ChangelogMode.all()),
}
RECORDED = json.loads((Path(__file__).parent / "recorded" / "split_distinct.json").read_text("utf-8"))
LONG = "a text of more than two hundred and fifty-six bytes " * 6

CALLS = [
    "COUNT(DISTINCT s)",
    "COUNT(DISTINCT n), COUNT(*), SUM(n), MIN(n), MAX(n), AVG(n)",
    "COUNT(DISTINCT s), COUNT(DISTINCT n), SUM(DISTINCT n), AVG(DISTINCT n), COUNT(b), MIN(s), MAX(DISTINCT n)",
    "COUNT(DISTINCT s) FILTER (WHERE b), SUM(DISTINCT t) FILTER (WHERE n > 2), COUNT(*) FILTER (WHERE b), AVG(t)",
    "COUNT(DISTINCT s) FILTER (WHERE b), COUNT(DISTINCT s) FILTER (WHERE NOT b), COUNT(DISTINCT s), SUM(t)",
    "AVG(d), AVG(DISTINCT d), SUM(DISTINCT d), COUNT(DISTINCT x), MAX(d)",
    "COUNT(DISTINCT s, n), COUNT(DISTINCT n), MIN(t), COUNT(DISTINCT k), COUNT(DISTINCT l)",
]
MODES: list[dict[str, str]] = [
    {},
    {"table.exec.mini-batch.enabled": "false"},
    {"table.optimizer.agg-phase-strategy": "TWO_PHASE"},
]
GROUPINGS = ["", "GROUP BY k", "GROUP BY GROUPING SETS ((k, s), (k), ())", "GROUP BY CUBE (n, b)"]


def drawn_row(rng: random.Random, number: int) -> tuple[Any, ...]:
    """A row with few different values and many nulls."""
    x = rng.choice([None, 0.0, -0.0, math.nan, 1.5])
    return (
        rng.choice([1, 1, 1, 2, None]),
        rng.choice([None, *"abcdef"]),
        rng.choice([None, *range(8)]),
        rng.randrange(-9, 9),
        rng.choice(
            [None, Decimal("1.23456789"), Decimal("-0.00000001"), Decimal("99.5").quantize(Decimal("0.00000001"))]
        ),
        x,
        rng.choice([None, True, False]),
        rng.choice([None, LONG, LONG + "!"]),
        number * 100,
    )


def drawn_changes(rng: random.Random, count: int) -> list[Change]:
    """Insertions, and deletions and updates of rows that are there."""
    rows: list[tuple[Any, ...]] = []
    changes: list[Change] = []
    for number in range(count):
        row = drawn_row(rng, number)
        if rows and rng.random() < 0.5:
            old = rows.pop(rng.randrange(len(rows)))
            if rng.random() < 0.5:
                changes.append(("-D", old))
                continue
            changes += [("-U", old), ("+U", row)]
        else:
            changes.append(("+I", row))
        rows.append(row)
    return changes


def results(sql: str, options: dict[str, str], batches: list[list[Change]]) -> Counter[Any]:
    """The rows that are left of a query."""
    name = "u" if " FROM u" in sql else "t"
    query = QueryHarness(sql, TABLES, options)
    left: Counter[Any] = Counter()
    for batch in batches:
        query.push(name, batch)
        query.watermark(max((row[-1] for _, row in batch), default=0) - 1000)
    query.watermark(1 << 60)
    for kind, row in query.take():
        left[tuple(_comparable(value) for value in row)] += 1 if kind in ("+I", "+U") else -1
    query.close()
    assert min(left.values(), default=0) >= 0
    return +left


def _comparable(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def batches_of(changes: list[Change]) -> list[list[Change]]:
    """Batches of different sizes."""
    return [changes[start : start + 23] for start in range(0, len(changes), 23)]


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("table", ["t", "u"])
def test_results_are_those_of_the_whole(table: str, grouping: str) -> None:
    rng = random.Random(f"{table} {grouping}")
    changes = [("+I", drawn_row(rng, n)) for n in range(60)] if table == "t" else drawn_changes(rng, 80)
    key = grouping.replace("GROUP BY ", "") if "GROUP BY k" in grouping else "0"
    for number, calls in enumerate(CALLS):
        sql = f"SELECT {key}, {calls} FROM {table} {grouping}"
        whole = results(sql, {}, batches_of(changes))
        assert whole, sql
        mode = MODES[(number + GROUPINGS.index(grouping)) % len(MODES)]
        assert results(sql, {**SPLIT, **mode}, batches_of(changes)) == whole, (sql, mode)


@pytest.mark.parametrize(
    "window", ["TUMBLE({}, INTERVAL '2' SECOND)", "HOP({}, INTERVAL '1' SECOND, INTERVAL '3' SECOND)"]
)
def test_windows_are_split(window: str) -> None:
    rng = random.Random(window)
    changes: list[Change] = [("+I", drawn_row(rng, n)) for n in range(150)]
    function = window.format("TABLE t, DESCRIPTOR(ts)")
    for calls in (CALLS[0], CALLS[2], CALLS[3]):
        sql = f"SELECT window_start, window_end, k, {calls} FROM TABLE({function}) GROUP BY k, window_start, window_end"
        assert parts(sql) == ["FINAL", "PARTIAL"]
        assert results(sql, SPLIT, batches_of(changes)) == results(sql, {}, batches_of(changes))


def parts(sql: str, options: dict[str, str] | None = None) -> list[str]:
    """The parts of the aggregates of a plan."""
    plan = QueryHarness(sql, TABLES, SPLIT if options is None else options).plan
    return [
        node.split.phase
        for node in walk(plan)
        if isinstance(node, (Aggregate, WindowAggregate)) and node.split is not None
    ]


def test_what_is_split_in_flink() -> None:
    """Functions whose results depend on the order of rows stay whole: buckets have no order among each other."""
    time = LocalZonedTimestampType(3, TimestampKind.PROCTIME, nullable=False)
    fields = [*ROW_TYPE.fields, RowField("p", time)]
    tables = {"t": HarnessTable("t", RowType(fields, nullable=False))}
    for sql, is_split in RECORDED.items():
        expected = is_split and "LISTAGG" not in sql and "LAST_VALUE" not in sql
        found = [node for node in walk(QueryHarness(sql, tables, SPLIT).plan) if getattr(node, "split", None)]
        assert bool(found) == expected, sql


def test_the_options() -> None:
    sql = "SELECT k, COUNT(DISTINCT s) FROM t GROUP BY k"
    assert parts(sql, {}) == []
    plan = QueryHarness(sql, TABLES, {ENABLED: "true"}).plan
    assert "$BUCKET(s, 1024)" in plan.explain()
    with pytest.raises(ValidationError, match="must be positive"):
        parts(sql, {ENABLED: "true", BUCKETS: "0"})


def test_state_of_another_number_of_buckets_is_not_restored() -> None:
    sql = "SELECT k, COUNT(DISTINCT s) FROM t GROUP BY k"
    found = [
        [
            signature_of(node, is_named=True)
            for node in walk(QueryHarness(sql, TABLES, {ENABLED: "true", BUCKETS: number}).plan)
            if isinstance(node, Aggregate)
        ]
        for number in ("4", "8", "8")
    ]
    assert found[1] == found[2]
    assert not set(found[0]) & set(found[1])
