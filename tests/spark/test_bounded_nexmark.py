"""NEXMark's queries as Spark SQL over Parquet files give the rows that Flink gave for the same events."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks.bounded_sql.data import write_events
from benchmarks.bounded_sql.firesteel_program import environment
from benchmarks.nexmark.queries import QUERIES
from tests.integration.table.test_nexmark_queries import RECORDED, left_of


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nexmark") / "events"
    write_events(directory, RECORDED["events"], RECORDED["rate"])
    return directory


@pytest.mark.parametrize("name", ["q5", "q9"])
def test_a_bounded_query_has_flinks_rows(spark_context: object, files: Path, name: str) -> None:
    table_env = environment(str(files), {})
    explained = table_env.explain_sql(QUERIES[name])
    assert "Spark SQL:\nSELECT" in explained
    assert "read by Spark (parquet), 2 files" in explained
    rows = left_of(table_env, QUERIES[name])
    expected = RECORDED["queries"][name]
    digest = hashlib.sha256(json.dumps(sorted([text, times] for text, times in rows.items())).encode())
    assert (sum(rows.values()), digest.hexdigest()) == (expected["rows"], expected["digest"])
