"""An exactly-once append through failures: whatever is killed when, a reader of the table sees every record once."""

from __future__ import annotations

import pickle
import random

import pytest

from firesteel.connectors.postgres.errors import PostgresError
from firesteel.process import fault_points
from firesteel.testing import HarnessSnapshot, SinkHarness
from tests.services.postgres.postgres_tables import EXACTLY_ONCE


class Job:
    """A source of numbers and a sink; the source goes back to where it was at the checkpoint."""

    def __init__(self, tables, parallelism=1, job_id="feed", table="t", restored=None, **options):
        builder = tables.sink(table).set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(options.get("batch_size", 3))
        self.sink = builder.build()
        self.job_id = f"{tables.schema}/{job_id}"
        self.attempt = 0
        self.completed = restored
        self.checkpoint_id = 0 if restored is None else restored[1].checkpoint_id
        self.start(parallelism)

    def start(self, parallelism):
        self.position, snapshot = self.completed or (0, None)
        self.subtasks = []
        for subtask in range(parallelism):
            harness = SinkHarness(
                pickle.loads(pickle.dumps(self.sink)),
                subtask=subtask,
                parallelism=parallelism,
                attempt=self.attempt,
                job_id=self.job_id,
            )
            self.subtasks.append(harness)
            harness.initialize_state(snapshot)
            harness.open()

    def restart(self, parallelism=None):
        self.kill()
        self.attempt += 1
        self.start(len(self.subtasks) if parallelism is None else parallelism)

    def kill(self):
        for harness in self.subtasks:
            harness.close()

    def write(self, count):
        for value in range(self.position, self.position + count):
            self.subtasks[value % len(self.subtasks)].process_element((value,))
        self.position += count

    def snapshot(self):
        self.checkpoint_id += 1
        taken = HarnessSnapshot.combine(*[harness.snapshot(self.checkpoint_id) for harness in self.subtasks])
        return self.position, pickle.loads(pickle.dumps(taken))

    def complete(self, snapshot, notify=None):
        """The checkpoint exists from now on, whoever hears of it."""
        self.completed = snapshot
        for harness in self.subtasks if notify is None else self.subtasks[:notify]:
            harness.notify_checkpoint_complete(snapshot[1].checkpoint_id)

    def checkpoint(self):
        self.complete(self.snapshot())

    def finish(self):
        for harness in self.subtasks:
            harness.finish()
        self.checkpoint()
        self.kill()


@pytest.fixture
def table(tables):
    tables.run("CREATE TABLE t (id bigint)")
    return tables


@pytest.fixture
def armed():
    yield fault_points.arm
    fault_points.arm("")


def visible(table):
    return table.column("SELECT id FROM t ORDER BY id")


def staged(table):
    return table.column("SELECT id FROM t_firesteel_staging ORDER BY id")


def test_records_are_visible_with_their_checkpoint(table):
    job = Job(table)
    job.write(5)
    snapshot = job.snapshot()
    job.write(4)
    assert visible(table) == []
    assert staged(table) == list(range(8))
    job.complete(snapshot)
    assert visible(table) == list(range(5))
    job.finish()
    assert visible(table) == list(range(9))
    assert staged(table) == []


@pytest.mark.parametrize(
    "crash", ["before snapshot", "after snapshot", "after complete", "before commit", "after commit"]
)
def test_a_crash_at_every_step_of_the_protocol(table, crash, armed):
    job = Job(table)
    job.write(5)
    job.checkpoint()
    job.write(5)
    if crash == "after snapshot":
        job.snapshot()
    elif crash == "after complete":
        job.complete(job.snapshot(), notify=0)
    elif "commit" in crash:
        armed("sink.commit=raise" if crash == "before commit" else "sink.committed=raise")
        with pytest.raises(OSError, match="fault injected"):
            job.checkpoint()
        armed("")
    assert visible(table) == list(range(10 if crash == "after commit" else 5))
    job.restart()
    assert visible(table) == list(range(job.position))
    job.write(3)
    job.finish()
    assert visible(table) == list(range(job.position))
    assert staged(table) == []


