"""Upserts, deletions and at-least-once appends into a real table."""

from __future__ import annotations

import threading

import psycopg
import pytest

from firesteel.common import Row, RowKind
from firesteel.common.errors import RecordSerializationError
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import SinkHarness, eventually
from tests.services.postgres.postgres_tables import EXACTLY_ONCE


def opened(builder, **options):
    harness = SinkHarness(builder.build(), **options)
    harness.open()
    return harness


def write(builder, *records):
    harness = opened(builder)
    try:
        feed(harness, records)
        harness.snapshot(1)
    finally:
        harness.close()


def feed(harness, records):
    for record in records:
        harness.process_element(record)


@pytest.fixture
def table(tables):
    tables.run("CREATE TABLE t (id bigint PRIMARY KEY, name text, price numeric(10,2))")
    return tables


def rows(table):
    return [(number, name, float(price)) for number, name, price in table.run("SELECT * FROM t ORDER BY id")]


def test_the_last_record_of_a_key_stays(table):
    sink = table.sink().set_upsert_key("id").set_batch_size(4)
    write(sink, (1, "a", 1), (2, "b", 2), (1, "c", 3), (3, "d", 4), (1, "e", 5), (2, "f", 6))
    assert rows(table) == [(1, "e", 5.0), (2, "f", 6.0), (3, "d", 4.0)]
    # the same again, as after a failure
    write(sink, (1, "a", 1), (2, "b", 2), (1, "c", 3), (3, "d", 4), (1, "e", 5), (2, "f", 6))
    assert rows(table) == [(1, "e", 5.0), (2, "f", 6.0), (3, "d", 4.0)]


def test_a_stream_of_changes(table):
    kind = Row.of_kind
    sink = table.sink().set_upsert_key()
    write(
        sink,
        Row(id=1, name="a", price=1),
        Row(id=2, name="b", price=2),
        Row(id=3, name="c", price=3),
        kind(RowKind.UPDATE_BEFORE, id=1, name="a", price=1),
        kind(RowKind.UPDATE_AFTER, id=1, name="aa", price=1),
        kind(RowKind.DELETE, id=2, name="b", price=2),
        kind(RowKind.DELETE, id=3),
        Row(id=3, name="again", price=9),
        kind(RowKind.DELETE, 4, None, None),
    )
    assert rows(table) == [(1, "aa", 1.0), (3, "again", 9.0)]
    write(sink, kind(RowKind.DELETE, id=1), Row(id=2, name="b", price=2), kind(RowKind.DELETE, id=2))
    assert rows(table) == [(3, "again", 9.0)]


def test_records_of_every_shape(table):
    sink = table.sink().set_columns("price", "id", "name").set_upsert_key("id")
    write(
        sink,
        (1.5, 1, "tuple"),
        [2.5, 2, "list"],
        {"name": "dict", "id": 3, "price": 3.5, "more": 0},
        Row(4.5, 4, "row"),
        Row(id=5, name="named", price=5.5),
    )
    assert rows(table) == [
        *[(1, "tuple", 1.5), (2, "list", 2.5), (3, "dict", 3.5)],
        *[(4, "row", 4.5), (5, "named", 5.5)],
    ]
    write(table.sink().set_upsert_key("id").set_record_mapper(lambda n: (n, f"<{n}>", n)), 6)
    assert rows(table)[-1] == (6, "<6>", 6.0)


def test_a_key_of_several_columns_in_a_unique_index(tables):
    tables.run('CREATE TABLE t (day date, "Shop" text, n int, at timestamptz DEFAULT now(), UNIQUE (day, "Shop"))')
    sink = tables.sink().set_columns("Shop", "day", "n").set_upsert_key("day", "Shop")
    write(sink, ("x", "2024-01-01", 1), ("y", "2024-01-01", 2), ("x", "2024-01-01", 3))
    assert tables.run('SELECT "Shop", n FROM t ORDER BY 1') == [("x", 3), ("y", 2)]
    # a NULL would never be found again
    with pytest.raises(PostgresError, match='null value in column "Shop"') as caught:
        write(sink, (None, "2024-01-01", 1))
    assert caught.value.sqlstate == "23502"


def test_a_table_that_is_all_key(tables):
    tables.run("CREATE TABLE t (a int, b int, PRIMARY KEY (b, a))")
    write(tables.sink().set_upsert_key(), (1, 2), (1, 2), (3, 4))
    assert tables.run("SELECT * FROM t ORDER BY a") == [(1, 2), (3, 4)]


def test_keys_that_only_the_server_knows_to_be_equal(tables):
    tables.run("CREATE TABLE t (code char(3) PRIMARY KEY, n int)")
    write(tables.sink().set_upsert_key(), ("a", 1), ("a  ", 2))
    assert tables.run("SELECT n FROM t") == [(2,)]


