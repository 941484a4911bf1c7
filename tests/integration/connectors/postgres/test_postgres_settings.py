"""What is known of PostgreSQL connectors without a server: URLs, builders, statements, ids of batches."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from firesteel.common import Row, RowKind, Types
from firesteel.common.errors import FiresteelError, InvalidProgramError, RecordSerializationError
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, split_name
from firesteel.connectors.postgres.sink.row_conversion import values_of
from firesteel.connectors.postgres.sink.staging import BatchIds, sink_range, staging_name
from firesteel.connectors.postgres.source.enumerator import boundaries
from firesteel.connectors.postgres.statements import to_placeholders
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.datastream.connectors.postgres import PostgresSink, PostgresSource
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.spi.source import Boundedness

URL = "postgresql://me:secret@db.example:5433/shop"
AT_LEAST_ONCE, EXACTLY_ONCE = DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE


def parameters(options):
    from psycopg.conninfo import conninfo_to_dict

    return conninfo_to_dict(options.conninfo())


@pytest.mark.parametrize(
    ("url", "host", "port", "database"),
    [
        (URL, "db.example", "5433", "shop"),
        ("host=db.example port=5433 dbname=shop user=me password=secret", "db.example", "5433", "shop"),
        ("jdbc:postgresql://db.example:5433/shop?user=me&password=secret", "db.example", "5433", "shop"),
        ("jdbc:postgresql://a,b:5433/shop?user=me&password=secret", "a,b", ",5433", "shop"),
        ("jdbc:postgresql:shop?user=me&password=secret", "localhost", None, "shop"),
    ],
)
def test_urls(url, host, port, database):
    options = PostgresConnectionOptions(url)
    found = parameters(options)
    assert (found["host"], found.get("port"), found["dbname"]) == (host, port, database)
    assert (found["user"], found["password"]) == ("me", "secret")
    assert "secret" not in repr(options)
    assert "secret" not in options.describe()


def test_parameters_of_the_jdbc_driver():
    options = PostgresConnectionOptions(
        "jdbc:postgresql://h/db?currentSchema=a,b&ssl=true&ApplicationName=x&reWriteBatchedInserts=true&loginTimeout=3",
        user="me",
        password="p w",
        properties={"sslrootcert": "ca.pem"},
    )
    found = parameters(options)
    assert found["options"] == "-csearch_path=a,b"
    assert (found["sslmode"], found["sslrootcert"], found["application_name"]) == ("verify-full", "ca.pem", "x")
    assert (found["connect_timeout"], found["user"], found["password"]) == ("3", "me", "p w")
    with pytest.raises(InvalidProgramError, match="JDBC parameter 'socketFactory' is not understood"):
        PostgresConnectionOptions("jdbc:postgresql://h/db?socketFactory=x")


@pytest.mark.parametrize("url", ["jdbc:mysql://h/db", "mysql://h/db", "jdbc:oracle:thin:@h:1521:x", "", None])
def test_other_databases(url):
    with pytest.raises(InvalidProgramError) as caught:
        PostgresConnectionOptions(url)
    assert "postgresql://host:5432/database" in caught.value.hint


def test_names_of_tables():
    assert split_name('Shop."Or""ders.x"') == ("shop", 'Or"ders.x')
    for name in ("", "a.b.c", '"open', '"a"b', "a.", "."):
        with pytest.raises(InvalidProgramError, match="is not the name of a table"):
            split_name(name)


def test_without_psycopg(monkeypatch):
    sink = PostgresSink.builder().set_url(URL).set_table("t").build()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(FiresteelError, match="needs psycopg") as caught:
        connect(sink.settings.connection)
    assert "firesteel[postgres]" in caught.value.hint


def test_nothing_is_imported_before_it_is_needed():
    code = (
        "import sys; import firesteel.datastream.connectors.jdbc, firesteel.datastream.connectors.postgres as p; "
        f"p.PostgresSink.builder().set_url({URL!r}).set_table('t').set_upsert_key('id').build(); "
        "sys.exit('psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=180, check=False).returncode == 0


def sink_builder():
    return PostgresSink.builder().set_url(URL).set_table("shop.orders")


def test_sinks_can_be_sent():
    sink = pickle.loads(pickle.dumps(sink_builder().set_upsert_key("id").set_batch_size(7).build()))
    assert (sink.settings.table, sink.settings.key, sink.settings.batch_size) == (("shop", "orders"), ("id",), 7)
    assert repr(sink) == "PostgresSink(shop.orders at db.example:5433/shop)"


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: PostgresSink.builder().set_table("t").build(), "the URL is missing"),
        (lambda: PostgresSink.builder().set_url(URL).build(), "no table to write to"),
        (lambda: sink_builder().set_columns(), "takes names of columns"),
        (lambda: sink_builder().set_columns("a", "a"), "names a column twice"),
        (lambda: sink_builder().set_columns("a").set_upsert_key("b").build(), "'b' is not among those written"),
        (lambda: sink_builder().set_staging_table("x").build(), "only an append with EXACTLY_ONCE"),
        (
            lambda: sink_builder().set_upsert_key().set_staging_table("x").build(),
            "only an append with EXACTLY_ONCE",
        ),
        (lambda: sink_builder().set_delivery_guarantee("exactly-once"), "a DeliveryGuarantee is needed"),
        (lambda: sink_builder().set_batch_size(0), "at least 1, not 0"),
        (lambda: sink_builder().set_batch_interval_ms(-1), "at least 0"),
        (lambda: sink_builder().set_max_retries(True), "at least 0"),
        (lambda: sink_builder().set_record_mapper(5), "must be a function"),
    ],
)
def test_sinks_that_cannot_be(build, said):
    with pytest.raises(InvalidProgramError, match=said):
        build()


def test_a_statement_is_not_executed_exactly_once():
    builder = PostgresSink.builder().set_url(URL)._set_statement("INSERT INTO t VALUES (?)")
    with pytest.raises(InvalidProgramError, match="at least once, not exactly once"):
        builder.set_delivery_guarantee(EXACTLY_ONCE).build()


def source_builder():
    return PostgresSource.builder().set_url(URL)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: source_builder().build(), "a table or a query is needed"),
        (lambda: source_builder().set_table("t").set_query("SELECT 1").build(), "a table or a query is needed"),
        (lambda: source_builder().set_query(" "), "the query is empty"),
        (lambda: source_builder().set_partition_column("a", lower_bound=1), "both bounds or none"),
        (lambda: source_builder().set_partition_column("a", lower_bound=2, upper_bound=1), "is above the upper bound"),
        (lambda: source_builder().set_partition_column("a", lower_bound=2, upper_bound="x"), "cannot be cut"),
        (lambda: source_builder().set_partition_column("a", partitions=0), "must be a positive integer"),
        (lambda: source_builder().set_fetch_size(0), "must be a positive integer"),
        (
            lambda: source_builder().set_query("SELECT ?", [(1,)]).set_partition_column("a").build(),
            "splits come from parameters or from a partition column",
        ),
        (
            lambda: source_builder().set_table("t").set_polling("id", 5).set_partition_column("a").build(),
            "there is one split only",
        ),
    ],
)
def test_sources_that_cannot_be(build, said):
    with pytest.raises(InvalidProgramError, match=said):
        build()


def test_boundedness():
    assert source_builder().set_table("t").build().get_boundedness() is Boundedness.BOUNDED
    polling = source_builder().set_table("t").set_polling("id", 1000).build()
    assert polling.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED


@pytest.mark.parametrize(
    ("lower", "upper", "count", "expected"),
    [
        (0, 9, 3, [0, 4, 7, 9]),
        (5, 5, 3, [5, 5]),
        (1, 2, 5, [1, 2, 2]),
        (0.0, 1.0, 2, [0.0, 0.5, 1.0]),
        (Decimal(0), Decimal(3), 2, [Decimal(0), Decimal("1.5"), Decimal(3)]),
        (date(2024, 1, 1), date(2024, 1, 4), 2, [date(2024, 1, 1), date(2024, 1, 3), date(2024, 1, 4)]),
        (
            datetime(2024, 1, 1, tzinfo=timezone.utc),
            datetime(2024, 1, 3, tzinfo=timezone.utc),
            2,
            [datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)],
        ),
    ],
)
def test_boundaries_of_splits(lower, upper, count, expected):
    assert boundaries(lower, upper, count) == expected


def test_placeholders():
    statement = """UPDATE "a?" SET b = ?, c = '?''?%' -- ?\nWHERE d LIKE '%' AND e % 2 = ?"""
    assert to_placeholders(statement) == (
        """UPDATE "a?" SET b = %s, c = '?''?%%' -- ?\nWHERE d LIKE '%%' AND e %% 2 = %s""",
        2,
    )
    with pytest.raises(InvalidProgramError, match="no placeholder"):
        to_placeholders("INSERT INTO t VALUES ('?')")


def test_values_of_records():
    columns = ("a", "b")
    changed = Row.of_kind(RowKind.UPDATE_AFTER, b=2, a=1)
    for record in ((1, 2), [1, 2], {"b": 2, "a": 1, "c": 3}, Row(1, 2), Row(a=1, b=2), Row(b=2, a=1), changed):
        assert list(values_of(record, columns)) == [1, 2]
    assert list(values_of(5, ("a",))) == [5]
    with pytest.raises(RecordSerializationError, match="no field 'b'"):
        values_of({"a": 1}, columns)
    with pytest.raises(RecordSerializationError, match="no field 'b'"):
        values_of(Row(a=1, c=2), columns)
    with pytest.raises(RecordSerializationError, match="has 3 values, but there are 2 columns"):
        values_of((1, 2, 3), columns)
    with pytest.raises(RecordSerializationError, match="A str is not a row of 2 columns") as caught:
        values_of("ab", columns)
    assert caught.value.record == "'ab'"


def test_ids_of_batches_are_ranges_by_sink_and_attempt():
    one, again, other = BatchIds("s1", "a1"), BatchIds("s1", "a2"), BatchIds("s2", "a1")
    drawn = [one.draw() for _ in range(100)]
    assert len(set(drawn)) == 100
    assert sink_range(drawn[0]) == one.all_of_sink() == again.all_of_sink() != other.all_of_sink()
    for batch in drawn:
        assert one.all_of_attempt()[0] <= batch <= one.all_of_attempt()[1]
        assert again.all_of_sink()[0] <= batch <= again.all_of_sink()[1]
        assert not again.all_of_attempt()[0] <= batch <= again.all_of_attempt()[1]
        assert not other.all_of_sink()[0] <= batch <= other.all_of_sink()[1]


def test_names_of_staging_tables():
    assert staging_name(("shop", "orders")) == ("shop", "orders_firesteel_staging")
    long = [staging_name(("x" * 62 + end,))[0] for end in "ab"]
    assert long[0] != long[1]
    assert all(len(name) <= 63 for name in long)


def jdbc(statement="INSERT INTO t VALUES (?, ?)", url="jdbc:postgresql://h/db", **options):
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    if "driver" in options:
        builder.with_driver_name(options["driver"])
    return JdbcSink.sink(statement, Types.ROW([Types.INT(), Types.STRING()]), builder.build())


def test_the_names_of_pyflink():
    sink = jdbc(driver="org.postgresql.Driver")
    assert sink.get_delivery_guarantee() is AT_LEAST_ONCE
    assert (sink.settings.batch_size, sink.settings.batch_interval_ms, sink.settings.max_retries) == (5000, 0, 3)
    execution = JdbcExecutionOptions.builder().with_batch_size(9).with_batch_interval_ms(8).with_max_retries(7).build()
    assert (execution.get_batch_size(), execution.get_batch_interval_ms(), execution.get_max_retries()) == (9, 8, 7)
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    options = options.with_url("jdbc:postgresql://h/db").with_user_name("me").with_password("p").build()
    assert (options.get_db_url(), options.get_user_name(), options.get_password(), options.get_driver_name()) == (
        *("jdbc:postgresql://h/db", "me", "p"),
        None,
    )


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: jdbc(url="jdbc:mysql://h/db"), "'jdbc:mysql' is not a PostgreSQL URL"),
        (lambda: jdbc(driver="com.mysql.cj.jdbc.Driver"), "no other database than PostgreSQL"),
        (lambda: jdbc("INSERT INTO t VALUES (?)"), "has 1 placeholders, but the type 2 fields"),
        (lambda: JdbcExecutionOptions.builder().with_batch_size(0).build(), "batch size must be at least 1"),
    ],
)
def test_jdbc_that_is_refused(build, said):
    with pytest.raises(InvalidProgramError, match=said):
        build()
