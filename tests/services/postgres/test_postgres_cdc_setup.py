"""Servers, users, tables, publications and slots that are not as a capture needs them: each a clear error."""

from __future__ import annotations

import psycopg
import pytest

from firesteel.common.time import Duration
from firesteel.connectors.postgres.cdc.errors import (
    CaptureSetupError,
    ReplicationSlotLostError,
    SlotInUseError,
)
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError
from firesteel.datastream.connectors.postgres import StartupOptions
from firesteel.testing.services.postgres_server import PostgresServer
from tests.services.postgres.cdc_harness import CaptureHarness, Database, create_items, database, items

__all__ = ["database", "items"]


def refused(database, builder=None, kind=CaptureSetupError):
    """The error a capture ends with."""
    harness = database.capture(builder)
    with pytest.raises(kind) as caught:
        harness.run_until_caught_up(database.connection)
    assert caught.value.hint
    return caught.value


def test_a_server_that_is_not_there(items):
    source = items.builder().url("postgresql://127.0.0.1:1/nowhere").build()
    harness = CaptureHarness(source)
    with pytest.raises(PostgresConnectionError, match=r"127\.0\.0\.1:1/nowhere"):
        harness.deliver()
    harness.close()


def test_a_server_without_a_log_for_logical_replication(postgres):
    with PostgresServer(wal_level="replica") as server:
        database = Database(server)
        create_items(database)
        assert "wal_level" in str(refused(database))
        only_rows = database.capture(database.builder().startup_options(StartupOptions.snapshot()))
        only_rows.run_until(lambda: only_rows.ended == {0})
        assert len(only_rows.records) == 60
        database.close()


def test_a_user_who_may_not_replicate(items):
    items.execute("CREATE ROLE reader LOGIN")
    items.execute("GRANT USAGE ON SCHEMA public TO reader")
    items.execute("GRANT SELECT ON items TO reader")
    try:
        error = refused(items, items.builder().username("reader"))
        assert "CREATE PUBLICATION" in error.hint
        items.execute("CREATE PUBLICATION firesteel_publication FOR TABLE items")
        error = refused(items, items.builder().username("reader"))
        assert error.sqlstate == "42501"
        assert "REPLICATION" in error.hint
        items.execute("ALTER ROLE reader REPLICATION")
        harness = items.capture(items.builder().username("reader"))
        harness.run_until_caught_up(items.connection)
        harness.close()
        items.execute("REVOKE SELECT ON items FROM reader")
        again = items.builder().username("reader").slot_name(f"{items.slot}_again")
        assert refused(items, again, PostgresError).sqlstate == "42501"
    finally:
        items.execute("DROP OWNED BY reader")
        items.execute("DROP ROLE reader")


def test_tables_that_are_not_there(items):
    error = refused(items, items.builder("public.nothing"))
    assert "public.items" in error.message
    error = refused(items, items.builder().schema_list("other"))
    assert "other" in error.message