def test_a_dropped_connection_is_opened_again(table):
    harness = opened(table.sink().set_upsert_key("id").set_batch_size(2))
    feed(harness, [(1, "a", 1), (2, "b", 2), (3, "c", 3)])
    assert table.end_sessions()
    feed(harness, [(1, "d", 4), (5, "e", 5)])
    harness.snapshot(1)
    harness.close()
    assert rows(table) == [(1, "d", 4.0), (2, "b", 2.0), (3, "c", 3.0), (5, "e", 5.0)]


def test_a_dropped_connection_without_retries_fails_the_task(table):
    harness = opened(table.sink().set_upsert_key("id").set_max_retries(0))
    feed(harness, [(1, "a", 1)])
    table.end_sessions()
    with pytest.raises(PostgresConnectionError, match=r"the connection to .* is lost") as caught:
        harness.snapshot(1)
    assert caught.value.table == "t"
    harness.close()


def test_a_writer_that_is_still_at_work_is_ended_before_its_successor_begins(table):
    """Its value would come after a newer one."""
    options = {"job_id": f"{table.schema}/fenced"}
    old = opened(table.sink().set_upsert_key("id"), **options)
    [pid] = table.sessions()
    feed(old, [(1, "old", 1)])
    failures = []

    def write_old():
        try:
            old.snapshot(1)
        except PostgresError as error:
            failures.append(error)

    thread = threading.Thread(target=write_old, daemon=True)
    waits = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
    with psycopg.connect(table.url) as locker:
        locker.execute("LOCK TABLE t IN EXCLUSIVE MODE")
        thread.start()
        eventually(lambda: table.column(waits, pid) == ["Lock"])
        new = opened(table.sink().set_upsert_key("id"), attempt=1, **options)
        assert pid not in table.sessions()
    feed(new, [(1, "new", 2)])
    new.snapshot(1)
    thread.join(60)
    assert not thread.is_alive()
    assert rows(table) == [(1, "new", 2.0)]
    # nor does it come back
    assert "this one was taken for dead" in failures[0].message
    new.close()
    old.close()


def test_a_lock_of_somebody_else_is_not_awaited_for_ever(table):
    from firesteel.connectors.postgres.connection import PostgresConnectionOptions

    options = PostgresConnectionOptions(table.url, lock_timeout_s=1)
    harness = opened(table.sink().set_connection_options(options).set_upsert_key("id"))
    feed(harness, [(1, "a", 1)])
    table.run("BEGIN")
    table.run("LOCK TABLE t IN EXCLUSIVE MODE")
    with pytest.raises(PostgresError, match="lock timeout") as caught:
        harness.snapshot(1)
    table.run("ROLLBACK")
    assert caught.value.sqlstate == "55P03"
    assert "pg_locks" in caught.value.hint
    harness.close()


def test_an_append_writes_full_batches_and_the_rest_with_the_checkpoint(table):
    harness = opened(table.sink().set_batch_size(3))
    feed(harness, [(n, str(n), n) for n in range(7)])
    assert len(rows(table)) == 6
    harness.snapshot(1)
    assert len(rows(table)) == 7
    table.end_sessions()
    feed(harness, [(n, str(n), n) for n in range(7, 9)])
    harness.finish()
    assert [number for number, _, _ in rows(table)] == list(range(9))
    harness.close()


def test_an_append_writes_what_has_waited_long_enough(table):
    harness = opened(table.sink().set_batch_interval_ms(20))
    feed(harness, [(1, "a", 1)])
    eventually(lambda: rows(table) == [(1, "a", 1.0)])
    feed(harness, [(1, "b", 1)])
    # what fails in between is heard of at the next record
    with pytest.raises(PostgresError, match="already exists"):
        eventually(lambda: feed(harness, [(2, "c", 1)]) or False)
    harness.close()


def test_what_is_written_with_each_guarantee(table):
    assert table.sink().build().get_delivery_guarantee() is DeliveryGuarantee.AT_LEAST_ONCE
    assert not table.sink().build().needs_checkpoints()
    assert table.sink().set_upsert_key().build().get_delivery_guarantee() is EXACTLY_ONCE
    assert not table.sink().set_upsert_key().build().needs_checkpoints()
    assert table.sink().set_delivery_guarantee(EXACTLY_ONCE).build().needs_checkpoints()


def test_changes_cannot_be_appended(table):
    harness = opened(table.sink())
    with pytest.raises(RecordSerializationError, match="A record of kind DELETE cannot be appended to t"):
        harness.process_element(Row.of_kind(RowKind.DELETE, 1, "a", 1))
    harness.close()
