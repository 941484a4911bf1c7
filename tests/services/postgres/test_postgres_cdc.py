"""Change data capture against a real server, step by step: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
import signal

import psycopg
import pytest

from firesteel.common.time import Duration
from firesteel.datastream.connectors.postgres import StartupOptions
from firesteel.testing import eventually
from firesteel.testing.services.postgres_server import PostgresServer
from tests.services.postgres.cdc_harness import CaptureHarness, Database, Replica, create_items, database, items

__all__ = ["database", "items"]


class Writer:
    """Transactions of all kinds, several at once, some rolled back; each version of a row is written once."""

    def __init__(self, dsn, chance, count=3):
        self._chance = chance
        self._open = [psycopg.connect(dsn) for _ in range(count)]
        self._locked = [set() for _ in range(count)]
        self._version = 0

    def step(self):
        chance = self._chance
        number = chance.randrange(len(self._open))
        connection, locked = self._open[number], self._locked[number]
        action = chance.random()
        if action < 0.25 and locked:
            (connection.rollback if chance.random() < 0.2 else connection.commit)()
            locked.clear()
            return
        key = chance.randint(1, 90)
        if any(key in others for others in self._locked):
            return
        locked.add(key)
        self._version += 1
        if chance.random() < 0.2:
            connection.execute("SAVEPOINT before")
        if action < 0.4:
            connection.execute("DELETE FROM items WHERE id = %s", [key])
        elif action < 0.5:
            target = chance.randint(100, 10_000) * 100 + self._version
            connection.execute("UPDATE items SET id = %s, version = %s WHERE id = %s", [target, self._version, key])
        else:
            connection.execute(
                "INSERT INTO items VALUES (%s, %s, 'new') ON CONFLICT (id) DO UPDATE SET version = excluded.version",
                [key, self._version],
            )

    def close(self):
        for connection in self._open:
            connection.commit()
            connection.close()


@pytest.mark.parametrize("seed", range(4))
def test_every_change_comes_once_wherever_the_capture_is_killed(items, seed):
    chance = random.Random(seed)
    source = items.builder().fetch_size(chance.choice([1, 4, 100])).build()
    writer = Writer(items.dsn, chance)
    harness = CaptureHarness(source, chance.choice([1, 3]))
    # an open transaction would keep the capture from beginning
    harness.take_checkpoint()
    try:
        for _ in range(250):
            action = chance.random()
            if action < 0.45:
                writer.step()
            elif action < 0.85:
                harness.deliver(readers=chance.random() < 0.7)
                harness.poll(chance.randrange(harness.parallelism), chance.choice([1, 3, 20]))
            elif action < 0.95:
                # what readers do while a checkpoint is under way is after the enumerator's part of it
                state = harness.begin_checkpoint()
                for _ in range(chance.randint(0, 4)):
                    harness.poll(chance.randrange(harness.parallelism), 5)
                harness.end_checkpoint(state)
                if chance.random() < 0.8:
                    harness.complete_checkpoint()
            else:
                harness = harness.recover(chance.choice([1, 3]))
        writer.close()
        harness.run_until_caught_up(items.connection)
    finally:
        harness.close()
    assert Replica.of(harness.records) == items.rows("items")


def test_rows_come_first_and_then_each_change(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE items SET version = 1 WHERE id = 7")
    items.execute("DELETE FROM items WHERE id = 8")
    items.execute("INSERT INTO items VALUES (61, 0, NULL)")
    items.execute("UPDATE items SET id = 62 WHERE id = 61")
    harness.run_until_caught_up(items.connection)
    changes = [f"{row.get_row_kind()} {tuple(row)}" for row in harness.records[60:]]
    assert changes == [
        "-U (7, 0, 'item 7')",
        "+U (7, 1, 'item 7')",
        "-D (8, 0, 'item 8')",
        "+I (61, 0, None)",
        # another key is another row
        "-D (61, 0, None)",
        "+I (62, 0, None)",
    ]
    assert harness.records[0].get_field_names() == ["id", "version", "name"]


def test_a_transaction_that_ends_while_tables_are_read_is_seen_by_chunk(items):
    harness = items.capture(items.builder().fetch_size(1))
    harness.deliver()
    with psycopg.connect(items.dsn) as other:
        other.execute("UPDATE items SET version = 1 WHERE id IN (3, 33)")
        other.execute("UPDATE items SET id = 1033 WHERE id = 4")  # from the first chunk to the last one
        other.execute("UPDATE items SET id = -5 WHERE id = 55")  # and from the last one to the first
        harness.run_until(lambda: len(harness.records) >= 15)
    # the first chunk has been read without the transaction, the last one is read with it
    harness.run_until_caught_up(items.connection)
    assert Replica.of(harness.records) == items.rows("items")
    changed = [f"{row.get_row_kind()} {row.id}" for row in harness.records if row.id in (3, 4, 33, 55, -5, 1033)]
    assert changed == ["+I 3", "+I 4", "+I 33", "+I 1033", "-U 3", "+U 3", "-D 4", "+I -5"]


def test_the_log_goes_on_in_the_middle_of_a_transaction(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE items SET version = version + 1")
    harness.run_until(lambda: len(harness.records) >= 63, max_records=1, checkpoints=False)
    assert len(harness.records) < 180
    harness.take_checkpoint()
    before = len(harness.records)
    harness.run_until(lambda: len(harness.records) > before, max_records=1, checkpoints=False)
    harness = harness.recover()
    assert len(harness.records) == before
    harness.run_until_caught_up(items.connection)
    harness.close()
    assert len(harness.records) == 180
    assert Replica.of(harness.records) == items.rows("items")


def test_the_log_is_kept_until_a_checkpoint_is_complete(items):
    harness = items.capture(items.builder().lsn_commit_checkpoints_delay(1))
    harness.run_until_caught_up(items.connection)

    def confirmed():
        return items.value(
            "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s", items.slot
        )

    before = items.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    items.execute("UPDATE items SET version = 1")
    harness.run_until(lambda: len(harness.records) == 180, checkpoints=False)
    harness.run_until(lambda: harness.readers[0]._log.position.lsn > before, checkpoints=False)
    harness.take_checkpoint()
    assert confirmed() <= before
    harness.take_checkpoint()
    harness.run_until(lambda: confirmed() > before, checkpoints=False)


def test_a_server_where_nothing_of_interest_happens_need_not_keep_its_log(items):
    items.execute("CREATE TABLE others (n int)")
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("INSERT INTO others SELECT generate_series(1, 1000)")
    written = items.value("SELECT pg_logical_emit_message(true, 'test', 'here') - '0/0'::pg_lsn")
    statement = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
    harness.run_until(lambda: items.value(statement, items.slot) >= written)
    assert len(harness.records) == 60


def test_a_dropped_connection_is_made_again(items):
    harness = items.capture()
    active = "SELECT max(active_pid) FROM pg_replication_slots WHERE slot_name = %s"
    for version in range(3):
        harness.run_until(lambda: items.value(active, items.slot) is not None)
        pid = items.value(active, items.slot)
        items.execute("UPDATE items SET version = %s", version)
        harness.poll_all(max_records=10)
        assert items.value("SELECT pg_terminate_backend(%s, 60000)", pid)
        items.execute("UPDATE items SET version = -1 WHERE id = 1")
        harness.run_until_caught_up(items.connection)
    assert Replica.of(harness.records) == items.rows("items")
    assert len(harness.records) == 60 + 3 * 122


def test_a_dropped_connection_while_tables_are_read_is_made_again(items):
    harness = items.capture(items.builder().fetch_size(1).split_size(1000))
    harness.run_until(lambda: len(harness.records) >= 5, max_records=1)
    items.execute("UPDATE items SET version = 1")
    # that of the enumerator ends a moment after it is not needed any more
    eventually(lambda: len(items.sessions()) == 1)
    items.execute("SELECT pg_terminate_backend(%s, 60000)", *items.sessions())
    harness.run_until_caught_up(items.connection)
    assert Replica.of(harness.records) == items.rows("items")
    # some rows were read before the update, the rest after it
    assert 60 < len(harness.records) < 180


def test_a_restarted_server_is_read_on_from(postgres):
    # one that others do not need meanwhile
    with PostgresServer() as server:
        database = Database(server)
        create_items(database)
        harness = database.capture()
        harness.run_until_caught_up(database.connection)
        harness.take_checkpoint()
        for stop in (signal.SIGINT, signal.SIGQUIT):
            database.execute("UPDATE items SET version = version + 1")
            database.connection.close()
            server._server.stop(stop)
            server.start()
        database.execute("UPDATE items SET version = version + 1")
        harness.run_until(lambda: len(harness.records) == 420)
        assert Replica.of(harness.records) == database.rows("items")
        database.close()


def test_a_server_that_stops_need_not_wait_for_what_is_not_confirmed(items):
    harness = items.capture(items.builder().heartbeat_interval(Duration.of_millis(50)))
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    items.execute("UPDATE items SET version = 1")
    harness.run_until(lambda: len(harness.records) == 180, checkpoints=False)
    slot = f"firesteel cdc {items.slot}"
    statement = "SELECT flush_lsn IS NULL, write_lsn = sent_lsn FROM pg_stat_replication WHERE application_name = %s"
    harness.run_until(lambda: items.execute(statement, slot).fetchone() == (True, True), checkpoints=False)


def test_the_startup_options_say_where_to_begin(items):
    only_rows = items.capture(items.builder().startup_options(StartupOptions.snapshot()), parallelism=2)
    only_rows.run_until(lambda: only_rows.ended == {0, 1})
    assert len(only_rows.records) == 60
    assert items.value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s", items.slot) == 0

    latest = items.capture(items.builder().startup_options(StartupOptions.latest()))
    latest.run_until_caught_up(items.connection)
    items.execute("DELETE FROM items WHERE id = 1")
    latest.run_until(lambda: len(latest.records) == 1)
    latest.run_until_caught_up(items.connection)
    latest.close()
    items.execute("DELETE FROM items WHERE id = 2")

    committed = items.capture(items.builder().startup_options(StartupOptions.committed_offset()))
    committed.run_until(lambda: committed.records != [])
    # what no checkpoint has confirmed comes again
    assert committed.records[-1].id in (1, 2)
    committed.run_until_caught_up(items.connection)
    assert committed.records[-1].id == 2
    committed.close()

    latest = items.capture(items.builder().startup_options(StartupOptions.latest()))
    latest.run_until_caught_up(items.connection)
    items.execute("DELETE FROM items WHERE id = 3")
    latest.run_until(lambda: latest.records != [])
    assert [row.id for row in latest.records] == [3]


def test_the_event_time_of_a_change_is_that_of_its_commit_and_no_row_is_later(items):
    begin = items.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    harness = items.capture()
    harness.run_until(lambda: len(harness.records) == 60)
    items.execute("UPDATE items SET version = 1 WHERE id = 1")
    harness.run_until(lambda: len(harness.records) == 62)
    end = items.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    times = [timestamp for _, timestamp in harness.emitted]
    assert begin <= times[0] <= times[60] == times[61] <= end
    assert len(set(times[:60])) == 1


def test_the_slot_is_dropped_on_demand(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    harness.close()
    harness.source.drop_slot(publication=True)
    harness.source.drop_slot(publication=True)
    assert items.value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s", items.slot) == 0
    assert items.value("SELECT count(*) FROM pg_publication") == 0


def test_a_chunk_that_is_finished_while_a_checkpoint_is_under_way(items):
    harness = items.capture(parallelism=2)
    harness.take_checkpoint()
    harness.run_until(lambda: len(harness.records) > 0, checkpoints=False)
    state = harness.begin_checkpoint()
    finished = sum(len(output.released) for output in harness.outputs)
    # the news is after the enumerator's part of the checkpoint
    harness.run_until(
        lambda: sum(len(output.released) for output in harness.outputs) > finished, checkpoints=False, delivers=False
    )
    harness.end_checkpoint(state)
    harness = harness.recover()
    try:
        harness.run_until_caught_up(items.connection)
    finally:
        harness.close()
    assert Replica.of(harness.records) == items.rows("items")
    assert not any(reader._finished for reader in harness.readers)


def test_with_several_readers_the_log_waits_until_all_rows_are_through(items):
    harness = items.capture(parallelism=3)
    harness.run_until(lambda: len(harness.records) == 60, checkpoints=False)
    harness.run_until(lambda: not harness.enumerator._state.unfinished, checkpoints=False)
    harness.deliver()
    assert harness.log_reader is None
    harness.end_checkpoint(harness.begin_checkpoint())
    assert harness.log_reader is None
    harness.complete_checkpoint()
    harness.deliver()
    assert harness.log_reader is not None
    harness.run_until_caught_up(items.connection)
    # the others are done, so that they do not hold back event time
    assert len(harness.ended) == 2
