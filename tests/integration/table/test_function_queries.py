"""Functions in whole queries: those that need more than a row, and values that travel through state and exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError
from firesteel.common.types import RowKind
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.table import DataTypes, StreamTableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.values.bitmap import from_integers
from firesteel.testing.in_process import InProcessExecutor

ROWS = [
    (1, "a", '{"k": [1.50, 2e3], "n": null}', (7, "x")),
    (2, "b", '{"k": "text"}', (8, None)),
    (3, "a", "none", None),
    (4, None, None, (None, "y")),
]


@pytest.fixture(scope="module")
def table_env() -> StreamTableEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env._executor = InProcessExecutor()
    created = StreamTableEnvironment.create(env)
    row = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())])
    fields = {"id": DataTypes.INT(), "s": DataTypes.STRING(), "js": DataTypes.STRING(), "r": row}
    schema = DataTypes.ROW([DataTypes.FIELD(name, type_) for name, type_ in fields.items()])
    created.create_temporary_view("t", created.from_elements(ROWS, schema))
    return created


def results(table_env: StreamTableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with table_env.execute_sql(sql).collect() as rows:
        return sorted((tuple(row) for row in rows), key=repr)


def final(table_env: StreamTableEnvironment, sql: str) -> set[tuple[Any, ...]]:
    """The rows that are left of a changelog."""
    found: set[tuple[Any, ...]] = set()
    with table_env.execute_sql(sql).collect() as rows:
        for row in rows:
            is_there = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            (found.add if is_there else found.remove)(tuple(row))
    return found


QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT t.r.* FROM t", [(7, "x"), (8, None), (None, None), (None, "y")]),
    ("SELECT id, r.* FROM t WHERE r.x > 7", [(2, 8, None)]),
    ("SELECT r['y'], r[1] FROM t WHERE id = 1", [("x", 7)]),
    ("SELECT CURRENT_DATABASE() FROM t WHERE id = 1", [("default_database",)]),
    (
        "SELECT id, JSON_STRING(v['k']) FROM (SELECT id, TRY_PARSE_JSON(js) AS v FROM t) WHERE v IS NOT NULL",
        [(1, "[1.5,2000.0]"), (2, '"text"')],
    ),
    ("SELECT OBJECT_UPDATE(OBJECT_OF('P', 'a', id, 'b', s), 'a', id * 10).a FROM t WHERE id < 3", [(10,), (20,)]),
    ("SELECT INET_NTOA(INET_ATON('10.0.0.' || CAST(id AS STRING))) FROM t WHERE id < 2", [("10.0.0.1",)]),
]


@pytest.mark.parametrize(("sql", "expected"), QUERIES, ids=[sql[:30] for sql, _ in QUERIES])
def test_a_query(table_env: StreamTableEnvironment, sql: str, expected: list[tuple[Any, ...]]) -> None:
    assert results(table_env, sql) == sorted(expected, key=repr)


def test_variants_in_state(table_env: StreamTableEnvironment) -> None:
    """They are values of a last row, of a join and of an exchange by key."""
    sql = (
        "SELECT a.s, JSON_STRING(LAST_VALUE(a.v)['k']) FROM (SELECT id, s, PARSE_JSON(js) AS v FROM t WHERE id < 3) a "
        "JOIN t b ON a.id = b.id GROUP BY a.s"
    )
    assert results(table_env, sql) == [("a", "[1.5,2000.0]"), ("b", '"text"')]


def test_bitmaps_in_state(table_env: StreamTableEnvironment) -> None:
    """They are results that are taken back, and keys of groups and of a join."""
    groups = "(SELECT s, COUNT(*) AS n, BITMAP_BUILD_AGG(id) AS b FROM t GROUP BY s)"
    sql = f"SELECT BITMAP_TO_STRING(b), COUNT(*) FROM {groups} GROUP BY b"
    assert final(table_env, sql) == {("{1,3}", 1), ("{2}", 1), ("{4}", 1)}
    sql = f"SELECT x.n, BITMAP_TO_STRING(BITMAP_OR_AGG(y.b)) FROM {groups} x JOIN {groups} y ON x.b = y.b GROUP BY x.n"
    assert final(table_env, sql) == {(1, "{2,4}"), (2, "{1,3}")}
    sql = "SELECT BITMAP_XOR_AGG(BITMAP_BUILD(ARRAY[id, 5])) FROM t WHERE id > 2"
    assert final(table_env, sql) == {(from_integers([3, 4]),)}


REFUSED = [
    ("SELECT s.* FROM t", "Unknown identifier 's.*'"),
    ("SELECT CURRENT_WATERMARK(id) FROM t", "must be a rowtime attribute"),
    ("SELECT r['z'] FROM t", "Field 'z' not found"),
    ("SELECT CAST(PARSE_JSON(js) AS INT) FROM t", "cannot convert value of type VARIANT to type INT"),
    ("SELECT CAST(BITMAP_BUILD(ARRAY[id]) AS INT) FROM t", "cannot convert value of type BITMAP"),
    ("SELECT MAX(BITMAP_BUILD(ARRAY[id])) FROM t", "Cannot apply 'MAX'"),
    ("SELECT BITMAP_BUILD_AGG(CAST(id AS BIGINT)) FROM t", "Cannot apply 'BITMAP_BUILD_AGG'"),
    ("SELECT OBJECT_OF('P', s, 1) FROM t", "must be a non-null string literal"),
    ("SELECT (id, id) OVERLAPS (id, id) FROM t", "Cannot apply 'OVERLAPS'"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_what_is_refused(table_env: StreamTableEnvironment, sql: str, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        table_env.execute_sql(sql)
    assert message in str(refused.value)


def test_the_error_of_a_job_has_the_place_and_the_row(table_env: StreamTableEnvironment) -> None:
    with pytest.raises(JobExecutionError) as failed:
        results(table_env, "SELECT id,\n  CAST(s AS INT) + 1\nFROM t WHERE id > 1")
    assert "Cannot cast 'b' to INT, in CAST(s AS INT) (line 2, column 3) for the row (s = 'b')" in str(failed.value)


def test_the_current_watermark(table_env: StreamTableEnvironment) -> None:
    """NULL until a watermark has come; rows that come later can be told by it."""
    table_env.execute_sql(
        "CREATE TEMPORARY TABLE timed (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts) WITH ("
        "'connector' = 'datagen', 'number-of-rows' = '3', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', "
        "'fields.n.end' = '3')"
    )
    rows = results(table_env, "SELECT n, CURRENT_WATERMARK(ts) <= ts FROM timed")
    assert [row[0] for row in rows] == [1, 2, 3]
    assert {row[1] for row in rows} <= {None, True}
