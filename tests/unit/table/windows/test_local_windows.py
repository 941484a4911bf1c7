"""The local phase of window aggregations: what it emits, and that late rows are counted one by one."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.testing import FakeClock
from firesteel.types.logical import IntType, RowType, TimestampKind, TimestampType, VarCharType
from tests.support.sql_harness import HarnessTable, QueryHarness

TIME = TimestampType(3, TimestampKind.ROWTIME)
TYPE = RowType.of(["k", "ts", "v"], [VarCharType(), TIME, IntType()], nullable=False)
SECOND = 1_000_000_000
WINDOWS = {
    "TUMBLE": "INTERVAL '10' SECOND",
    "HOP": "INTERVAL '5' SECOND, INTERVAL '10' SECOND",
    "CUMULATE": "INTERVAL '5' SECOND, INTERVAL '10' SECOND",
}


def harness(function: str, phase: str, keys: str = "k, ") -> QueryHarness:
    sql = (
        f"SELECT {keys}window_start, COUNT(*), SUM(v), MAX(v), COUNT(DISTINCT v) "
        f"FROM TABLE({function}(TABLE t, DESCRIPTOR(ts), {WINDOWS[function]})) GROUP BY {keys}window_start, window_end"
    )
    tables = {"t": HarnessTable("t", TYPE)}
    return QueryHarness(sql, tables, {"table.optimizer.agg-phase-strategy": phase}, FakeClock())


def rows(*values: tuple[Any, int, Any]) -> list[Any]:
    return [("+I", (key, second * SECOND, value)) for key, second, value in values]


@pytest.mark.parametrize("keys", ["k, ", ""])
@pytest.mark.parametrize("function", WINDOWS)
def test_both_ways_have_the_same_results(function: str, keys: str) -> None:
    found = []
    for phase in ("ONE_PHASE", "TWO_PHASE"):
        query = harness(function, phase, keys)
        query.push("t", rows(("a", 1, 5), ("b", 2, None), ("a", 3, 5), (None, 4, 7), ("a", 12, 1)))
        query.push("t", rows(("a", 9, 9), ("c", 1, 1), (None, 21, None)))
        query.watermark(14_000)
        query.push("t", rows(("a", 2, 100), ("b", 3, 100), ("a", 13, 2), ("a", 4, 100)))
        query.push("t", rows(*((f"k{number}", 16 + number % 7, number) for number in range(2000))))
        query.push("t", rows(*((f"k{number}", 17, number) for number in range(600))))
        query.watermark(60_000)
        found.append((sorted(map(repr, query.take())), query.late_rows()))
    assert found[0] == found[1]
    assert found[0][1] == 3
