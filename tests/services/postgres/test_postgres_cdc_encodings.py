"""Captures of databases that are not in UTF8: the log is in another encoding, text in another order."""

from __future__ import annotations

import itertools
from dataclasses import replace

import psycopg
import pytest

from firesteel.connectors.postgres.cdc.errors import CaptureSetupError
from firesteel.datastream.connectors.postgres import PostgresCdcSource
from firesteel.testing import eventually
from tests.services.postgres.cdc_harness import DEADLINE_S, CaptureHarness, Replica

_numbers = itertools.count(1)
CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
TEXTS = {
    "LATIN1": ("grün", "Ã¼", "ÿ"),
    "WIN1252": ("€5", "naïve", "š"),
    "KOI8R": ("мир", "Ж", "ж"),
    "EUC_JP": ("日本語", "ｱ", "ア"),
    "UTF8": ("grün", "мир", "日本語\U0001f600"),
    "SQL_ASCII": ("plain", "grün", "мир"),
}


class EncodedDatabase:
    """A database of its own, dropped with everything in it."""

    def __init__(self, server, encoding):
        self._server, self.name = server, f"{encoding.lower()}_{next(_numbers)}"
        self._run(f"CREATE DATABASE {self.name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        self.dsn = server.dsn_of(self.name)
        self.connection = psycopg.connect(self.dsn, autocommit=True, client_encoding="UTF8")
        self._harnesses = []

    def _run(self, statement):
        with self._server.connect(autocommit=True) as connection:
            connection.execute(statement)

    def execute(self, statement, *values):
        return self.connection.execute(statement, values or None)

    def capture(self, **properties):
        builder = PostgresCdcSource.builder().url(self.dsn).table_list("public.*").slot_name(self.name)
        builder.split_size(8).fetch_size(8).connection_properties(**properties)
        self._harnesses.append(CaptureHarness(builder.build()))
        return self._harnesses[-1]

    def rows(self):
        return sorted(map(tuple, self.execute("SELECT * FROM items").fetchall()), key=repr)

    def close(self):
        for harness in self._harnesses:
            harness.close()
        slots = "FROM pg_replication_slots WHERE database = current_database()"
        self.execute(f"SELECT pg_terminate_backend(active_pid, 60000) {slots} AND active")
        eventually(lambda: not self.execute(f"SELECT 1 {slots} AND active").fetchall(), DEADLINE_S)
        self.execute(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
        self.connection.close()
        self._run(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture
def encoded(postgres):
    made = []

    def make(encoding):
        made.append(EncodedDatabase(postgres, encoding))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("properties", [{}, {"client_encoding": "LATIN1"}], ids=["default", "LATIN1"])
@pytest.mark.parametrize("encoding", TEXTS)
def test_text_is_the_same_from_the_table_and_from_the_log(encoded, encoding, properties):
    database, texts = encoded(encoding), TEXTS[encoding]
    name = "ascii" if encoding == "SQL_ASCII" else texts[0]
    database.execute(f'CREATE TABLE items (id int PRIMARY KEY, "{name}" text, list text[], doc json)')
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    insert = "INSERT INTO items VALUES (%s, %s, %s, to_json(%s::text))"
    for number, text in enumerate(texts):
        database.execute(insert, number, text, [text, text], text)
    harness = database.capture(**properties)
    harness.run_until_caught_up(database.connection)
    for number, text in enumerate(texts):
        database.execute(insert, 10 + number, text, [text, text], text)
    harness.run_until_caught_up(database.connection)
    rows = [(row["id"] % 10, row[name], row["list"], row["doc"]) for row in harness.records]
    assert rows == [(n, text, [text, text], text) for n, text in enumerate(texts)] * 2


@pytest.mark.parametrize("encoding", ["KOI8R", "UTF8", "SQL_ASCII"])
@pytest.mark.parametrize("column", ["text", "varchar", "char(3)", "letter", "name"])
def test_keys_are_in_the_order_of_their_code_points(encoded, encoding, column):
    database = encoded(encoding)
    letters = ", ".join(f"'{letter}'" for letter in CYRILLIC)
    database.execute(f"CREATE TYPE letter AS ENUM ({letters})")
    database.execute(f"CREATE TABLE items (id {column} PRIMARY KEY, version int)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    for letter in CYRILLIC:
        database.execute("INSERT INTO items VALUES (%s, 0)", letter)
    harness = database.capture()
    harness.run_until(lambda: len(harness.emitted) >= 16, checkpoints=False, max_records=4)
    database.execute("UPDATE items SET version = 1")
    harness.take_checkpoint()
    following = harness.recover()
    database._harnesses.append(following)
    following.run_until_caught_up(database.connection)
    assert Replica.of(following.records) == database.rows()


def test_the_encoding_of_the_database_is_compared(encoded):
    database = encoded("LATIN1")
    database.execute("CREATE TABLE items (id int PRIMARY KEY)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    harness = database.capture()
    harness.run_until_caught_up(database.connection)
    state = harness.enumerator._state
    assert state.prepared.ids.encoding == "LATIN1"
    # as a checkpoint of a database that was dropped and created again
    state.prepared = replace(state.prepared, ids=replace(state.prepared.ids, encoding="UTF8"))
    harness.take_checkpoint()
    following = harness.recover()
    database._harnesses.append(following)
    with pytest.raises(CaptureSetupError, match="is in the encoding LATIN1, but was in UTF8"):
        following.deliver()
