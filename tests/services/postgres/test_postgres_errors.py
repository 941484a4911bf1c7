"""What goes wrong with a server, and what the user is told."""

from __future__ import annotations

import psycopg
import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.errors import JobExecutionError
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect
from firesteel.connectors.postgres.errors import PostgresConnectionError, PostgresError
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.testing import SinkHarness, collect, eventually, test_environment
from tests.services.postgres.postgres_tables import EXACTLY_ONCE


def failure_of(builder, *records):
    """What a sink raises when it is opened or written to."""
    harness = SinkHarness(builder.build())

    def run():
        harness.open()
        for record in records:
            harness.process_element(record)
        harness.snapshot(1)

    try:
        with pytest.raises(PostgresError) as caught:
            run()
    finally:
        harness.close()
    return caught.value


@pytest.fixture
def table(tables):
    tables.run("CREATE TABLE t (id integer PRIMARY KEY, name varchar(5))")
    return tables


def test_a_server_that_is_not_there(table):
    error = failure_of(table.sink().set_url("postgresql://127.0.0.1:1/x"))
    assert isinstance(error, PostgresConnectionError)
    assert error.server == "127.0.0.1:1/x"
    assert "Connection refused" in error.message
    assert "host and port" in error.hint


def test_a_host_that_has_no_address(table):
    error = failure_of(table.sink().set_url("postgresql://no.such.host.invalid/x"))
    assert "Check the host's name" in error.hint


def test_a_database_that_is_not_there(table):
    error = failure_of(table.sink().set_url(table.url.replace("/postgres?", "/nowhere?")))
    assert "nowhere" in error.message
    assert "Create the database" in error.hint


@pytest.fixture
def with_password(table):
    """A user whose password is asked for: the server trusts all others."""
    [path] = table.column("SHOW hba_file")
    [rules] = table.column("SELECT pg_read_file(%s)", path)
    rule = f"host all secretive_{table.schema} 127.0.0.1/32 scram-sha-256"
    write_rules(table, path, [rule, *rules.splitlines()])
    user = f"secretive_{table.schema}"
    table.run(f"CREATE USER {user} PASSWORD 'right'")
    table.run(f"GRANT USAGE ON SCHEMA {table.schema} TO {user}")
    table.run(f"GRANT INSERT ON t TO {user}")

    def is_asked_for_it():
        # the server reads the rules a moment after it is told to
        try:
            psycopg.connect(table.url_of(user), connect_timeout=60).close()
        except psycopg.OperationalError:
            return True
        return False

    eventually(is_asked_for_it)
    yield user
    write_rules(table, path, rules.splitlines())
    table.run(f"DROP OWNED BY {user}")
    table.run(f"DROP USER {user}")


def write_rules(table, path, lines):
    table.run("DROP TABLE IF EXISTS rules")
    table.run("CREATE TABLE rules (line text)")
    for line in lines:
        if line and not line.startswith("#"):
            table.run("INSERT INTO rules VALUES (%s)", " ".join(line.split()))
    table.run(f"COPY rules TO '{path}'")
    table.run("SELECT pg_reload_conf()")


def test_a_wrong_password(table, with_password):
    error = failure_of(
        table.sink().set_url(table.url_of(with_password)).set_password("wrong").set_max_retries(0), (1, "a")
    )
    assert isinstance(error, PostgresConnectionError)
    assert f'password authentication failed for user "{with_password}"' in error.message
    assert "user and password" in error.hint
    assert "wrong" not in str(error)
    right = SinkHarness(table.sink().set_url(table.url_of(with_password, "right")).build())
    right.open()
    right.process_element((1, "a"))
    right.snapshot(1)
    right.close()
    assert table.run("SELECT * FROM t") == [(1, "a")]


@pytest.fixture
def user(table):
    name = f"weak_{table.schema}"
    table.run(f"CREATE USER {name}")
    table.run(f"GRANT USAGE ON SCHEMA {table.schema} TO {name}")
    yield name
    table.run(f"DROP OWNED BY {name}")
    table.run(f"DROP USER {name}")


def test_no_permission(table, user):
    sink = table.sink().set_url(table.url_of(user))
    error = failure_of(sink)
    assert error.sqlstate == "42501"
    assert f"The user '{user}' has no INSERT permission on {table.schema}.t" in error.message
    assert f'GRANT INSERT ON {table.schema}.t TO "{user}"' in error.hint
    table.run(f"GRANT INSERT ON t TO {user}")
    assert "SELECT" in failure_of(sink.set_upsert_key("id")).message


def test_no_permission_for_a_staging_table(table, user):
    table.run(f"GRANT INSERT, SELECT ON t TO {user}")
    sink = table.sink().set_url(table.url_of(user)).set_delivery_guarantee(EXACTLY_ONCE)
    error = failure_of(sink)
    assert error.sqlstate == "42501"
    assert "CREATE on the schema" in error.hint
    # somebody who may creates it
    other = SinkHarness(table.sink().set_delivery_guarantee(EXACTLY_ONCE).build())
    other.open()
    other.close()
    assert "INSERT permission on" in failure_of(sink).message
    table.run(f"GRANT INSERT, SELECT, DELETE ON t_firesteel_staging TO {user}")
    harness = SinkHarness(sink.build())
    harness.open()
    harness.process_element((1, "a"))
    harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    harness.close()
    assert table.run("SELECT * FROM t") == [(1, "a")]


