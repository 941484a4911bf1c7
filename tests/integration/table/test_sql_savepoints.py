"""SQL jobs restored from their savepoints: the same statement finds its state again."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common import Row, Types
from firesteel.common.time import Duration
from firesteel.common.types import RowKind
from firesteel.config import checkpointing_options
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.operator_id import operator_ids
from firesteel.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from firesteel.table.bound.errors import ValidationError
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


def _stopped(query: str, path: Path) -> tuple[dict[int, int], str]:
    """Runs a query for a while: the counts that it has had, and the path of a savepoint."""
    environment = _environment()
    environment.get_config().get_configuration().set(
        checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(50)
    )
    result = environment.execute_sql(query)
    client = result.get_job_client()
    assert client is not None
    counts: dict[int, int] = {}
    rows = result.collect()
    while sum(counts.values()) < 30:
        row = next(rows)
        counts[row[0]] = row[1]
    savepoint = client.stop_with_savepoint(False, str(path)).result()
    for row in rows:
        counts[row[0]] = row[1]
    return counts, savepoint


def _first_change(query: str, settings: dict[str, str]) -> Row:
    restored = _environment()
    for key, value in settings.items():
        restored.get_config().set(key, value)
    with restored.execute_sql(query).collect() as rows:
        return next(rows)


@pytest.mark.parametrize("key", ["execution.state-recovery.path", "execution.savepoint.path"])
@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_a_query_goes_on_from_its_savepoint_at_another_parallelism(key: str, parallelism: str, tmp_path: Path) -> None:
    counts, path = _stopped(QUERY, tmp_path)
    row = _first_change(QUERY, {key: path, "parallelism.default": parallelism})
    # the first change takes back the count that its key had
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    assert row[1] == counts[row[0]] > 1


def test_operators_that_stay_the_same_keep_their_state_in_a_changed_statement(tmp_path: Path) -> None:
    counts, path = _stopped(QUERY, tmp_path)
    row = _first_change(
        "SELECT k, c * 10 FROM (SELECT k, COUNT(*) AS c FROM numbers WHERE n > 0 GROUP BY k) WHERE k >= 0",
        {"execution.state-recovery.path": path},
    )
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    assert row[1] == counts[row[0]] * 10


def test_another_aggregation_does_not_get_the_state_of_the_old_one(tmp_path: Path) -> None:
    _, path = _stopped(QUERY, tmp_path)
    changed = "SELECT k, MAX(n) AS c FROM numbers GROUP BY k"
    with pytest.raises(Exception, match=r"state of operator .*GroupAggregate.*no such operator") as failure:
        _first_change(changed, {"execution.state-recovery.path": path})
    assert "ignore-unclaimed-state" in str(failure.value)
    settings = {"execution.state-recovery.path": path, "execution.state-recovery.ignore-unclaimed-state": "true"}
    assert _first_change(changed, settings).get_row_kind() is RowKind.INSERT


def test_a_uid_names_the_state_of_a_query(tmp_path: Path) -> None:
    counts, path = _stopped("SELECT /*+ UID('counts') */ k, COUNT(*) AS c FROM numbers GROUP BY k", tmp_path)
    row = _first_change(
        "SELECT /*+ UID('counts') */ m, COUNT(*) AS d FROM (SELECT k AS m FROM numbers WHERE n > 0) GROUP BY m",
        {"execution.state-recovery.path": path, "parallelism.default": "1"},
    )
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    assert row[1] == counts[row[0]]
    with pytest.raises(Exception, match="no such operator"):
        _first_change(
            "SELECT /*+ UID('others') */ k, COUNT(*) AS c FROM numbers GROUP BY k",
            {"execution.state-recovery.path": path},
        )


@pytest.mark.parametrize("hint", ["UID()", "UID('a', 'b')", "UID('a'='b')", "UID('a'), UID('b')", "UID('')"])
def test_a_uid_is_one_name(hint: str) -> None:
    with pytest.raises(ValidationError, match="UID"):
        _environment().execute_sql(f"SELECT /*+ {hint} */ k FROM numbers")


def test_uids_do_not_depend_on_what_else_the_process_has_done() -> None:
    def uids() -> list[str]:
        env = StreamExecutionEnvironment.get_execution_environment()
        t_env = StreamTableEnvironment.create(env)
        t_env.create_temporary_view("numbers", env.from_collection([1, 2, 3], Types.INT()))
        t_env.to_changelog_stream(t_env.sql_query("SELECT f0, COUNT(*) FROM numbers GROUP BY f0")).print()
        graph = env._generate_stream_graph("job", clear=True)
        return sorted(operator_ids(graph).values())

    assert uids() == uids()
