"""Values of every type, into a table and out of it."""

from __future__ import annotations

import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.testing import SinkHarness, collect, test_environment
from tests.services.postgres.postgres_tables import EXACTLY_ONCE

NOW = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=timezone.utc)
UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

COLUMNS = {
    "i2": ("smallint", -7),
    "i4": ("integer", 2**31 - 1),
    "i8": ("bigint", -(2**63)),
    "f4": ("real", 0.5),
    "f8": ("double precision", 1e300),
    "n": ("numeric(20,4)", Decimal("12345.6789")),
    "s": ("text", "ä\t\n\\N 'quoted'"),
    "v": ("varchar(10)", ""),
    "b": ("bytea", b"\x00\xff\\"),
    "o": ("boolean", False),
    "t": ("timestamptz", NOW),
    "l": ("timestamp", NOW.replace(tzinfo=None)),
    "d": ("date", date(1, 1, 1)),
    "c": ("time", time(23, 59, 59, 999999)),
    "j": ("jsonb", {"a": [1, None, {"b": "ü"}]}),
    "k": ("json", [1, "two"]),
    "u": ("uuid", UUID),
    "ai": ("integer[]", [1, None, 3]),
    "at": ("text[]", ["a,b", 'c"d', None, ""]),
    "aa": ("bigint[]", [[1, 2], [3, 4]]),
    "aj": ("jsonb[]", [{"a": 1}, [2]]),
}
# these have no binary form here
TEXT_ONLY = {"x": ("char(3)", "ab "), "iv": ("interval", timedelta(days=1, seconds=5)), "e": ("mood", "glad")}


def create(tables, columns, key=True):
    definitions = ", ".join(f"{name} {type_name}" for name, (type_name, _) in columns.items())
    tables.run(f"CREATE TABLE t ({'nr int PRIMARY KEY, ' if key else ''}{definitions})")


def write(builder, *records):
    harness = SinkHarness(builder.build())
    try:
        harness.open()
        for record in records:
            harness.process_element(record)
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    finally:
        harness.close()


def read(tables):
    source = PostgresSource.builder().set_url(tables.url).set_table("t").build()
    return collect(test_environment().from_source(source, WatermarkStrategy.no_watermarks(), "s"))


@pytest.mark.parametrize("mode", ["append", "exactly-once", "upsert"])
@pytest.mark.parametrize("columns", [COLUMNS, {**COLUMNS, **TEXT_ONLY}], ids=["binary", "text"])
def test_values_come_back_as_they_were(tables, mode, columns):
    tables.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    create(tables, columns)
    rows = [
        Row(nr=0, **{name: value for name, (_, value) in columns.items()}),
        Row(nr=1, **dict.fromkeys(columns)),
    ]
    sink = tables.sink()
    if mode == "exactly-once":
        sink.set_delivery_guarantee(EXACTLY_ONCE)
    elif mode == "upsert":
        sink.set_upsert_key("nr")
    write(sink, *rows)
    assert read(tables) == rows


def test_values_of_other_types_that_the_server_can_read(tables):
    columns = {name: COLUMNS[name] for name in ("i4", "f8", "n", "s", "o", "t", "l", "d", "u", "j")}
    create(tables, columns, key=False)
    zone = timezone(timedelta(hours=2))
    write(
        tables.sink(),
        ("5", "1.5", 2.25, 7, "false", "2024-01-01", NOW.astimezone(zone), NOW, str(UUID), "text"),
        # without a time zone it is taken for UTC
        (True and 6, 1, 3, "x", 1, NOW.replace(tzinfo=None), "2024-01-01 10:00", "2024-01-02", UUID, None),
    )
    first, second = read(tables)
    assert first == Row(
        i4=5,
        f8=1.5,
        n=Decimal("2.25"),
        s="7",
        o=False,
        t=datetime(2024, 1, 1, tzinfo=timezone.utc),
        l=NOW.replace(tzinfo=None),
        d=NOW.date(),
        u=UUID,
        j="text",
    )
    assert (second.o, second.t, second.l) == (True, NOW, datetime.fromisoformat("2024-01-01T10:00"))


@pytest.mark.parametrize(
    ("type_name", "value"),
    [("smallint", 2**15), ("integer", 2**31), ("integer[]", [2**31]), ("real", 1e300), ("boolean", "maybe")],
)
def test_a_value_that_does_not_fit_is_never_written_as_another(tables, type_name, value):
    create(tables, {"v": (type_name, None)}, key=False)
    with pytest.raises(PostgresError, match=r"out of range|invalid input"):
        write(tables.sink(), (None,), (value,))
    assert tables.run("SELECT * FROM t") == []


def test_the_types_of_a_result(tables):
    create(tables, COLUMNS)
    source = PostgresSource.builder().set_url(tables.url).set_table("t").build()
    found = source.infer_type_info()
    types = dict(zip(found.get_field_names(), found.get_field_types(), strict=True))
    assert list(types) == ["nr", *COLUMNS]
    assert types["nr"] == Types.INT()
    assert types["n"] == Types.BIG_DEC()
    assert types["s"] == types["v"] == Types.STRING()
    assert types["l"] == Types.SQL_TIMESTAMP()
    assert types["at"] == Types.BASIC_ARRAY(Types.STRING())
    assert types["j"] == Types.PICKLED_BYTE_ARRAY()


def test_splits_by_numbers_dates_and_timestamps(tables):
    tables.run("CREATE TABLE t (id int PRIMARY KEY, n numeric, d date, s timestamp, x int)")
    tables.run(
        "INSERT INTO t SELECT i, i * 1.5, '2024-01-01'::date + i, '2024-01-01'::timestamp + i * '1 hour'::interval, "
        "nullif(i % 5, 0) FROM generate_series(1, 200) i"
    )
    for column in ("id", "n", "d", "s", "x"):
        source = PostgresSource.builder().set_url(tables.url).set_table("t").set_columns("x", "d").set_fetch_size(7)
        stream = test_environment(3).from_source(
            source.set_partition_column(column, partitions=4).build(), WatermarkStrategy.no_watermarks(), "s"
        )
        rows = collect(stream)
        assert len(rows) == len({row.d for row in rows}) == 200, column
        assert rows[0].get_field_names() == ["x", "d"]
    bounded = PostgresSource.builder().set_url(tables.url).set_query("SELECT id, d FROM t WHERE s IS NOT NULL;")
    bounded.set_partition_column("d", lower_bound=date(2024, 1, 11), upper_bound=date(2024, 1, 20), partitions=3)
    stream = test_environment(2).from_source(bounded.build(), WatermarkStrategy.no_watermarks(), "s")
    assert sorted(row.id for row in collect(stream)) == list(range(10, 20))


def test_splits_by_parameters_and_an_empty_table(tables):
    tables.run("CREATE TABLE t (id int, author text)")
    empty = PostgresSource.builder().set_url(tables.url).set_table("t").set_partition_column("id").build()
    assert collect(test_environment(2).from_source(empty, WatermarkStrategy.no_watermarks(), "s")) == []
    tables.run("INSERT INTO t VALUES (1, 'Kumar'), (2, 'Tan'), (3, '100%'), (4, 'Kumar')")
    query = "SELECT id, '?%' AS mark FROM t WHERE author = ?"
    source = PostgresSource.builder().set_url(tables.url).set_query(query, [("Kumar",), ("100%",)]).build()
    rows = collect(test_environment(2).from_source(source, WatermarkStrategy.no_watermarks(), "s"))
    assert sorted((row.id, row.mark) for row in rows) == [(1, "?%"), (3, "?%"), (4, "?%")]