def test_what_a_failed_attempt_leaves_is_deleted_with_the_next_checkpoint(table):
    job = Job(table, parallelism=2)
    job.write(20)
    job.checkpoint()
    job.write(20)
    left = staged(table)
    assert left
    job.restart(parallelism=3)
    snapshot = job.snapshot()
    assert staged(table) == left
    job.complete(snapshot)
    assert staged(table) == []
    job.write(1)
    job.finish()
    assert visible(table) == list(range(21))


def test_jobs_that_write_to_one_table_leave_each_other_alone(table):
    one, other = Job(table, job_id="one"), Job(table, job_id="other")
    for job in (one, other):
        job.write(3)
        job.checkpoint()
        job.write(4)
    one.restart()
    other.write(2)
    one.write(2)
    one.checkpoint()
    other.finish()
    one.finish()
    assert visible(table) == sorted([*range(5), *range(9)])
    assert staged(table) == []


def test_two_who_commit_the_same_rows_commit_them_once(table):
    zombie = Job(table)
    zombie.write(5)
    snapshot = zombie.snapshot()
    zombie.complete(snapshot, notify=0)
    # another job goes on from the checkpoint, and commits what the first one is about to commit
    successor = Job(table, job_id="second", restored=zombie.completed)
    assert visible(table) == list(range(5))
    with pytest.raises(PostgresError, match="5 rows were staged for t, but 0 are in t_firesteel_staging"):
        zombie.subtasks[0].notify_checkpoint_complete(1)
    zombie.kill()
    successor.write(2)
    successor.finish()
    assert visible(table) == list(range(7))


def test_rows_that_somebody_deleted_are_missed(table):
    job = Job(table)
    job.write(5)
    snapshot = job.snapshot()
    table.run("DELETE FROM t_firesteel_staging WHERE id = 2")
    with pytest.raises(PostgresError, match="5 rows were staged for t, but 4 are") as caught:
        job.complete(snapshot)
    assert caught.value.table == "t_firesteel_staging"
    assert visible(table) == []
    job.kill()


def test_a_session_of_an_earlier_attempt_is_ended(table):
    zombie = Job(table)
    zombie.write(2)
    [pid] = table.sessions()
    successor = Job(table)
    successor.kill()
    successor.attempt = 1
    successor.start(1)
    assert pid not in table.sessions()
    successor.write(2)
    successor.finish()
    assert visible(table) == [0, 1]
    zombie.kill()


class Losing:
    """Writes rows, then loses the connection before anybody has heard that they are there."""

    def __init__(self, inner, table):
        self.inner, self.table, self.times = inner, table, 1

    def write(self, connection, target, rows):
        self.inner.write(connection, target, rows)
        lose_once(self, connection)


def lose_once(losing, connection):
    if losing.times:
        losing.times -= 1
        losing.table.run("SELECT pg_terminate_backend(%s, 60000)", connection.info.backend_pid)
        connection.execute("SELECT 1")


def writer_of(job, subtask=0):
    return job.subtasks[subtask]._chained.operator._writer


def test_a_batch_whose_fate_is_unknown_is_written_again_and_counts_once(table):
    job = Job(table)
    writer = writer_of(job)
    writer.format = Losing(writer.format, table)
    job.write(7)
    assert staged(table) == [0, 0, 1, 1, 2, 2, 3, 4, 5]
    job.checkpoint()
    assert visible(table) == list(range(7))
    assert staged(table) == []
    job.finish()


def test_a_commit_whose_fate_is_unknown_is_not_done_again(table):
    job = Job(table)
    session = job.subtasks[0]._chained.operator._committer._session
    inner, losing = session.run, Losing(None, table)

    def run(work, doing, **options):
        def and_lose(connection):
            work(connection)
            lose_once(losing, connection)

        return inner(and_lose, doing, **options)

    session.run = run
    job.write(7)
    job.checkpoint()
    assert losing.times == 0
    assert visible(table) == list(range(7))
    job.write(2)
    job.finish()
    assert visible(table) == list(range(9))