def test_no_table(table):
    error = failure_of(table.sink("elsewhere.orders"))
    assert (error.sqlstate, error.table) == ("42P01", "elsewhere.orders")
    assert "There is no table elsewhere.orders" in error.message


def test_no_column(table):
    error = failure_of(table.sink().set_columns("id", "title"))
    assert error.sqlstate == "42703"
    assert "has no column 'title'" in error.message
    assert "Its columns are: id, name." in error.hint


def test_a_column_that_is_generated(table):
    table.run("ALTER TABLE t ADD twice int GENERATED ALWAYS AS (id * 2) STORED")
    assert "always generated" in failure_of(table.sink().set_columns("id", "twice")).message
    harness = SinkHarness(table.sink().set_delivery_guarantee(EXACTLY_ONCE).build())
    harness.open()
    harness.process_element((2, "a"))
    harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    harness.close()
    assert table.run("SELECT * FROM t") == [(2, "a", 4)]


def test_no_key(table):
    table.run("CREATE TABLE keyless (id int, name text)")
    error = failure_of(table.sink("keyless").set_upsert_key())
    assert "has no primary key, so records of the same key cannot replace each other" in error.message
    assert "unique index" in error.hint
    table.run("CREATE UNIQUE INDEX ON keyless (id) WHERE id > 5")
    error = failure_of(table.sink("keyless").set_upsert_key("id"))
    assert "(id) is neither primary key nor unique index" in error.message
    assert "has no column 'nr'" in failure_of(table.sink("keyless").set_upsert_key("nr")).message
    assert "not wholly among the columns" in failure_of(table.sink().set_columns("name").set_upsert_key()).message


@pytest.mark.parametrize("guarantee", [None, EXACTLY_ONCE])
def test_a_value_of_another_type(table, guarantee):
    sink = table.sink().set_batch_size(2)
    if guarantee:
        sink.set_delivery_guarantee(guarantee)
    error = failure_of(sink, (1, "a"), ("two", "b"))
    assert error.sqlstate == "22P02"
    assert 'invalid input syntax for type integer: "two"' in error.message
    assert "line 2, column id" in error.message
    assert "values of its type" in error.hint
    assert "value too long" in failure_of(sink, (1, "abcdefg")).message
    assert "out of range" in failure_of(sink, (2**40, "a")).message
    assert "not-null" in failure_of(sink, (None, "a")).message


def test_a_unique_violation(table):
    error = failure_of(table.sink(), (1, "a"), (1, "b"))
    assert error.sqlstate == "23505"
    assert "Key (id)=(1) already exists" in error.message
    assert "upsert" in error.hint


def test_an_upsert_whose_key_was_given_up_under_way(table):
    harness = SinkHarness(table.sink().set_upsert_key("id").build())
    harness.open()
    table.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    harness.process_element((1, "a"))
    with pytest.raises(PostgresError, match="no unique or exclusion constraint") as caught:
        harness.snapshot(1)
    assert caught.value.sqlstate == "42P10"
    harness.close()


def test_a_table_dropped_under_way(table):
    harness = SinkHarness(table.sink().build())
    harness.open()
    table.run("DROP TABLE t")
    harness.process_element((1, "a"))
    with pytest.raises(PostgresError, match='relation "t" does not exist') as caught:
        harness.snapshot(1)
    assert caught.value.sqlstate == "42P01"
    harness.close()


@pytest.mark.parametrize(("value", "said"), [("\ud800", "surrogates not allowed"), ({1}, "cannot adapt type 'set'")])
@pytest.mark.parametrize("change", [lambda sink: sink, lambda sink: sink.set_delivery_guarantee(EXACTLY_ONCE)])
def test_a_value_that_has_no_text(table, change, value, said):
    env = test_environment()
    env.from_collection([(1, "a"), (2, value)]).sink_to(change(table.sink()).build())
    with pytest.raises(JobExecutionError, match=said) as caught:
        env.execute()
    assert "to the column 'name'" in str(caught.value)
    assert caught.value.failure.element == repr((2, value))


def test_the_job_tells_of_it(table):
    env = test_environment()
    env.from_collection([(1, "a"), ("two", "b")]).sink_to(table.sink().build()).name("orders")
    with pytest.raises(JobExecutionError, match='invalid input syntax for type integer: "two"') as caught:
        env.execute()
    assert caught.value.failure.operator == "Sink: orders"
    assert caught.value.failure.error_type == "PostgresError"


def read(builder):
    return collect(test_environment().from_source(builder.build(), WatermarkStrategy.no_watermarks(), "s"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda source: source.set_table("nothing"), "There is no table nothing"),
        (lambda source: source.set_table("t").set_columns("no"), "has no column 'no'"),
        (lambda source: source.set_table("t").set_partition_column("name"), "cannot be cut"),
        (lambda source: source.set_query("SELEC 1"), "syntax error"),
        (lambda source: source.set_query("SELECT 1/0 AS x"), "division by zero"),
        (lambda source: source.set_query("SELECT 1 AS x").set_partition_column("y"), 'column "y" does not exist'),
    ],
)
def test_a_source_that_cannot_be_read(table, change, said):
    table.run("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(JobExecutionError) as caught:
        read(change(PostgresSource.builder().set_url(table.url)))
    assert said in str(caught.value)


def test_parameters_that_libpq_does_not_know():
    with pytest.raises(PostgresError, match='invalid connection option "nonsense"'):
        connect(PostgresConnectionOptions("postgresql://127.0.0.1/x", properties={"nonsense": "1"}))
