"""How PostgresSource cuts a table and finds its place again, by columns of every type."""

from __future__ import annotations

import pytest

from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.testing.conformance import SourceHarness

PATIENCE_S = 120.0


def values_of(kind, *texts):
    return kind, texts


COLUMNS = {
    "real": values_of("real", "0.7", "1.5", "2.1", "3.3"),
    "real far apart": values_of("real", "0.1", "0.7", "1.5", "2.1", "3.3", "16777216", "-3.4e38", "3.4e38"),
    "real with infinities": values_of("real", "-Infinity", "0.7", "1e-45", "Infinity", "NaN"),
    "double": values_of("double precision", "0.1", "0.30000000000000004", "-1.7e308", "1.7e308", "5e-324"),
    "double with Infinity": values_of("double precision", "1", "2", "3", "Infinity"),
    "double with NaN": values_of("double precision", "1", "2", "NaN"),
    "numeric of 30 digits": values_of("numeric", *(f"12345678901234567890123456789{n}" for n in (1, 2, 5, 6))),
    "numeric with NaN": values_of("numeric", "1.5", "2", "NaN"),
    "numeric of any size": values_of("numeric", "1e-50", "1e40", "-1e40", "0.1"),
    "bigint": values_of("bigint", str(-(2**63)), "0", str(2**63 - 1)),
    "date": values_of("date", "0001-01-01", "2024-02-29", "9999-12-31"),
    "timestamp": values_of("timestamp", "0001-01-01", "2024-02-29 12:00:00.000001", "9999-12-31 23:59:59.999999"),
    "timestamptz": values_of("timestamptz", "0001-01-02", "2024-02-29 12:00:00.000001+05", "9999-12-30"),
}

KEYS = {
    **{name: column for name, column in COLUMNS.items() if name != "numeric with NaN"},
    "interval": values_of("interval", "1 year", "1 mon", "361 days", "364 days 00:00:00.000001", "-5 days"),
    "enum": values_of("mood", "sad", "glad"),
    "array": values_of("real[]", "{0.7}", "{0.7,0.1}", "{0.8}"),
    "char": values_of("char(3)", "a", "abc", "ab"),
    "bit": values_of("bit(3)", "101", "100", "111"),
    "jsonb": values_of("jsonb", "1", '"a"', "{}"),
    "timetz": values_of("timetz", "12:00+05", "12:00-05", "08:00:00.000001+00"),
    "text": values_of("text", "", "a", "B", "ä", "\U0001f600", "%s"),
    "bytea": values_of("bytea", r"\x", r"\x00ff", r"\x5c78"),
    "uuid": values_of("uuid", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "boolean": values_of("boolean", "false", "true"),
    "domain": values_of("positive", "0.7", "1.1"),
}


def fill(tables, column, *, key=False):
    kind, texts = column
    tables.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    tables.run("CREATE DOMAIN positive AS real CHECK (VALUE > 0)")
    tables.run(f"CREATE TABLE t (id int {'' if key else 'PRIMARY KEY'}, x {kind} {'PRIMARY KEY' if key else ''})")
    for number, text in enumerate(texts):
        tables.run(f"INSERT INTO t VALUES (%s, %s::{kind})", number, text)
    return list(range(len(texts)))


def builder(tables):
    return PostgresSource.builder().set_url(tables.url).set_table("t").set_fetch_size(2)


def read(source, parallelism=1, checkpoint=None):
    with SourceHarness(source, parallelism, restored=checkpoint, call_timeout_s=PATIENCE_S) as harness:
        harness.run(timeout_s=PATIENCE_S)
        return sorted(row.id for row in harness.records)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_every_row_is_in_one_split(tables, column):
    ids = fill(tables, column)
    for partitions in (1, 2, 3, 7):
        assert read(builder(tables).set_partition_column("x", partitions=partitions).build(), 2) == ids, partitions
    tables.run("INSERT INTO t VALUES (100, NULL)")
    assert read(builder(tables).set_partition_column("x", partitions=3).build()) == [*ids, 100]
    query = PostgresSource.builder().set_url(tables.url).set_query("SELECT x, id FROM t WHERE id % 1 = 0")
    assert read(query.set_partition_column("x", partitions=2).build()) == [*ids, 100]


@pytest.mark.parametrize("column", KEYS.values(), ids=KEYS)
def test_a_restored_reader_goes_on_behind_the_last_row(tables, column):
    ids = fill(tables, column, key=True)
    source = builder(tables).set_columns("id").build()
    for count in range(len(ids) + 1):
        with SourceHarness(source, call_timeout_s=PATIENCE_S) as harness:
            harness.run_to(count, 1, PATIENCE_S)
            checkpoint, before = harness.snapshot(), [row.id for row in harness.records]
        assert sorted([*before, *read(source, checkpoint=checkpoint)]) == ids, f"after {count} rows"


def test_a_position_of_several_columns(tables):
    tables.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    tables.run("CREATE TABLE t (x real, m mood, id int, PRIMARY KEY (x, m))")
    tables.run(
        "INSERT INTO t SELECT i / 10.0, m, 10 * i + CASE WHEN m = 'sad' THEN 1 ELSE 2 END "
        "FROM generate_series(1, 4) i, unnest(enum_range(NULL::mood)) m"
    )
    source, ids = builder(tables).build(), sorted(tables.column("SELECT id FROM t"))
    for count in range(len(ids)):
        with SourceHarness(source, call_timeout_s=PATIENCE_S) as harness:
            harness.run_to(count, 1, PATIENCE_S)
            checkpoint, before = harness.snapshot(), [row.id for row in harness.records]
            assert all(row.get_field_names() == ["x", "m", "id"] for row in harness.records)
        assert sorted([*before, *read(source, checkpoint=checkpoint)]) == ids


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_bounds_of_the_user_are_of_the_columns_type(tables, partitions):
    fill(tables, COLUMNS["real far apart"])
    bounded = builder(tables).set_partition_column("x", lower_bound=0.7, upper_bound=3.3, partitions=partitions)
    assert read(bounded.build()) == [1, 2, 3, 4]
    # beyond what the type holds, and a whole number that it does not hold
    wide = builder(tables).set_partition_column("x", lower_bound=-1e300, upper_bound=1e300, partitions=partitions)
    assert read(wide.build()) == list(range(8))
    whole = builder(tables).set_partition_column("x", lower_bound=2, upper_bound=16777215, partitions=partitions)
    assert read(whole.build()) == [3, 4]
    tables.run("CREATE TABLE n AS SELECT id, x::numeric * 10 ^ 29 AS x FROM t WHERE x BETWEEN 1 AND 4")
    exact = PostgresSource.builder().set_url(tables.url).set_table("n").set_key_columns("id")
    lower, upper = tables.run("SELECT min(x), max(x) FROM n")[0]
    exact.set_partition_column("x", lower_bound=lower, upper_bound=upper, partitions=partitions)
    assert read(exact.build()) == [2, 3, 4]


def test_all_digits_of_a_number_whatever_the_server_is_set_to(tables):
    fill(tables, values_of("double precision", "0.1", "0.30000000000000004", "0.3"), key=True)
    url = tables.url + "%20-cextra_float_digits%3D-10"
    source = PostgresSource.builder().set_url(url).set_table("t").set_fetch_size(1).build()
    with SourceHarness(source, call_timeout_s=PATIENCE_S) as harness:
        harness.run(timeout_s=PATIENCE_S)
        assert [row.x for row in harness.records] == [0.1, 0.3, 0.30000000000000004]