def test_connections_that_are_dropped_again_and_again(table):
    job = Job(table, parallelism=2)
    for _ in range(2):
        job.write(5)
        assert table.end_sessions() >= 1
        job.write(5)
        snapshot = job.snapshot()
        table.end_sessions()
        job.complete(snapshot)
        assert visible(table) == list(range(job.position))
    job.finish()
    assert staged(table) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_failures(table, seed):
    """At every moment the table has what completed checkpoints cover, whatever happens in between."""
    chance = random.Random(seed)
    job = Job(table, parallelism=chance.randint(1, 3))
    for _ in range(25):
        step = chance.choice(["write", "write", "checkpoint", "unheard", "snapshot", "restart", "drop"])
        if step == "write":
            job.write(chance.randint(1, 8))
        elif step == "checkpoint":
            job.checkpoint()
        elif step == "unheard":
            job.complete(job.snapshot(), notify=chance.randint(0, len(job.subtasks)))
            job.restart(chance.randint(1, 3))
        elif step == "snapshot":
            job.snapshot()
        elif step == "restart":
            job.restart(chance.randint(1, 3))
        else:
            table.end_sessions()
        completed = job.completed[0] if job.completed else 0
        assert visible(table) == list(range(completed))
    job.finish()
    assert visible(table) == list(range(job.position))
    assert staged(table) == []


def test_the_staging_table_follows_the_target(table):
    first = Job(table)
    first.write(2)
    first.finish()
    table.run("ALTER TABLE t ALTER id TYPE numeric, ADD note text DEFAULT 'none' NOT NULL")
    sink = table.sink().set_columns("id").set_delivery_guarantee(EXACTLY_ONCE).build()
    harness = SinkHarness(sink, job_id="other")
    harness.open()
    harness.process_element((2,))
    harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    assert table.run("SELECT id, note FROM t ORDER BY id") == [(0, "none"), (1, "none"), (2, "none")]
    harness.process_element((3,))
    harness.snapshot(2)
    table.run("ALTER TABLE t ALTER id TYPE text")
    with pytest.raises(PostgresError, match="the column id is numeric in it, but text in the table"):
        Job(table)
    harness.close()


def test_constraints_are_checked_when_a_record_is_written(table):
    table.run("ALTER TABLE t ADD CHECK (id < 5)")
    job = Job(table)
    job.write(4)
    with pytest.raises(PostgresError, match='violates check constraint "t_id_check"'):
        job.write(3)
    job.kill()


def test_what_others_write_after_the_checkpoint_is_seen_when_the_rows_are_committed(table):
    table.run("CREATE UNIQUE INDEX ON t (id)")
    job = Job(table)
    job.write(3)
    snapshot = job.snapshot()
    table.run("INSERT INTO t VALUES (1)")
    with pytest.raises(PostgresError, match=r"Key \(id\)=\(1\) already exists") as caught:
        job.complete(snapshot)
    assert caught.value.sqlstate == "23505"
    assert caught.value.table == "t"
    assert "upsert" in caught.value.hint
    # what stands in the way is removed: the checkpoint can be restored, nothing is lost
    table.run("DELETE FROM t")
    job.restart()
    assert visible(table) == [0, 1, 2]
    job.kill()


def test_a_long_name_and_a_staging_table_of_ones_own(tables):
    name = "n" * 63
    tables.run(f'CREATE TABLE "{name}" (id bigint)')
    job = Job(tables, table=name)
    job.write(2)
    job.finish()
    assert tables.column(f'SELECT id FROM "{name}" ORDER BY id') == [0, 1]
    sink = tables.sink(name).set_delivery_guarantee(EXACTLY_ONCE).set_staging_table(f"{tables.schema}.waiting").build()
    harness = SinkHarness(sink)
    harness.open()
    harness.process_element((5,))
    harness.snapshot(1)
    assert tables.column("SELECT id FROM waiting") == [5]
    harness.notify_checkpoint_complete(1)
    harness.close()
    assert tables.column(f'SELECT id FROM "{name}" ORDER BY id') == [0, 1, 5]