def test_a_table_without_primary_key(database):
    database.execute("CREATE TABLE items (id int)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    error = refused(database)
    assert error.table == "public.items"
    assert "PRIMARY KEY" in error.hint
    # its changes can be had
    harness = database.capture(database.builder().startup_options(StartupOptions.latest()))
    harness.run_until_caught_up(database.connection)
    database.execute("INSERT INTO items VALUES (1)")
    database.execute("UPDATE items SET id = 2")
    harness.run_until_caught_up(database.connection)
    assert [f"{row.get_row_kind()}{row.id}" for row in harness.records] == ["+I1", "-U1", "+U2"]


@pytest.mark.parametrize(
    ("identity", "mode", "hint"),
    [
        ("DEFAULT", "all", 'ALTER TABLE "public"."items" REPLICA IDENTITY FULL'),
        ("NOTHING", "upsert", 'ALTER TABLE "public"."items" REPLICA IDENTITY DEFAULT'),
        ("USING INDEX others", "upsert", 'ALTER TABLE "public"."items" REPLICA IDENTITY DEFAULT'),
    ],
)
def test_a_table_whose_replica_identity_is_too_little(items, identity, mode, hint):
    items.execute("ALTER TABLE items ALTER version SET NOT NULL")
    items.execute(
        "CREATE UNIQUE INDEX others ON items (version, id)"
        if "INDEX" not in identity
        else "UPDATE items SET version = id"
    )
    if "INDEX" in identity:
        items.execute("CREATE UNIQUE INDEX others ON items (version)")
    items.execute(f"ALTER TABLE items REPLICA IDENTITY {identity}")
    error = refused(items, items.builder().changelog_mode(mode))
    assert error.table == "public.items"
    assert hint in error.hint


def test_an_unlogged_table(database):
    database.execute("CREATE UNLOGGED TABLE items (id int PRIMARY KEY)")
    assert "SET LOGGED" in refused(database).hint


def test_publications_that_lack_something(items):
    disabled = items.builder().publication_autocreate_mode("disabled")
    assert "CREATE PUBLICATION" in refused(items, disabled).hint
    items.execute("CREATE PUBLICATION firesteel_publication")
    assert "ADD TABLE" in refused(items, disabled).hint
    items.execute("ALTER PUBLICATION firesteel_publication SET (publish = 'insert')")
    assert "publish = 'insert, update, delete, truncate'" in refused(items).hint
    items.execute("DROP PUBLICATION firesteel_publication")
    items.execute("CREATE PUBLICATION firesteel_publication FOR TABLE items (id, name)")
    assert "some rows or columns" in refused(items).message
    items.execute("DROP PUBLICATION firesteel_publication")
    harness = items.capture(items.builder().publication_autocreate_mode("all_tables"))
    harness.run_until_caught_up(items.connection)
    assert items.value("SELECT puballtables FROM pg_publication")


def test_a_publication_that_is_dropped_under_way(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("DROP PUBLICATION firesteel_publication")
    items.execute("UPDATE items SET version = 1")
    with pytest.raises(CaptureSetupError, match="publication"):
        harness.run_until_caught_up(items.connection)


def test_a_publication_that_gets_the_table_only_now(items):
    items.execute("CREATE PUBLICATION firesteel_publication")
    items.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", items.slot)
    items.execute("UPDATE items SET version = 1")
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("DELETE FROM items WHERE id = 1")
    harness.run_until_caught_up(items.connection)
    assert len(harness.records) == 61


def test_a_slot_that_another_one_reads(items):
    first = items.capture()
    first.run_until_caught_up(items.connection)
    error = refused(items, items.builder().connect_timeout(Duration.of_seconds(3)), SlotInUseError)
    assert "slot_name" in error.hint
    assert (
        str(items.value("SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", items.slot))
        in error.message
    )


def test_a_slot_for_something_else(items):
    items.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", items.slot)
    assert "test_decoding" in refused(items).message


def test_a_slot_that_is_gone(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    harness.close()
    harness.source.drop_slot()
    following = CaptureHarness(harness.source, 1, harness.checkpoint)
    with pytest.raises(ReplicationSlotLostError, match="no longer exists"):
        following.deliver()
    # the reader does not wait for the enumerator's check
    with pytest.raises(ReplicationSlotLostError, match="no longer exists"):
        following.run_until(lambda: False, checkpoints=False)
    following.close()
    error = refused(items, items.builder().startup_options(StartupOptions.committed_offset()))
    assert "to resume from" in error.message


def test_a_checkpoint_that_is_older_than_the_slot(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    old = harness.checkpoint
    items.execute("UPDATE items SET version = 1")
    written = items.value("SELECT pg_logical_emit_message(true, 'test', 'here')::text")
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    slot = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = %s"
    harness.run_until(lambda: items.value(slot, written, items.slot))
    harness.close()
    following = CaptureHarness(harness.source, 1, old)
    with pytest.raises(ReplicationSlotLostError, match="cannot be had again"):
        following.run_until(lambda: False, checkpoints=False)
    following.close()


def test_a_slot_that_has_lost_its_log(postgres):
    with PostgresServer(max_slot_wal_keep_size="1MB") as server:
        database = Database(server)
        create_items(database)
        harness = database.capture()
        harness.run_until_caught_up(database.connection)
        harness.take_checkpoint()
        harness.close()
        for _ in range(3):
            database.execute("UPDATE items SET version = version + 1")
            database.execute("SELECT pg_switch_wal()")
        database.execute("CHECKPOINT")
        following = CaptureHarness(harness.source, 1, harness.checkpoint)
        with pytest.raises(ReplicationSlotLostError, match="fell so far behind") as caught:
            following.deliver()
        assert "max_slot_wal_keep_size" in caught.value.hint
        following.close()
        assert "fell so far behind" in refused(database, kind=ReplicationSlotLostError).message
        database.close()


def test_a_transaction_that_does_not_end(items):
    with psycopg.connect(items.dsn) as other:
        other.execute("UPDATE items SET version = 1")
        builder = items.builder().slot_creation_timeout(Duration.of_millis(300))
        assert str(other.info.backend_pid) in refused(items, builder).message
    # also where the slot is there
    items.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", items.slot)
    with psycopg.connect(items.dsn) as other:
        other.execute("UPDATE items SET version = 2")
        assert str(other.info.backend_pid) in refused(items, builder).message
