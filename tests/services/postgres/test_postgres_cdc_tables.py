"""What tables may be like that are captured: their types, keys and what is done to them under way."""

from __future__ import annotations

import pytest

from firesteel.connectors.postgres.cdc.errors import (
    SchemaChangedError,
    TruncatedTableError,
    UnavailableValueError,
    UnreadableValueError,
)
from firesteel.datastream.connectors.postgres import EnvelopeDeserializationSchema, RowDebeziumDeserializationSchema
from tests.services.postgres.cdc_harness import Replica, database, items

__all__ = ["database", "items"]

TYPES = {
    "int2": "7",
    "int8": "-9223372036854775808",
    "bool": "true",
    "float4": "1.1",
    "float8": "0.1",
    "numeric": "12345678901234567890.1234567890",
    "numeric(10, 2)": "1.50",
    "text": "'Übergröße \t\n\\ '",
    "varchar(20)": "''",
    "char(5)": "'ab'",
    "bytea": "'\\x00ff27'",
    "date": "'0001-01-01'",
    "time": "'23:59:59.999999'",
    "timetz": "'12:00:00+05:30'",
    "timestamp": "'2024-02-29 12:34:56.789'",
    "timestamptz": "'2024-02-29 12:34:56.789+05:30'",
    "interval": "'3 days 04:05:06.7'",
    "json": """'{"a": [1, null]}'""",
    "jsonb": """'{"a": {"b": 1.5}}'""",
    "uuid": "'00112233-4455-6677-8899-aabbccddeeff'",
    "int[]": "'{1,NULL,3}'",
    "text[]": """'{a,"b,c",NULL}'""",
    "inet": "'10.0.0.1'",
    "int4range": "'[1,5)'",
    "mood": "'happy'",
    "small": "5",
    "point": "'(1,2)'",
    "pair": "'(1,x)'",
}


