"""Tables that are renamed, replaced, dropped or taken out of the publication while they are captured."""

from __future__ import annotations

import pickle

import pytest

from firesteel.connectors.postgres.cdc.capture_setup import look_at_capture
from firesteel.connectors.postgres.cdc.errors import CaptureSetupError, SchemaChangedError
from firesteel.connectors.postgres.cdc.split import ChunkSplit
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.datastream.connectors.postgres import StartupOptions
from tests.services.postgres.cdc_harness import Replica, database, items

__all__ = ["database", "items"]

SWAP = (
    "CREATE TABLE fresh (LIKE items INCLUDING ALL)",
    "ALTER TABLE fresh REPLICA IDENTITY FULL",
    "INSERT INTO fresh SELECT * FROM items",
    "BEGIN; ALTER TABLE items RENAME TO old; ALTER TABLE fresh RENAME TO items; COMMIT",
)
DROP_AND_CREATE = (
    "CREATE TABLE fresh (LIKE items INCLUDING ALL)",
    "ALTER TABLE fresh REPLICA IDENTITY FULL",
    "INSERT INTO fresh SELECT * FROM items",
    "DROP TABLE items",
    "ALTER TABLE fresh RENAME TO items",
)


def run(database, statements):
    for statement in statements:
        database.connection.execute(statement)


def caught_up(items, behavior="exception", **settings):
    builder = items.builder().schema_change_behavior(behavior)
    for name, value in settings.items():
        getattr(builder, name)(value)
    harness = items.capture(builder)
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    return harness


def recovered(items, harness):
    following = harness.recover()
    items._harnesses.append(following)
    return following


def refusals(items, harness, kind=SchemaChangedError):
    """What is said of it while the capture runs, and when it goes on from a checkpoint."""
    with pytest.raises(kind) as running:
        harness.look()
    following = recovered(items, harness)
    with pytest.raises(kind) as restored:
        following.deliver()
    assert running.value.message == restored.value.message
    assert running.value.hint
    return running.value


def test_nothing_is_said_where_nothing_has_happened(items):
    harness = caught_up(items)
    harness.look()
    items.execute("UPDATE items SET version = 1")
    items.execute("CREATE TABLE others (id int)")
    items.execute("ALTER PUBLICATION firesteel_publication ADD TABLE others")
    harness.look()
    following = recovered(items, harness)
    following.run_until_caught_up(items.connection)
    following.look()
    assert Replica.of(following.records) == items.rows("items")


def test_a_table_that_is_renamed(items):
    harness = caught_up(items)
    items.execute("ALTER TABLE items RENAME TO goods")
    error = refusals(items, harness)
    assert "public.items has been renamed to public.goods" in error.message
    assert error.table == "public.items"


def test_a_table_that_moves_to_another_schema(items):
    harness = caught_up(items)
    items.execute("CREATE SCHEMA archive")
    items.execute("ALTER TABLE items SET SCHEMA archive")
    assert "renamed to archive.items" in refusals(items, harness).message


def test_changes_under_another_name_are_not_lost_when_it_is_given_back(items):
    harness = caught_up(items)
    items.execute("ALTER TABLE items RENAME TO goods")
    items.execute("UPDATE goods SET version = 7 WHERE id = 1")
    items.execute("ALTER TABLE goods RENAME TO items")
    harness.look()
    with pytest.raises(SchemaChangedError, match=r"renamed to public\.goods"):
        harness.run_until_caught_up(items.connection)


@pytest.mark.parametrize("behavior", ["evolve", "ignore"])
def test_a_renamed_table_is_read_on_under_the_name_it_was_captured_with(items, behavior):
    harness = items.capture(items.builder().schema_change_behavior(behavior).fetch_size(5))
    harness.run_until(lambda: len(harness.records) >= 15, checkpoints=False, max_records=5)
    items.execute("ALTER TABLE items RENAME TO goods")
    items.execute("UPDATE goods SET version = 7 WHERE id %% 3 = 1")
    harness.run_until_caught_up(items.connection)
    harness.look()
    harness.take_checkpoint()
    following = recovered(items, harness)
    items.execute("DELETE FROM goods WHERE id = 2")
    following.run_until_caught_up(items.connection)
    assert Replica.of(following.records) == items.rows("goods")


@pytest.mark.parametrize("behavior", ["exception", "evolve", "ignore"])
@pytest.mark.parametrize("statements", [SWAP, DROP_AND_CREATE], ids=["swapped", "dropped and created"])
def test_a_table_that_is_replaced_fails_in_any_case(items, statements, behavior):
    harness = caught_up(items, behavior)
    run(items, statements)
    items.execute("INSERT INTO items VALUES (100, 0, 'c')")
    error = refusals(items, harness)
    assert "public.items has been replaced" in error.message
    assert "without a checkpoint" in error.hint


