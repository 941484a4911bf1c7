"""Whole jobs with PostgreSQL at one end or both, through failures, in every execution."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from firesteel.spi.source import InputStatus
from firesteel.testing import ABORT, PAUSE, TestingSource, collect, eventually, test_environment
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.services.postgres_server import PostgresServer
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.services.postgres.postgres_tables import EXACTLY_ONCE, Tables
from tests.support.jobs.checkpointed_jobs import SlowReader, SlowSource, checkpointed

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
DEADLINE_S = 120


def environment(directory, parallelism=2, **settings):
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "0 ms",
        **{key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()},
    }.items():
        configuration.set_string(key, value)
    return test_environment(parallelism, configuration)


@pytest.fixture
def table(tables):
    tables.run("CREATE TABLE t (id bigint, name text)")
    return tables


def failing_source(count=400, failures=3):
    """Numbers, with pauses in which there are checkpoints, and failures soon after them."""
    items = []
    for number in range(count):
        items.append(Row(id=number, name=f"n{number}"))
        if number % (count // failures) == count // failures // 2:
            items += [PAUSE(30)]
        if number % (count // failures) == count // failures // 2 + 20:
            items += [ABORT()]
    return TestingSource(items)


def test_an_exactly_once_append_of_a_job_that_fails(table, tmp_path):
    env = environment(tmp_path)
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(7).build()
    env.from_source(failing_source(), NO_WATERMARKS, "s").rebalance().sink_to(sink)
    env.execute()
    assert table.column("SELECT id FROM t ORDER BY id") == list(range(400))
    assert table.column("SELECT count(*) FROM t_firesteel_staging") == [0]


def test_upserts_of_a_job_that_fails(table, tmp_path):
    table.run("ALTER TABLE t ADD PRIMARY KEY (name)")
    env = environment(tmp_path)
    sink = table.sink().set_upsert_key("name").set_batch_size(7).build()
    stream = env.from_source(failing_source(), NO_WATERMARKS, "s")
    stream.map(lambda row: Row(id=row.id, name=f"k{row.id % 10}")).key_by(lambda row: row.name).sink_to(sink)
    env.execute()
    # the last of each key
    assert table.run("SELECT name, id FROM t ORDER BY id") == [(f"k{n % 10}", n) for n in range(390, 400)]


def test_a_batch_commits_at_its_end_and_leaves_nothing_of_tasks_that_ran_twice(table, tmp_path):
    env = environment(tmp_path, execution__runtime_mode="BATCH")
    faults = [
        TaskFault(FaultKind.RETRY, "Sink", 0, after_rows=1),
        TaskFault(FaultKind.KILL, "Sink", 1, after_rows=None),
    ]
    stages = InProcessStageRunner(faults)
    env._executor = InProcessExecutor(create_stages=lambda: stages)
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(7).build()
    env.from_collection([(n, f"n{n}") for n in range(100)]).rebalance().sink_to(sink)
    env.execute()
    assert stages.faults == []
    assert table.column("SELECT id FROM t ORDER BY id") == list(range(100))
    assert table.column("SELECT count(*) FROM t_firesteel_staging") == [0]


class Forgetful(InProcessStageRunner):
    """After every epoch one of its workers is gone."""

    def run_epoch(self, job_graph, epoch):
        messages = super().run_epoch(job_graph, epoch)
        self.forget(epoch.epoch % 2)
        return messages


@pytest.mark.parametrize("stages", [InProcessStageRunner, Forgetful])
def test_epochs_commit_where_the_job_master_is(table, tmp_path, stages):
    env = environment(tmp_path, execution__exchange="spark", execution__epoch__max_records="30")
    env._executor = InProcessExecutor(create_stages=stages)
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(7).build()
    numbers = [(n, f"n{n}") for n in range(150)]
    env.from_source(TestingSource(numbers), NO_WATERMARKS, "s").rebalance().sink_to(sink)
    env.execute()
    assert table.column("SELECT id FROM t ORDER BY id") == list(range(150))
    assert table.column("SELECT count(*) FROM t_firesteel_staging") == [0]


class HeldBack(SlowSource):
    """Each reader gives but a few records of another source: the rest is for the job that goes on."""

    def create_reader(self, context):
        return HeldBackReader(self.source.create_reader(context))


class HeldBackReader(SlowReader):
    left = 20

    def poll_next(self, output, max_records):
        if self.left <= 0:
            self._next = time.monotonic() + 0.01
            return InputStatus.NOTHING_AVAILABLE
        return self._reader.poll_next(Counted(self, output), 1)


class Counted:
    def __init__(self, reader, output):
        self.reader, self.output = reader, output

    def collect(self, split_id, records, *timestamps):
        self.reader.left -= len(records)
        self.output.collect(split_id, records, *timestamps)

    def release_split(self, split_id):
        self.output.release_split(split_id)


def test_a_savepoint_at_another_parallelism(table, tmp_path):
    """Source and sink go on where they were."""
    table.run("INSERT INTO t SELECT n, 'n' || n FROM generate_series(1, 300) n")
    table.run("ALTER TABLE t ADD PRIMARY KEY (id)")
    table.run("CREATE TABLE copy (id bigint, name text)")

    def build(env, wrap=lambda source: source):
        source = PostgresSource.builder().set_url(table.url).set_table("t").set_fetch_size(10)
        source.set_partition_column("id", partitions=3)
        sink = table.sink("copy").set_delivery_guarantee(EXACTLY_ONCE).build()
        stream = env.from_source(wrap(source.build()), NO_WATERMARKS, "s")
        stream.sink_to(sink)
        return env.execute_async()

    first = build(environment(tmp_path, 2), HeldBack)
    eventually(lambda: len(table.column("SELECT id FROM copy")) >= 5, DEADLINE_S)
    path = first.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(DEADLINE_S)
    first.get_job_execution_result().result(DEADLINE_S)
    before = table.column("SELECT id FROM copy")
    assert 5 <= len(before) == len(set(before)) < 300
    build(environment(tmp_path, 3, execution__state_recovery__path=path)).get_job_execution_result().result(DEADLINE_S)
    assert sorted(table.column("SELECT id FROM copy")) == list(range(1, 301))


@pytest.fixture
def own_server(postgres):
    """One that others do not need meanwhile; there is one, or the session's would not be there."""
    with PostgresServer() as server:
        yield server


