"""Records that a table would refuse when they are committed fail the task before the checkpoint has them."""

from __future__ import annotations

import pytest

from firesteel.connectors.postgres.errors import PostgresError
from firesteel.testing import HarnessSnapshot, SinkHarness
from tests.services.postgres.postgres_tables import EXACTLY_ONCE


class Attempt:
    """Some writers of one sink."""

    def __init__(self, tables, parallelism=1, url=None, **options):
        builder = tables.sink().set_delivery_guarantee(EXACTLY_ONCE).set_batch_size(2)
        if url is not None:
            builder.set_url(url)
        self.harnesses = []
        for subtask in range(parallelism):
            harness = SinkHarness(builder.build(), subtask=subtask, parallelism=parallelism, job_id="job", **options)
            self.harnesses.append(harness)
            harness.open()
        self.checkpoints = 0

    def write(self, subtask, *records):
        for record in records:
            self.harnesses[subtask].process_element(record)

    def checkpoint(self):
        self.checkpoints += 1
        HarnessSnapshot.combine(*[harness.snapshot(self.checkpoints) for harness in self.harnesses])
        for harness in self.harnesses:
            harness.notify_checkpoint_complete(self.checkpoints)

    def close(self):
        for harness in self.harnesses:
            harness.close()


@pytest.fixture
def attempt(tables):
    attempts = []

    def start(*arguments, **options):
        attempts.append(Attempt(tables, *arguments, **options))
        return attempts[-1]

    yield start
    for each in attempts:
        each.close()


def refusal(attempt):
    with pytest.raises(PostgresError) as caught:
        attempt.checkpoint()
    return caught.value


def test_a_key_that_the_table_has(tables, attempt):
    tables.run("CREATE TABLE t (id int PRIMARY KEY, a text, b numeric, UNIQUE (a, b))")
    job = attempt()
    job.write(0, (1, "x", 1), (2, "x", 2))
    job.checkpoint()
    job.write(0, (3, None, 1), (4, "y", None), (5, "y", None))  # a NULL is equal to none
    job.checkpoint()
    job.write(0, (6, "x", 2))
    error = refusal(job)
    assert "there is a row with (a, b) = (x, 2), which is unique" in error.message
    assert (error.sqlstate, error.table) == ("23505", f"{tables.schema}.t")
    assert "upsert" in error.hint
    assert sorted(tables.column("SELECT id FROM t")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_key_twice_between_two_checkpoints(tables, attempt, elsewhere):
    tables.run("CREATE TABLE t (id int PRIMARY KEY)")
    job = attempt()
    job.harnesses[0]._chained.operator._writer._commits_in_driver = elsewhere
    job.write(0, *((n,) for n in range(7)), (3,))
    assert "there are two records with (id) = (3), which is unique" in refusal(job).message
    assert tables.run("SELECT * FROM t") == []


def test_a_key_of_two_subtasks(tables, attempt):
    tables.run("CREATE TABLE t (id int PRIMARY KEY)")
    job = attempt(3)
    for subtask in range(3):
        job.write(subtask, (subtask,), (10 + subtask,))
    job.checkpoint()
    job.write(0, (20,))
    job.write(2, (21,), (20,))
    assert "two records with (id) = (20)" in refusal(job).message


def test_the_rows_of_other_attempts_are_no_rows(tables, attempt):
    tables.run("CREATE TABLE t (id int PRIMARY KEY)")
    first = attempt(2)
    first.write(0, (1,), (2,))
    first.write(1, (3,), (4,))
    assert tables.column("SELECT count(*) FROM t_firesteel_staging") == [4]
    first.close()
    second = attempt(2, attempt=1)
    second.write(0, (3,), (4,))
    second.write(1, (1,), (2,))
    second.checkpoint()
    assert sorted(tables.column("SELECT id FROM t")) == [1, 2, 3, 4]


def test_a_batch_that_was_written_twice_is_no_duplicate(tables, attempt):
    tables.run("CREATE TABLE t (id int PRIMARY KEY)")
    job = attempt()
    writer = job.harnesses[0]._chained.operator._writer
    job.write(0, (1,), (2,))
    # as if the connection had been lost after the batch, which is then written once more
    doubtful = writer._batches.pop()
    writer._doubtful.append(doubtful)
    writer._row_count = 0
    job.write(0, (1,), (2,))
    job.checkpoint()
    assert sorted(tables.column("SELECT id FROM t")) == [1, 2]


def test_a_row_that_refers_to_none(tables, attempt):
    tables.run("CREATE TABLE customers (name text, nr int, PRIMARY KEY (nr, name))")
    tables.run("INSERT INTO customers VALUES ('a', 1)")
    tables.run(
        "CREATE TABLE t (id int PRIMARY KEY, name text, nr int, parent int REFERENCES t, "
        "CONSTRAINT known FOREIGN KEY (name, nr) REFERENCES customers (name, nr) DEFERRABLE INITIALLY DEFERRED)"
    )
    job = attempt()
    job.write(0, (1, "a", 1, None), (2, "b", None, 1), (3, None, None, 2))
    job.checkpoint()
    job.write(0, (4, "a", 2, None))
    error = refusal(job)
    assert f"no row in {tables.schema}.customers for (name, nr) = (a, 2), against the foreign key known" in (
        error.message
    )
    assert error.sqlstate == "23503"


def test_a_user_who_may_only_insert(tables, attempt):
    tables.run("CREATE TABLE t (id int PRIMARY KEY)")
    attempt().close()  # makes the staging table
    role = f"{tables.schema}_writer"
    tables.run(f"CREATE ROLE {role} LOGIN")
    tables.run(f"GRANT USAGE ON SCHEMA {tables.schema} TO {role}")
    tables.run(f"GRANT INSERT ON t TO {role}")
    tables.run(f"GRANT INSERT, SELECT, DELETE ON t_firesteel_staging TO {role}")
    job = attempt(url=tables.url_of(role))
    job.write(0, (1,), (2,))
    job.checkpoint()
    tables.run("REVOKE INSERT ON t FROM " + role)
    job.write(0, (3,))
    assert refusal(job).sqlstate == "42501"
    job.close()
    tables.run(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert sorted(tables.column("SELECT id FROM t")) == [1, 2]