@pytest.mark.parametrize("behavior", ["exception", "evolve", "ignore"])
def test_changes_of_a_table_that_took_the_name_are_not_taken_for_its_own(items, behavior):
    harness = caught_up(items, behavior, publication_autocreate_mode="all_tables")
    run(items, SWAP)
    items.execute("UPDATE items SET version = 5 WHERE id = 1")
    with pytest.raises(SchemaChangedError, match=r"public\.items has been replaced"):
        harness.run_until_caught_up(items.connection)


def test_a_table_that_takes_the_name_before_its_rows_are_read(items):
    harness = items.capture()
    harness.make_call()  # prepares the capture
    run(items, SWAP)
    with pytest.raises(SchemaChangedError, match=r"renamed|replaced"):
        harness.run_until_caught_up(items.connection)
    assert harness.records == []


@pytest.mark.parametrize("statements", [SWAP, DROP_AND_CREATE], ids=["swapped", "dropped and created"])
def test_a_capture_that_is_started_anew_after_that(items, statements):
    harness = caught_up(items)
    items.execute("UPDATE items SET version = 3 WHERE id = 3")
    run(items, statements)
    with pytest.raises(SchemaChangedError):
        harness.look()
    harness.close()
    # with the same slot, which has changes of the table before
    again = items.capture()
    again.run_until(lambda: len(again.records) >= 10, checkpoints=False, max_records=5)
    items.execute("UPDATE items SET version = version + 1")
    again.run_until_caught_up(items.connection)
    again.look()
    assert Replica.of(again.records) == items.rows("items")


def test_a_table_that_is_dropped(items):
    items.execute("CREATE TABLE others (id int PRIMARY KEY)")
    items.execute("ALTER TABLE others REPLICA IDENTITY FULL")
    for behavior in ("exception", "ignore"):
        builder = items.builder("public.items", "public.others").schema_change_behavior(behavior)
        harness = items.capture(builder.slot_name(f"{items.slot}_{behavior}"))
        harness.run_until_caught_up(items.connection)
        harness.take_checkpoint()
        if behavior == "exception":
            items.execute("DROP TABLE others")
            assert "public.others has been dropped" in refusals(items, harness).message
            items.execute("CREATE TABLE others (id int PRIMARY KEY)")
            items.execute("ALTER TABLE others REPLICA IDENTITY FULL")
    items.execute("DROP TABLE others")
    harness.look()
    following = recovered(items, harness)
    items.execute("UPDATE items SET version = 1")
    following.run_until_caught_up(items.connection)
    assert Replica.of(following.records) == items.rows("items")


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE items"],
        ["ADD TABLE others", "DROP TABLE items", "ADD TABLE items"],
        ["SET TABLE others", "SET TABLE others, items"],
        ["SET (publish = 'insert')"],
    ],
    ids=["out", "out and in again", "set", "insert only"],
)
def test_a_publication_that_loses_something(items, statements):
    items.execute("CREATE TABLE others (id int)")
    harness = caught_up(items)
    for statement in statements:
        items.execute(f"ALTER PUBLICATION firesteel_publication {statement}")
        # what happens meanwhile is not in the log
        items.execute("UPDATE items SET version = version + 1 WHERE id = 1")
    error = refusals(items, harness, CaptureSetupError)
    assert "publication 'firesteel_publication'" in error.message
    assert "changes are missing" in error.message


def test_a_publication_that_is_created_again(items):
    harness = caught_up(items)
    items.execute("DROP PUBLICATION firesteel_publication")
    items.execute("CREATE PUBLICATION firesteel_publication FOR TABLE items")
    assert "dropped and created again" in refusals(items, harness, CaptureSetupError).message


def test_a_publication_that_has_the_table_in_two_ways(items):
    if items.connection.info.server_version < 150_000:
        pytest.skip("publications of schemas came with version 15")
    harness = caught_up(items)
    items.execute("ALTER PUBLICATION firesteel_publication ADD TABLES IN SCHEMA public")
    harness.look()
    items.execute("ALTER PUBLICATION firesteel_publication DROP TABLE items")
    items.execute("UPDATE items SET version = 1")
    harness.look()
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    following = recovered(items, harness)
    following.run_until_caught_up(items.connection)
    assert Replica.of(following.records) == items.rows("items")
    items.execute("ALTER PUBLICATION firesteel_publication SET TABLE items")
    with pytest.raises(CaptureSetupError, match="has not had it for a while"):
        following.look()


