"""The parser accepts and rejects what Flink's own parser does; see ``tests/support/sql_oracle/record.py``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.sql_oracle.corpus import read_statements
from tests.support.sql_oracle.disagreements import reason_of
from tests.support.sql_oracle.record import find_differences, read_recorded

MIN_STATEMENTS = {"corpus": 1_000, "mutation": 5_000, "expression": 500}
MAX_DIFFERENT = 0.01


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    return read_recorded()


def test_enough_is_recorded(recorded: list[dict[str, Any]]) -> None:
    counts = Counter(row["kind"] for row in recorded)
    assert all(counts[kind] >= least for kind, least in MIN_STATEMENTS.items()), counts
    corpus = {row["sql"] for row in recorded if row["kind"] == "corpus"}
    assert corpus == set(read_statements()), "record the corpus anew"


@pytest.mark.parametrize("kind", ["corpus", "mutation"])
def test_verdicts(recorded: list[dict[str, Any]], kind: str) -> None:
    rows = [row for row in recorded if row["kind"] == kind]
    different = find_differences(rows)
    assert [row for row in different if reason_of(row["sql"]) is None] == []
    assert len(different) <= MAX_DIFFERENT * len(rows)


def test_trees(recorded: list[dict[str, Any]]) -> None:
    assert find_differences([row for row in recorded if row["kind"] == "expression"]) == []
