"""Tables of PostgreSQL in SQL: read, looked up, written, and their changes captured."""

from __future__ import annotations

from decimal import Decimal

import pytest

from firesteel.common.types import RowKind
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.table import DataTypes
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.lookups import FullCacheOptions
from firesteel.table.connectors.postgres.cdc import PostgresCdcTableSource
from firesteel.table.connectors.postgres.jdbc import JdbcTableSource
from firesteel.types.logical import RowType
from tests.support.table_queries import run_query, sink_of, source_of, write_rows

TYPE = RowType.of(
    ["id", "name", "price", "at"],
    [DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.DECIMAL(10, 2), DataTypes.TIMESTAMP(3)],
    nullable=False,
)
COLUMNS = "id bigint primary key, name text, price numeric(10, 2), at timestamp(3)"
ROWS = [(1, "a", Decimal("1.50"), 1_577_836_812_300_000_000), (2, None, None, None), (3, "c", Decimal(3), 0)]


def options(tables, **others: str) -> dict[str, str]:
    return {"connector": "jdbc", "url": tables.url, "table-name": "t", **others}


@pytest.fixture
def table(tables):
    tables.run(f"CREATE TABLE t ({COLUMNS})")
    return tables


def test_rows_that_are_written_are_read(table):
    write_rows(sink_of(TYPE, options(table)), TYPE, ROWS)
    assert table.run("SELECT id, name, price FROM t ORDER BY id") == [(row[0], row[1], row[2]) for row in ROWS]
    cut = {
        "scan.partition.column": "id",
        "scan.partition.num": "2",
        "scan.partition.lower-bound": "1",
        "scan.partition.upper-bound": "3",
    }
    for source in (source_of(TYPE, options(table)), source_of(TYPE, options(table, **cut))):
        found = run_query("SELECT id, price, CAST(`at` AS STRING) FROM t", {"t": source})
        assert sorted(map(tuple, found)) == [
            (1, Decimal("1.50"), "2020-01-01 00:00:12.300"),
            (2, None, None),
            (3, Decimal("3.00"), "1970-01-01 00:00:00.000"),
        ]


def test_upserts_and_deletions(table):
    sink = sink_of(TYPE, options(table), primary_key=["id"])
    kinds = [RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = [(1, "a", None, None), (2, "b", None, None), (1, "z", None, None), (2, "b", None, None)]
    write_rows(sink, TYPE, rows, kinds, (0,))
    assert table.run("SELECT id, name FROM t") == [(1, "z")]


def test_lookups(table):
    write_rows(sink_of(TYPE, options(table)), TYPE, ROWS)
    cached = {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": "10"}
    source = source_of(TYPE, options(table, **cached))
    assert isinstance(source, JdbcTableSource)
    lookup = source.create_lookup([0])
    lookup.open()
    assert lookup.lookup_many([(1,), (9,), (None,), (1,)]) == [[ROWS[0]], [], [], [ROWS[0]]]
    table.run("UPDATE t SET name = 'new'")
    assert lookup.lookup_many([(1,), (3,)]) == [[ROWS[0]], [(3, "new", Decimal(3), 0)]]
    lookup.close()


def test_rows_are_appended_exactly_once(table):
    sink = sink_of(TYPE, options(table, **{"sink.delivery-guarantee": "exactly-once"}))
    write_rows(sink, TYPE, ROWS)
    assert table.run("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]
    assert sink.guarantee is DeliveryGuarantee.EXACTLY_ONCE


def test_lookups_in_all_rows(table):
    write_rows(sink_of(TYPE, options(table)), TYPE, ROWS)
    full = {"lookup.cache": "FULL", "lookup.full-cache.periodic-reload.interval": "1 h"}
    source = source_of(TYPE, options(table, **full))
    assert source.lookup_cache == FullCacheOptions(3_600_000)
    lookup = source.create_lookup([0])
    lookup.open()
    assert list(lookup.read_all()) == ROWS
    lookup.close()


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"url": "jdbc:mysql://localhost/db"}, "Could not find any jdbc dialect factory"),
        ({"scan.partition.num": "2"}, "Either all or none of the following options"),
        ({"lookup.cache": "FULL"}, "Missing 'lookup.full-cache.periodic-reload.interval' in PERIODIC"),
        ({"lookup.cache": "FULL", "lookup.full-cache.reload-strategy": "TIMED"}, "Missing .* in TIMED"),
        ({"lookup.cache": "MOST"}, "lookup cache 'MOST' is not supported"),
        ({"driver": "x"}, "Unsupported options:\n\ndriver"),
    ],
)
def test_wrong_options(tables, others, message):
    with pytest.raises(ValidationError, match=message):
        source_of(TYPE, {**options(tables), **others})


def test_changes_are_captured(postgres):
    from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
    from firesteel.table.connector.source import ScanContext
    from tests.support.table_queries import environment

    with postgres.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE captured (id bigint primary key, name text, other int)")
        connection.execute("ALTER TABLE captured REPLICA IDENTITY FULL")
        connection.execute("INSERT INTO captured VALUES (1, 'a', 5)")
        columns = {"id": DataTypes.BIGINT(), "name": DataTypes.STRING()}
        source = source_of(
            columns,
            {
                "connector": "postgres-cdc",
                "hostname": "127.0.0.1",
                "port": str(postgres.port),
                "database-name": "postgres",
                "schema-name": "public",
                "table-name": "captured",
                "username": "postgres",
                "password": "",
                "slot.name": "firesteel_sql",
            },
        )
        assert isinstance(source, PostgresCdcTableSource)
        env = environment(1)
        stream = source.create_stream(ScanContext(env, "captured"))
        rows = stream._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
        found = []
        with rows.execute_and_collect() as results:
            for row in results:
                found.append((str(row.get_row_kind()), *row))
                if len(found) == 1:
                    connection.execute("UPDATE captured SET name = 'b'")
                    connection.execute("DELETE FROM captured")
                if len(found) == 4:
                    break
    assert found == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b"), ("-D", 1, "b")]
