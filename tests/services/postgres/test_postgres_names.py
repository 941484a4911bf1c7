"""Names that are valid in SQL and mean something else to a driver: every statement of the connector has them."""

from __future__ import annotations

import pytest

from firesteel.common import Row, RowKind, Types
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import SinkHarness
from firesteel.testing.conformance import SourceHarness
from tests.services.postgres.postgres_tables import EXACTLY_ONCE

PATIENCE_S = 120.0
TABLE = '"50% %s ""quoted"" {0}"'
COLUMNS = ("a%b", "%s", 'with "quotes"', "{0}", "Größe %(x)s")


@pytest.fixture
def odd(tables):
    columns = ", ".join(f"{quoted(name)} int" for name in COLUMNS[1:])
    tables.run(f'CREATE TABLE {TABLE} ("a%b" int PRIMARY KEY, {columns})')
    return tables


def quoted(name):
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def records(*numbers):
    return [Row(**{name: 10 * number + index for index, name in enumerate(COLUMNS)}) for number in numbers]


def write(sink, *values, attempts=1):
    """Writes, with so many attempts before that failed after their checkpoint."""
    snapshot = None
    for attempt in range(attempts):
        harness = SinkHarness(sink, job_id="job", attempt=attempt)
        try:
            harness.initialize_state(snapshot)
            harness.open()
            for value in values if attempt == 0 else ():
                harness.process_element(value)
            snapshot = harness.snapshot(attempt + 1)
            if attempt == attempts - 1:
                harness.notify_checkpoint_complete(attempt + 1)
        finally:
            harness.close()


@pytest.mark.parametrize("mode", ["append", "exactly-once", "restored", "upsert"])
def test_sinks(odd, mode):
    sink = odd.sink(TABLE)
    if mode == "upsert":
        sink.set_upsert_key("a%b")
    elif mode == "append":
        sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    else:
        sink.set_delivery_guarantee(EXACTLY_ONCE)
    rows = records(1, 2, 3)
    write(sink.build(), *rows, attempts=3 if mode == "restored" else 1)
    if mode == "upsert":
        gone = Row(**{"a%b": rows[0]["a%b"]})
        gone.set_row_kind(RowKind.DELETE)
        write(sink.build(), gone)
        del rows[0]
    assert odd.run(f'SELECT * FROM {TABLE} ORDER BY "a%b"') == [tuple(row) for row in rows]


def test_source(odd):
    write(odd.sink(TABLE).build(), *records(*range(10)))
    builder = PostgresSource.builder().set_url(odd.url).set_table(TABLE).set_fetch_size(3)
    for source in (
        builder.build(),
        builder.set_columns(*COLUMNS).build(),
        builder.set_partition_column("%s", partitions=3).build(),
        builder.set_partition_column("a%b", lower_bound=0, upper_bound=100, partitions=3).build(),
    ):
        assert source.infer_type_info().get_field_names() == list(COLUMNS)
        with SourceHarness(source, call_timeout_s=PATIENCE_S) as harness:
            harness.run_to(4, 1, PATIENCE_S)
            checkpoint, before = harness.snapshot(), harness.records
        with SourceHarness(source, restored=checkpoint, call_timeout_s=PATIENCE_S) as harness:
            harness.run(timeout_s=PATIENCE_S)
            assert sorted(map(tuple, [*before, *harness.records])) == [tuple(row) for row in records(*range(10))]


def test_statement_of_ones_own(odd):
    names, marks = ", ".join(map(quoted, COLUMNS)), ", ".join("?" * len(COLUMNS))
    sink = JdbcSink.sink(
        f"INSERT INTO {TABLE} ({names}) VALUES ({marks})",
        Types.ROW([Types.INT()] * len(COLUMNS)),
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(odd.url).build(),
    )
    write(sink, *records(7))
    assert odd.run(f"SELECT * FROM {TABLE}") == [tuple(records(7)[0])]


def test_what_a_commit_would_find_is_found_before_the_checkpoint(tables):
    tables.run("CREATE TABLE t (id int, name text)")
    sink = tables.sink().set_columns("id", "name").set_delivery_guarantee(EXACTLY_ONCE).build()
    harness = SinkHarness(sink)
    try:
        harness.open()
        harness.process_element((1, "a"))
        tables.run("ALTER TABLE t DROP COLUMN name")
        with pytest.raises(PostgresError, match=r'could not be committed to t.*column "name" of relation "t"'):
            harness.snapshot(1)
    finally:
        harness.close()


def test_trying_a_commit_runs_no_trigger(tables):
    tables.run("CREATE TABLE t (id int)")
    tables.run("CREATE TABLE calls (at timestamptz DEFAULT now())")
    tables.run(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN INSERT INTO {tables.schema}.calls DEFAULT VALUES; RETURN NULL; END $$"
    )
    tables.run("CREATE TRIGGER note AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()")
    write(tables.sink().set_delivery_guarantee(EXACTLY_ONCE).build(), (1,), (2,))
    assert tables.column("SELECT id FROM t ORDER BY id") == [1, 2]
    assert tables.column("SELECT count(*) FROM calls") == [1]