def test_values_are_the_same_from_the_table_and_from_the_log(database):
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    database.execute("CREATE DOMAIN small AS int CHECK (VALUE < 10)")
    database.execute("CREATE TYPE pair AS (a int, b text)")
    columns = [f"c{number} {name}" for number, name in enumerate(TYPES)]
    database.execute(
        f"CREATE TABLE items (id int PRIMARY KEY, {', '.join(columns)}, twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    names = ", ".join(f"c{number}" for number in range(len(TYPES)))
    insert = f"INSERT INTO items (id, {names}) VALUES (NUMBER, {', '.join(TYPES.values())})"
    database.connection.execute(insert.replace("NUMBER", "1"))
    database.execute("INSERT INTO items (id) VALUES (2)")
    harness = database.capture()
    harness.run_until_caught_up(database.connection)
    database.connection.execute(insert.replace("NUMBER", "3"))
    database.execute("INSERT INTO items (id) VALUES (4)")
    harness.run_until(lambda: len(harness.records) == 4)
    read, empty, logged, empty_logged = (row.as_dict() for row in harness.records)
    for row in (read, empty, logged, empty_logged):
        del row["id"]
    assert repr(read) == repr(logged)
    assert set(empty.values()) == set(empty_logged.values()) == {None}
    assert (read["c0"], read["c2"], read["c9"], read["c25"]) == (7, True, "ab   ", 5)
    assert "twice" not in read


@pytest.mark.parametrize(
    ("definition", "values"),
    [
        ('id text COLLATE "en_US"', None),
        ("id text", "chr(65 + n % 50) || n"),
        ("id char(8)", "chr(65 + n % 50) || n"),
        ("id numeric", "n / 10.0"),
        ("id float8", "n / 10.0"),
        ("id uuid", "md5(n::text)::uuid"),
        ("id timestamptz", "timestamptz '2024-01-01+00' + n * interval '37 hours'"),
        ("id mood", None),
        ("id interval", "n * interval '1 hour'"),
        ("id bytea", "decode(md5(n::text), 'hex')"),
    ],
)
def test_any_type_can_be_a_primary_key(database, definition, values):
    if definition == "id mood":
        moods = [f"m{100 - number}" for number in range(70)]
        database.execute(f"CREATE TYPE mood AS ENUM ({', '.join(map(repr, moods))})")
        values = "('m' || (100 - n))::mood"
    if "COLLATE" in definition:
        database.execute("CREATE COLLATION icu (provider = icu, locale = 'en')")
        definition, values = "id text COLLATE icu", "chr(65 + n % 50) || n"
    database.execute(f"CREATE TABLE items ({definition} PRIMARY KEY, version int)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO items SELECT {values}, 0 FROM generate_series(1, 60) AS n".replace("%", "%%"))
    harness = database.capture(database.builder().fetch_size(3), parallelism=3)
    harness.deliver()
    for version in range(1, 25):
        database.execute("UPDATE items SET version = %s WHERE md5(id::text || %s) < '4'", version, str(version))
        harness.poll_all(max_records=2)
        if version % 8 == 0:
            harness.take_checkpoint()
    harness.take_checkpoint()
    harness = harness.recover()
    try:
        harness.run_until_caught_up(database.connection)
    finally:
        harness.close()
    assert Replica.of(harness.records) == database.rows("items")


def test_keys_of_several_columns_and_odd_names(database):
    database.execute('CREATE SCHEMA "My Schema"')
    database.execute(
        'CREATE TABLE "My Schema"."100%% ""Items""" (a int, "B %%s" text, version int, PRIMARY KEY ("B %%s", a))'
    )
    database.execute('ALTER TABLE "My Schema"."100%% ""Items""" REPLICA IDENTITY FULL')
    database.execute(
        'INSERT INTO "My Schema"."100%% ""Items""" SELECT n %% 7, \'k\' || n / 7, 0 FROM generate_series(1, 60) AS n'
    )
    harness = database.capture(database.builder('My Schema.100% "Items"').publication_name('Odd "Name"'), parallelism=2)
    harness.run_until(lambda: len(harness.records) >= 20)
    database.execute('UPDATE "My Schema"."100%% ""Items""" SET version = 1')
    harness.run_until_caught_up(database.connection)
    replica = Replica.of(harness.records, key=lambda row: (row[0], row[1]))
    assert replica == database.rows('"My Schema"."100%% ""Items"""')


def test_several_tables_and_what_is_appended_to_their_rows(items):
    items.execute("CREATE TABLE others (n int PRIMARY KEY, t text)")
    items.execute("ALTER TABLE others REPLICA IDENTITY FULL")
    items.execute("INSERT INTO others VALUES (1, 'a')")
    schema = RowDebeziumDeserializationSchema("table_name", "schema_name", "op_ts", "row_kind")
    harness = items.capture(items.builder(r"public\.(items|others)").deserializer(schema), parallelism=2)
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE others SET t = 'b'")
    items.execute("UPDATE items SET version = 1 WHERE id = 1")
    harness.run_until(lambda: len(harness.records) == 65)
    (row,) = [row for row in harness.records[:61] if row.table_name == "others"]
    assert tuple(row) == (1, "a", "others", "public", 0, "+I")
    last = [tuple(row) for row in harness.records[-4:]]
    assert [row[-1] for row in last] == ["-U", "+U", "-U", "+U"]
    assert [row[-4] for row in last] == ["others", "others", "items", "items"]
    assert last[0][-2] > 1_600_000_000_000


def test_a_partitioned_table_is_one_table(database):
    database.execute("CREATE TABLE items (id int, version int, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
    for name, begin, end in (("low", 0, 30), ("high", 30, 100)):
        database.execute(f"CREATE TABLE items_{name} PARTITION OF items FOR VALUES FROM ({begin}) TO ({end})")
        database.execute(f"ALTER TABLE items_{name} REPLICA IDENTITY FULL")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    database.execute("INSERT INTO items SELECT n, 0 FROM generate_series(1, 60) AS n")
    harness = database.capture(database.builder(r"public\.items.*"))
    harness.run_until(lambda: len(harness.records) >= 10)
    database.execute("UPDATE items SET version = 1")
    database.execute("UPDATE items SET id = 90 WHERE id = 1")
    harness.run_until_caught_up(database.connection)
    assert Replica.of(harness.records) == database.rows("items")


def test_in_upsert_mode_a_change_is_the_row_after_it_or_a_deleted_key(items):
    items.execute("ALTER TABLE items REPLICA IDENTITY DEFAULT")
    harness = items.capture(items.builder().changelog_mode("upsert"))
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE items SET version = 1 WHERE id = 1")
    items.execute("UPDATE items SET id = 99 WHERE id = 1")
    items.execute("DELETE FROM items WHERE id = 2")
    harness.run_until(lambda: len(harness.records) == 64)
    assert [f"{row.get_row_kind()} {tuple(row)}" for row in harness.records[60:]] == [
        "+U (1, 1, 'item 1')",
        "-D (1, None, None)",
        "+I (99, 1, 'item 1')",
        "-D (2, None, None)",
    ]


def test_large_values_that_did_not_change(items):
    items.execute("ALTER TABLE items ALTER name SET STORAGE EXTERNAL")
    items.execute("INSERT INTO items VALUES (100, 0, repeat('x', 100000))")
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE items SET version = 1 WHERE id = 100")
    harness.run_until_caught_up(items.connection)
    assert harness.records[-1].name == "x" * 100_000
    harness.take_checkpoint()
    items.execute("ALTER TABLE items REPLICA IDENTITY DEFAULT")
    items.execute("UPDATE items SET version = 2 WHERE id = 100")
    with pytest.raises(SchemaChangedError, match="no longer has REPLICA IDENTITY FULL"):
        harness.run_until_caught_up(items.connection)
    harness.close()
    builder = items.builder().changelog_mode("upsert")
    harness.source = builder.build()
    harness = harness.recover()
    items._harnesses.append(harness)
    with pytest.raises(UnavailableValueError, match=r"Column 'name' of table public\.items"):
        harness.run_until_caught_up(items.connection)
    harness.source = builder.unavailable_value_placeholder("?").build()
    harness = harness.recover()
    items._harnesses.append(harness)
    harness.run_until_caught_up(items.connection)
    assert tuple(harness.records[-1]) == (100, 2, "?")


@pytest.mark.parametrize("behavior", ["exception", "evolve", "ignore"])
def test_a_table_that_is_altered(items, behavior):
    harness = items.capture(items.builder().schema_change_behavior(behavior))
    harness.run_until_caught_up(items.connection)
    harness.take_checkpoint()
    items.execute("ALTER TABLE items ADD COLUMN price numeric DEFAULT 1.5, DROP COLUMN version")
    items.execute("INSERT INTO items VALUES (100, 'new')")
    if behavior == "exception":
        with pytest.raises(SchemaChangedError, match="also price; not version") as caught:
            harness.run_until_caught_up(items.connection)
        assert caught.value.table == "public.items"
        # the program can be changed, and goes on from where it was
        harness.source = items.builder().schema_change_behavior("evolve").build()
        harness = harness.recover()
        items._harnesses.append(harness)
    harness.run_until_caught_up(items.connection)
    last = harness.records[-1].as_dict()
    if behavior == "ignore":
        assert last == {"id": 100, "version": None, "name": "new"}
    else:
        assert {name: str(value) for name, value in last.items()} == {"id": "100", "name": "new", "price": "1.5"}


def test_a_column_that_gets_another_type(items):
    harness = items.capture()
    harness.run_until_caught_up(items.connection)
    items.execute("ALTER TABLE items ALTER version TYPE text")
    items.execute("INSERT INTO items VALUES (100, 'one', '')")
    with pytest.raises(SchemaChangedError, match="another type of version"):
        harness.run_until_caught_up(items.connection)


@pytest.mark.parametrize("behavior", ["exception", "ignore"])
def test_a_table_that_is_truncated(items, behavior):
    harness = items.capture(items.builder().truncate_behavior(behavior))
    harness.run_until_caught_up(items.connection)
    items.execute("TRUNCATE items")
    if behavior == "exception":
        with pytest.raises(TruncatedTableError, match=r"public\.items"):
            harness.run_until_caught_up(items.connection)
    else:
        harness.run_until_caught_up(items.connection)
        assert len(harness.records) == 60


def test_a_value_python_has_nothing_for(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, at timestamp)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    harness = database.capture()
    harness.run_until_caught_up(database.connection)
    database.execute("INSERT INTO items VALUES (1, 'infinity')")
    with pytest.raises(UnreadableValueError, match=r"public\.items"):
        harness.run_until_caught_up(database.connection)
    harness.close()
    again = database.capture()
    with pytest.raises(UnreadableValueError, match=r"public\.items"):
        again.run_until_caught_up(database.connection)


def test_a_change_as_an_envelope(items):
    harness = items.capture(items.builder().deserializer(EnvelopeDeserializationSchema()))
    harness.run_until_caught_up(items.connection)
    items.execute("UPDATE items SET version = 1 WHERE id = 1")
    harness.run_until(lambda: len(harness.records) == 61)
    read, change = harness.records[0], harness.records[-1]
    assert (read["op"], read["before"], read["after"]) == ("r", None, {"id": 1, "version": 0, "name": "item 1"})
    assert read["source"]["snapshot"]
    assert change["before"] == {"id": 1, "version": 0, "name": "item 1"}
    assert change["after"] == {"id": 1, "version": 1, "name": "item 1"}
    assert (change["op"], change["source"]["schema"], change["source"]["table"]) == ("u", "public", "items")
    assert change["source"]["txid"] > 0
    assert "/" in change["source"]["lsn"]