def test_a_server_that_restarts_under_a_job(own_server, tmp_path):
    table = Tables(own_server)
    table.run("CREATE TABLE t (id bigint, name text)")
    # however long the server is away
    attempts = {"attempts": "1000000", "delay": "50 ms"}
    env = environment(tmp_path, 1, **{f"restart_strategy__fixed_delay__{key}": each for key, each in attempts.items()})
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(5).build()
    items = [item for n in range(60) for item in ((n, f"n{n}"), PAUSE(20))]
    env.from_source(TestingSource(items), NO_WATERMARKS, "s").sink_to(sink)
    client = env.execute_async()
    eventually(lambda: len(table.column("SELECT id FROM t")) >= 5, DEADLINE_S)
    table.forget()
    own_server.restart()
    client.get_job_execution_result().result(DEADLINE_S)
    assert table.column("SELECT id FROM t ORDER BY id") == list(range(60))
    table.close()


def test_a_job_without_checkpoints_is_refused(table):
    env = test_environment()
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).build()
    env.from_source(TestingSource([1], bounded=False), NO_WATERMARKS, "s").sink_to(sink)
    with pytest.raises(InvalidProgramError, match="commits records with checkpoints"):
        env.execute()


def test_a_stream_that_ends_commits_at_its_end(table):
    env = test_environment(2)
    sink = table.sink().set_delivery_guarantee(EXACTLY_ONCE).build()
    env.from_collection([(n, "x") for n in range(10)]).sink_to(sink)
    env.execute()
    assert table.column("SELECT id FROM t ORDER BY id") == list(range(10))


