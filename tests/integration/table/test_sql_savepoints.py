"""SQL jobs restored from their savepoints: the same statement finds its state again."""

from __future__ import annotations

from pathlib import Path

from firesteel.common.time import Duration
from firesteel.common.types import RowKind
from firesteel.config import checkpointing_options
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.testing.in_process import InProcessExecutor


def _environment() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created._session.environment._executor = InProcessExecutor()
    created.get_config().set("parallelism.default", "2")
    created.execute_sql(
        "CREATE TABLE numbers (n BIGINT, k AS n - n / 3 * 3) WITH ('connector' = 'datagen', 'rows-per-second' = '500', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000')"
    )
    return created


QUERY = "SELECT k, COUNT(*) AS c FROM numbers GROUP BY k"


def test_a_query_goes_on_from_its_savepoint(tmp_path: Path) -> None:
    environment = _environment()
    environment.get_config().get_configuration().set(
        checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(50)
    )
    result = environment.execute_sql(QUERY)
    client = result.get_job_client()
    assert client is not None
    counts: dict[int, int] = {}
    rows = result.collect()
    while sum(counts.values()) < 30:
        row = next(rows)
        counts[row[0]] = row[1]
    path = client.stop_with_savepoint(False, str(tmp_path)).result()
    for row in rows:
        counts[row[0]] = row[1]

    restored = _environment()
    restored.get_config().set("execution.state-recovery.path", path)
    result = restored.execute_sql(QUERY)
    with result.collect() as rows:
        row = next(rows)
    # the first change takes back the count that its key had
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    assert row[1] == counts[row[0]] > 1