def test_a_table_that_becomes_a_partition(items):
    harness = caught_up(items)
    items.execute("CREATE TABLE whole (LIKE items INCLUDING ALL) PARTITION BY RANGE (id)")
    items.execute("ALTER TABLE whole ATTACH PARTITION items DEFAULT")
    assert "has become a partition" in refusals(items, harness).message


def test_what_happens_to_a_partitioned_table(database):
    database.execute("CREATE TABLE items (id int, version int, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
    database.execute("CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (100)")
    for name in ("items", "low"):
        database.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    database.execute("INSERT INTO items SELECT n, 0 FROM generate_series(1, 30) AS n")
    harness = caught_up(database, "ignore")
    database.execute("ALTER TABLE items RENAME TO goods")
    database.execute("CREATE TABLE high PARTITION OF goods FOR VALUES FROM (100) TO (200)")
    database.execute("ALTER TABLE high REPLICA IDENTITY FULL")
    database.execute("INSERT INTO goods VALUES (100, 1)")
    database.execute("UPDATE goods SET version = 2 WHERE id < 5")
    harness.look()
    harness.run_until_caught_up(database.connection)
    assert Replica.of(harness.records) == database.rows("goods")


def test_rows_only_are_read_of_the_table_that_was_found(items):
    builder = items.builder().startup_options(StartupOptions.snapshot())
    harness = items.capture(builder)
    harness.make_call()
    run(items, SWAP)
    with pytest.raises(SchemaChangedError, match=r"renamed|replaced"):
        harness.run_until(lambda: harness.ended == {0})


def test_a_server_that_is_away_is_looked_at_later(items):
    harness = caught_up(items)
    away = items.builder().url("postgresql://127.0.0.1:1/nowhere").build()
    assert look_at_capture(away.options, harness.enumerator._state.prepared) is None
    _call, handler = harness.later.pop()
    handler(None, None)
    harness.look()


def test_a_checkpoint_of_an_earlier_version_goes_on(items):
    """Such a checkpoint has neither ids of tables nor of the publication."""
    harness = caught_up(items)
    enumerator_state, states = pickle.loads(harness.checkpoint)
    forget_ids(enumerator_state.prepared)
    for state in states:
        for split in state:
            # a chunk that has been read stays until the enumerator knows
            forget_oids([split.table] if isinstance(split, ChunkSplit) else split.tables)
    harness.checkpoint = pickle.dumps((enumerator_state, states))
    following = recovered(items, harness)
    items.execute("UPDATE items SET version = 9 WHERE id < 5")
    following.run_until_caught_up(items.connection)
    following.look()
    assert Replica.of(following.records) == items.rows("items")


def forget_ids(prepared):
    del prepared.__dict__["ids"]
    forget_oids(prepared.tables)


def forget_oids(tables):
    for table in tables:
        table.__dict__.pop("oid", None)
        for column in table.key:
            column.__dict__.pop("is_utf8", None)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ADD COLUMN price int",
        "ALTER TABLE items DROP COLUMN version",
        "ALTER TABLE items ALTER version TYPE text",
        "ALTER TABLE items RENAME version TO edition",
        "ALTER TABLE items ALTER id TYPE bigint",
        "ALTER TABLE items DROP CONSTRAINT items_pkey, ADD COLUMN nr serial PRIMARY KEY",
    ],
)
def test_a_capture_that_is_started_anew_after_the_table_was_altered(items, statement):
    harness = caught_up(items)
    items.execute("UPDATE items SET name = 'x' WHERE id < 10")
    items.execute(statement)
    items.execute("UPDATE items SET name = 'y' WHERE id < 5")
    with pytest.raises(SchemaChangedError, match="other columns than when the capture began"):
        harness.run_until_caught_up(items.connection)
    harness.close()
    again = items.capture()
    again.run_until(lambda: len(again.records) >= 10, checkpoints=False, max_records=5)
    items.execute("UPDATE items SET name = 'z' WHERE id %% 7 = 1")
    again.run_until_caught_up(items.connection)
    assert Replica.of(again.records) == items.rows("items")


def test_a_change_from_before_the_table_was_altered_that_is_to_be_emitted(items):
    harness = caught_up(items)
    items.execute("UPDATE items SET name = 'x' WHERE id = 1")
    items.execute("ALTER TABLE items ADD COLUMN price int")
    harness.close()
    only_log = items.capture(items.builder().startup_options(StartupOptions.committed_offset()))
    with pytest.raises(SchemaChangedError, match="not price") as caught:
        only_log.run_until_caught_up(items.connection)
    assert isinstance(caught.value, PostgresError)
