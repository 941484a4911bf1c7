"""Flink's own parser says what is recorded of it, and what Firesteel's says of new mutations."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.sql_oracle.oracle import build_oracle
from tests.support.sql_oracle.record import add_verdicts, draw_rows, find_differences, read_recorded

SAMPLE = 500


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flink")
    build_oracle(path)
    return path


def test_the_recorded_verdicts(directory: Path) -> None:
    recorded = random.sample(read_recorded(), SAMPLE)
    rows = [{"kind": row["kind"], "sql": row["sql"]} for row in recorded]
    add_verdicts(rows, directory)
    assert rows == recorded


def test_new_mutations(directory: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rows = [row for row in draw_rows(seed, 2 * SAMPLE, SAMPLE) if row["kind"] != "corpus"]
    add_verdicts(rows, directory)
    assert len(find_differences(rows)) <= 0.01 * len(rows)
