"""Streaming queries give the rows that Flink gave: run whole, and with a failure, a savepoint and a rescaling."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.table.plan.nodes import TableScan, Values
from firesteel.table.plan.streaming import Calc, WatermarkAssigner
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from tests.support.jobs.running_jobs import no_job_goes_on  # noqa: F401 - a fixture
from tests.support.sql.corpus import QUERIES
from tests.support.sql.running import bound, run_broken, run_whole

RECORDED = json.loads((Path(__file__).parent / "recorded" / "corpus.json").read_text("utf-8"))

KEEPS_ROWS = re.compile(
    r"\(SELECT|\b(GROUP BY|JOIN|OVER|UNION|INTERSECT|EXCEPT|DISTINCT|LIMIT|FETCH|EXISTS"
    r"|MATCH_RECOGNIZE|FROM \w+,|TABLE\(|(COUNT|SUM|AVG|MIN|MAX|LISTAGG|STDDEV_\w+|VAR_\w+)\()"
)
"""Words of queries whose operators may have state."""


def expected(sql: str) -> Counter[Any]:
    """The rows that Flink gave."""
    return Counter(tuple(map(_frozen, row)) for row in RECORDED[sql]["rows"])


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def name_of(sql: str) -> str:
    """A short name that stays the same when other queries come."""
    return f"{zlib.crc32(sql.encode()):08x}"


def test_all_queries_are_recorded() -> None:
    assert not [sql for sql in QUERIES if "rows" not in RECORDED.get(sql, {})]
    assert len(QUERIES) >= 300


@pytest.mark.parametrize("sql", QUERIES, ids=name_of)
def test_a_query_has_flinks_rows(sql: str, tmp_path: Path) -> None:
    assert run_whole(sql, tmp_path) == expected(sql), sql


def test_queries_without_these_words_have_nothing_to_restore_but_positions() -> None:
    for sql in QUERIES:
        nodes = [] if KEEPS_ROWS.search(sql) else [optimize(bound(sql))]
        for node in nodes:
            nodes += node.inputs()
        assert all(isinstance(node, (Calc, TableScan, WatermarkAssigner, Values)) for node in nodes), sql


@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "VALUES" not in sql and KEEPS_ROWS.search(sql)], ids=name_of)
def test_a_query_that_is_broken_off_has_flinks_rows(sql: str, tmp_path: Path) -> None:
    assert run_broken(sql, tmp_path) == expected(sql), sql


DISTINCT = [sql for sql in QUERIES if "(DISTINCT" in sql]
SPLIT = OptimizerOptions(distinct_buckets=3)


@pytest.mark.parametrize("sql", DISTINCT, ids=name_of)
def test_a_query_with_split_distinct_values_has_flinks_rows(sql: str, tmp_path: Path) -> None:
    # each of them broken off would take long: every fifth
    run = run_broken if DISTINCT.index(sql) % 5 == 0 else run_whole
    assert run(sql, tmp_path, options=SPLIT) == expected(sql), sql