class FailsOnce:
    """Fails at a number, the first time."""

    def __init__(self, path, number):
        self.path, self.number = path, number

    def __call__(self, row):
        if row.id == self.number and not Path(self.path).exists():
            Path(self.path).touch()
            raise ValueError("the first time")
        return row.id


@pytest.mark.parametrize("query", [False, True])
def test_a_source_goes_on_where_it_was_at_the_checkpoint(table, tmp_path, query):
    table.run("INSERT INTO t SELECT n, 'n' || n FROM generate_series(1, 500) n")
    table.run("ALTER TABLE t ADD PRIMARY KEY (id)")
    table.run("CREATE TABLE seen (id bigint)")
    source = PostgresSource.builder().set_url(table.url).set_fetch_size(20)
    # without a key by the number of rows: the order is the query's own
    source = source.set_query("SELECT * FROM t ORDER BY name") if query else source.set_table("t")
    env = checkpointed(
        environment(tmp_path, 1),
        tmp_path,
        restart_strategy__type="fixed-delay",
        execution__checkpointing__interval="10 ms",
    )
    sink = table.sink("seen").set_record_mapper(lambda number: (number,)).set_delivery_guarantee(EXACTLY_ONCE).build()
    numbers = env.from_source(source.build(), NO_WATERMARKS, "s").map(FailsOnce(str(tmp_path / "failed"), 300))
    numbers.sink_to(sink)
    env.execute()
    assert (tmp_path / "failed").exists()
    assert sorted(table.column("SELECT id FROM seen")) == list(range(1, 501))


def test_a_source_whose_connection_is_dropped(table):
    table.run("INSERT INTO t SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n")
    table.run("ALTER TABLE t ADD PRIMARY KEY (id)")
    source = PostgresSource.builder().set_url(table.url).set_table("t").set_fetch_size(50).build()
    url, dropped = table.url, []

    def drop(row):
        import psycopg

        if row.id == 1000:
            with psycopg.connect(url, autocommit=True) as connection:
                statement = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = %s"
                dropped.extend(connection.execute(statement, ("firesteel source",)).fetchall())
            assert dropped
        return row.id

    assert collect(test_environment().from_source(source, NO_WATERMARKS, "s").map(drop)) == list(range(1, 5001))


def test_a_source_that_looks_for_new_rows(table):
    table.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = PostgresSource.builder().set_url(table.url).set_table("t").set_polling("id", 5).build()
    env = test_environment()
    table.run("CREATE TABLE seen (id bigint, name text)")
    env.from_source(source, NO_WATERMARKS, "s").sink_to(table.sink("seen").set_batch_interval_ms(5).build())
    client = env.execute_async()
    for number in range(3, 6):
        eventually(lambda number=number: len(table.run("SELECT * FROM seen")) == number - 1, DEADLINE_S)
        table.run("INSERT INTO t VALUES (%s, 'new')", number)
    eventually(lambda: table.column("SELECT id FROM seen ORDER BY id") == [1, 2, 3, 4, 5], DEADLINE_S)
    client.cancel().result(DEADLINE_S)


def test_the_jdbc_sink_of_pyflink(table, tmp_path):
    table.run("ALTER TABLE t ADD PRIMARY KEY (id)")
    env = environment(tmp_path, 1)
    type_info = Types.ROW([Types.LONG(), Types.STRING()])
    url = f"jdbc:postgresql://127.0.0.1:{table.server.port}/postgres?currentSchema={table.schema}"
    stream = env.from_collection([Row(n % 5, f"100% {n}") for n in range(50)], type_info=type_info)
    stream.add_sink(
        JdbcSink.sink(
            "INSERT INTO t (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name || '?%'",
            type_info,
            JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
            .with_url(url)
            .with_driver_name("org.postgresql.Driver")
            .with_user_name("postgres")
            .with_password("")
            .build(),
            JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(1000).with_max_retries(2).build(),
        )
    )
    env.execute()
    assert table.run("SELECT id, name FROM t ORDER BY id") == [(n, f"100% {n + 45}?%") for n in range(5)]
