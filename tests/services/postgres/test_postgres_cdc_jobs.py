"""Whole jobs that capture changes, with failures, while transactions go on."""

from __future__ import annotations

import random
import threading
import uuid

import psycopg
import pytest

from firesteel.common.errors import CheckpointError
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.testing import eventually, test_environment
from tests.services.postgres.cdc_harness import Replica, database, items

__all__ = ["database", "items"]

DEADLINE_S = 180.0


class Job:
    """A job whose results are collected while it runs."""

    def __init__(self, source, parallelism, directory, function=lambda row: row, **settings):
        configuration = Configuration()
        for key, value in {
            "execution.checkpointing.interval": "40 ms",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "100",
            "restart-strategy.fixed-delay.delay": "1 ms",
            **{key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()},
        }.items():
            configuration.set_string(key, value)
        env = test_environment(parallelism, configuration)
        channel = f"collect-{uuid.uuid4().hex}"
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        # rows of a key must not overtake each other on their way to the sink
        stream = env.from_source(source, strategy, "capture").key_by(lambda row: row["id"]).map(function)
        stream.sink_to(CollectSink(channel))
        self.client = env.execute_async("capture")
        self.rows = []
        self._thread = threading.Thread(target=self._collect, args=(channel,))
        self._thread.start()

    def _collect(self, channel):
        for row in self.client._handle.collect_iterator(channel):
            self.rows.append(row)

    def awaits(self, condition):
        eventually(lambda: condition(self.rows), DEADLINE_S)

    def stop(self, directory):
        def stopped():
            try:
                return self.client.stop_with_savepoint(False, str(directory / "savepoints")).result(DEADLINE_S)
            except CheckpointError:
                # a reader that has no more splits may end just then; as in Flink, one has to ask again
                return False

        path = eventually(stopped, DEADLINE_S)
        self.client.get_job_execution_result().result(DEADLINE_S)
        self._thread.join(DEADLINE_S)
        return path

    def cancel(self):
        self.client.cancel().result(DEADLINE_S)
        self._thread.join(DEADLINE_S)


class FailNowAndThen:
    """Fails the job every so many rows, a few times in all; whichever task it is in."""

    failures = 0
    rows = 0
    lock = threading.Lock()

    def __init__(self, every, limit):
        self._every = every
        self._limit = limit

    def __call__(self, row):
        mine = type(self)
        with mine.lock:
            mine.rows += 1
            fails = mine.failures < self._limit and mine.rows % self._every == 0
            mine.failures += fails
        if fails:
            raise RuntimeError("on purpose")
        return row


class Writers:
    """Transactions in threads of their own, until told to stop."""

    def __init__(self, dsn, count=2):
        self._stop = threading.Event()
        self._dsn = dsn
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _write(self, number):
        chance = random.Random(number)
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            version = 0
            while not self._stop.wait(0.002):
                version += 1
                with connection.transaction(force_rollback=chance.random() < 0.1):
                    for _ in range(chance.randint(1, 5)):
                        # each writer has its own rows
                        key = chance.randint(0, 150) * 2 + number
                        if chance.random() < 0.3:
                            connection.execute("DELETE FROM items WHERE id = %s", [key])
                        else:
                            connection.execute(
                                "INSERT INTO items VALUES (%s, %s, 'w') ON CONFLICT (id) DO UPDATE "
                                "SET version = excluded.version",
                                [key, version * 2 + number],
                            )

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def replica_is(rows, database):
    try:
        return Replica.of(rows) == database.rows("items")
    except AssertionError:
        # of a key that goes to another task the order is kept, but tasks are not in step
        return False


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_that_fails_again_and_again(items, tmp_path, parallelism):
    items.execute("INSERT INTO items SELECT n, 0, 'item ' || n FROM generate_series(61, 300) AS n")
    FailNowAndThen.failures = FailNowAndThen.rows = 0
    job = Job(items.builder().fetch_size(7).build(), parallelism, tmp_path, FailNowAndThen(197, 8))
    writers = Writers(items.dsn)
    try:
        job.awaits(lambda rows: len(rows) > 1500 and FailNowAndThen.failures == 8)
        writers.stop()
        job.awaits(lambda rows: replica_is(list(rows), items))
    finally:
        writers.stop()
        job.cancel()


def test_a_job_that_goes_on_from_savepoints_at_another_parallelism(items, tmp_path):
    items.execute("INSERT INTO items SELECT n, 0, 'item ' || n FROM generate_series(61, 300) AS n")
    source = items.builder().fetch_size(7).build()
    rows, path = [], None
    writers = Writers(items.dsn)
    try:
        for parallelism, count in ((1, 50), (3, 200), (2, 600)):
            settings = {} if path is None else {"execution__state_recovery__path": path}
            job = Job(source, parallelism, tmp_path, **settings)
            job.awaits(lambda new, count=count: len(new) >= count)
            path = job.stop(tmp_path)
            rows += job.rows
        writers.stop()
        job = Job(source, 3, tmp_path, execution__state_recovery__path=path)
        try:
            job.awaits(lambda new: replica_is(rows + list(new), items))
        finally:
            job.cancel()
    finally:
        writers.stop()


def test_a_job_in_epochs(items, tmp_path):
    items.execute("INSERT INTO items SELECT n, 0, 'item ' || n FROM generate_series(61, 300) AS n")
    job = Job(items.builder().build(), 2, tmp_path, execution__exchange="spark")
    writers = Writers(items.dsn)
    try:
        job.awaits(lambda rows: len(rows) > 600)
        writers.stop()
        job.awaits(lambda rows: replica_is(list(rows), items))
    finally:
        writers.stop()
        job.cancel()
