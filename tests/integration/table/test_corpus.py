"""Streaming queries give the rows that Flink gave: run whole, and with a failure, a savepoint and a rescaling."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.running_jobs import no_job_goes_on  # noqa: F401 - a fixture
from tests.support.sql.corpus import QUERIES
from tests.support.sql.running import run_broken, run_whole

RECORDED = json.loads((Path(__file__).parent / "recorded" / "corpus.json").read_text("utf-8"))


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


@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "VALUES" not in sql], ids=name_of)
def test_a_query_that_is_broken_off_has_flinks_rows(sql: str, tmp_path: Path) -> None:
    assert run_broken(sql, tmp_path) == expected(sql), sql
