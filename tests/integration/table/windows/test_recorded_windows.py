"""Queries of windows in process, against the results of Flink."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from firesteel.table.bound.errors import ValidationError
from tests.support.sql_windows.running import bind, comparable, stream_of
from tests.support.sql_windows.tables import RECORDED

RESULTS: dict[str, Any] = json.loads((RECORDED / "results.json").read_text("utf-8"))
RUN = {query: found for query, found in RESULTS.items() if "rows" in found}
REFUSED = {query: found for query, found in RESULTS.items() if "error" in found}


def in_order(rows: list[Any]) -> list[Any]:
    """The rows; of a changelog with updates those that are left in the end, since batches fold changes."""
    if all(row[0] == "INSERT" for row in rows):
        return sorted(rows, key=json.dumps)
    left: Counter[str] = Counter()
    for kind, *row in rows:
        left[json.dumps(row)] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    return sorted((["INSERT", *json.loads(row)] for row in left.elements()), key=json.dumps)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("query", RUN)
def test_results(query: str, parallelism: int, in_process_env: Any) -> None:
    stream = stream_of(query, in_process_env(parallelism))
    assert in_order(list(map(comparable, stream.execute_and_collect()))) == in_order(RUN[query]["rows"])


@pytest.mark.parametrize("query", RUN)
def test_types(query: str) -> None:
    fields = bind(query).row_type.fields
    assert ", ".join(f"`{part.name}` {part.type.as_summary_string()}" for part in fields) == RUN[query]["type"]


@pytest.mark.parametrize("query", REFUSED)
def test_refused(query: str, in_process_env: Any) -> None:
    with pytest.raises(ValidationError):
        stream_of(query, in_process_env(1))


def test_a_rollup_by_windows_has_the_rows_of_all_its_sets(in_process_env: Any) -> None:
    windows = "FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"

    def rows(query: str) -> list[Any]:
        return list(map(comparable, stream_of(query, in_process_env(1)).execute_and_collect()))

    together = rows(f"SELECT item, COUNT(*) {windows}, ROLLUP (item)")
    apart = rows(f"SELECT item, COUNT(*) {windows}, item")
    apart += rows(f"SELECT CAST(NULL AS STRING), COUNT(*) {windows}")
    assert in_order(together) == in_order(apart) != []
