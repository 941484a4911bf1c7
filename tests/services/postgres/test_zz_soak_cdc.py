"""Change data capture against a real server, step by step: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random

import psycopg
import pytest
from cdc_harness import CaptureHarness, Replica, database

__all__ = ["database"]


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, version int, name text)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    database.execute("INSERT INTO items SELECT n, 0, 'item ' || n FROM generate_series(1, 60) AS n")
    return database


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


@pytest.mark.parametrize("seed", range(6, 200))
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
