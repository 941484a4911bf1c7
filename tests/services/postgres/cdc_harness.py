"""Runs a capture by hand: its enumerator and readers without a job, so that a test decides when what happens."""

from __future__ import annotations

import itertools
import pickle
import time
from collections import deque
from typing import ClassVar

import psycopg
import pytest

from firesteel.common.types import RowKind
from firesteel.datastream.connectors.postgres import PostgresCdcSource
from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.source import InputStatus
from firesteel.testing import eventually

DEADLINE_S = 120.0


class Database:
    """An empty database, and captures of its tables. There is one for all tests: to make one takes a while."""

    _of_servers: ClassVar[dict[str, str]] = {}
    _slots = itertools.count(1)

    def __init__(self, server):
        self._server = server
        self.dsn = self._of_servers.get(server.dsn) or self._of_servers.setdefault(server.dsn, server.create_database())
        self.slot = f"capture_{next(self._slots)}"
        self._connection = None
        self._harnesses = []

    @property
    def connection(self):
        """A connection that commits at once, anew where the server has dropped it."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.dsn, autocommit=True)
        return self._connection

    def execute(self, statement, *parameters):
        return self.connection.execute(statement, parameters)

    def value(self, statement, *parameters):
        return self.execute(statement, *parameters).fetchone()[0]

    def rows(self, table):
        return sorted(map(tuple, self.execute(f"SELECT * FROM {table}").fetchall()), key=repr)

    def sessions(self):
        """The server's processes for captures."""
        found = self.execute("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'firesteel%%'").fetchall()
        return [pid for (pid,) in found]

    def builder(self, *tables):
        builder = PostgresCdcSource.builder().url(self.dsn).slot_name(self.slot)
        return builder.table_list(*(tables or ("public.items",))).split_size(10).lsn_commit_checkpoints_delay(0)

    def capture(self, builder=None, parallelism=1):
        """A capture by hand, closed at the end of the test."""
        harness = CaptureHarness((builder or self.builder()).build(), parallelism)
        self._harnesses.append(harness)
        return harness

    def close(self):
        for harness in self._harnesses:
            harness.close()
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        slots = "FROM pg_replication_slots WHERE database = current_database()"
        self.execute(f"SELECT pg_terminate_backend(active_pid, 60000) {slots} AND active")
        self.execute(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
        for (name,) in self.execute("SELECT quote_ident(pubname) FROM pg_publication").fetchall():
            self.execute(f"DROP PUBLICATION {name}")
        for (name,) in self.execute(
            "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)'"
        ).fetchall():
            self.execute(f"DROP SCHEMA {name} CASCADE")
        self.execute("CREATE SCHEMA public")
        # the server's part of a connection ends a moment after the other
        eventually(lambda: self.sessions() == [], DEADLINE_S)
        self.connection.close()


@pytest.fixture
def database(postgres):
    database = Database(postgres)
    yield database
    database.close()


def create_items(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, version int, name text)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    database.execute("INSERT INTO items SELECT n, 0, 'item ' || n FROM generate_series(1, 60) AS n")


@pytest.fixture
def items(database):
    """A database with a table of 60 rows."""
    create_items(database)
    return database


class _Metrics:
    def gauge(self, name, function):
        function()


class _ReaderContext:
    execution = PIPELINED
    reuses_objects = False
    attempt_number = 0

    def __init__(self, harness, subtask):
        self._harness = harness
        self.subtask_index = subtask
        self.parallelism = harness.parallelism

    def get_metrics_group(self):
        return _Metrics()

    def processing_time(self):
        return int(time.time() * 1000)

    def poll_at(self, timestamp):
        pass

    def monotonic_ms(self):
        return int(time.monotonic() * 1000)

    def poll_after(self, delay):
        pass

    def send_split_request(self):
        self._harness.to_enumerator.append(("request", self.subtask_index, None))

    def send_source_event(self, event):
        self._harness.to_enumerator.append(("event", self.subtask_index, pickle.dumps(event)))


class _Output:
    def __init__(self, harness):
        self._harness = harness
        self.released = []

    def collect(self, split_id, values, timestamps=None):
        assert len(values) == len(timestamps)
        self._harness.emitted += zip(values, timestamps, strict=True)

    def release_split(self, split_id):
        self.released.append(split_id)


class CaptureHarness:
    """The messages between enumerator and readers wait until ``deliver``; both ways are in order.

    ``committed`` are the records up to the last checkpoint; ``recover`` forgets what was emitted after it.
    """

    def __init__(self, source, parallelism=1, checkpoint=None):
        self.source = source
        self.parallelism = parallelism
        self.to_enumerator = deque()
        self.to_readers = deque()
        self.calls = deque()
        self.later = []
        self.emitted = []
        self.checkpoints = 0
        self.checkpoint = checkpoint
        self.ended = set()
        shipped = pickle.loads(pickle.dumps(source))
        if checkpoint is None:
            self.enumerator = shipped.create_enumerator(self)
            states = []
        else:
            enumerator_state, states = pickle.loads(checkpoint)
            self.enumerator = shipped.restore_enumerator(self, enumerator_state)
        self.enumerator.start()
        self.readers = [shipped.create_reader(_ReaderContext(self, subtask)) for subtask in range(parallelism)]
        self.outputs = [_Output(self) for _ in self.readers]
        splits = [split for state in states for split in state]
        for subtask, reader in enumerate(self.readers):
            if splits[subtask::parallelism]:
                reader.add_splits(splits[subtask::parallelism])
            reader.start()

    # what the enumerator calls

    def current_parallelism(self):
        return self.parallelism

    def registered_readers(self):
        return list(range(self.parallelism))

    def assign_split(self, split, subtask):
        self.to_readers.append(("split", subtask, pickle.dumps(split)))

    def signal_no_more_splits(self, subtask):
        self.to_readers.append(("no more", subtask, None))

    def send_event_to_reader(self, subtask, event):
        self.to_readers.append(("event", subtask, pickle.dumps(event)))

    def call_async(self, call, handler, *, initial_delay_ms=0, period_ms=None):
        (self.later if initial_delay_ms else self.calls).append((call, handler))

    # what a test calls

    def look(self):
        """Makes the calls that the enumerator makes after some time."""
        assert self.later
        self.calls += self.later
        self.later.clear()
        self.deliver()

    def make_call(self):
        """Makes one call of the enumerator; what it raises, the handler gets."""
        call, handler = self.calls.popleft()
        try:
            result, error = call(), None
        except Exception as raised:
            result, error = None, raised
        handler(result, error)

    def deliver(self, *, readers=True):
        while self.calls:
            self.make_call()
        while self.to_enumerator:
            kind, subtask, payload = self.to_enumerator.popleft()
            if kind == "request":
                self.enumerator.handle_split_request(subtask, None)
            else:
                self.enumerator.handle_source_event(subtask, pickle.loads(payload))
            while self.calls:
                self.make_call()
        while readers and self.to_readers:
            kind, subtask, payload = self.to_readers.popleft()
            reader = self.readers[subtask]
            if kind == "split":
                reader.add_splits([pickle.loads(payload)])
            elif kind == "event":
                reader.handle_source_event(pickle.loads(payload))
            else:
                reader.notify_no_more_splits()

    def poll(self, subtask, max_records=100):
        if subtask not in self.ended:
            status = self.readers[subtask].poll_next(self.outputs[subtask], max_records)
            if status is InputStatus.END_OF_INPUT:
                self.ended.add(subtask)

    def poll_all(self, max_records=100):
        self.deliver()
        for subtask in range(self.parallelism):
            self.poll(subtask, max_records)

    def begin_checkpoint(self):
        """The enumerator's part; nothing reaches a reader before its own part."""
        self.deliver()
        self.checkpoints += 1
        return self.enumerator.snapshot_state(self.checkpoints)

    def end_checkpoint(self, enumerator_state):
        states = [
            [] if subtask in self.ended else reader.snapshot_state(self.checkpoints)
            for subtask, reader in enumerate(self.readers)
        ]
        self.checkpoint = pickle.dumps((enumerator_state, states))
        self.committed_count = len(self.emitted)

    def complete_checkpoint(self):
        self.enumerator.notify_checkpoint_complete(self.checkpoints)
        for subtask, reader in enumerate(self.readers):
            if subtask not in self.ended:
                reader.notify_checkpoint_complete(self.checkpoints)

    def take_checkpoint(self):
        self.end_checkpoint(self.begin_checkpoint())
        self.complete_checkpoint()

    @property
    def committed(self):
        return [value for value, _ in self.emitted[: self.committed_count]]

    @property
    def records(self):
        return [value for value, _ in self.emitted]

    def recover(self, parallelism=None):
        """Another harness that goes on from the last checkpoint."""
        assert self.checkpoint is not None, "there is no checkpoint to go on from"
        self.close()
        following = CaptureHarness(self.source, parallelism or self.parallelism, self.checkpoint)
        following.emitted = self.emitted[: self.committed_count]
        following.committed_count = len(following.emitted)
        following.checkpoints = self.checkpoints
        return following

    committed_count = 0

    @property
    def log_reader(self):
        """The subtask that has the log, None if none has."""
        for subtask, reader in enumerate(self.readers):
            if reader._log_split is not None:
                return subtask
        return None

    def run_until(self, condition, *, checkpoints=True, max_records=100, delivers=True):
        """Polls, with a checkpoint now and then, until the condition holds."""
        deadline = time.monotonic() + DEADLINE_S
        rounds = 0
        while not condition():
            assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s; {len(self.emitted)} records came"
            if delivers:
                self.deliver()
            for subtask in range(self.parallelism):
                self.poll(subtask, max_records)
            rounds += 1
            if checkpoints and rounds % 20 == 0:
                self.take_checkpoint()
            if rounds % 5 == 0:
                time.sleep(0.001)
        return self

    def run_until_caught_up(self, connection):
        """Polls until everything that is committed now has been emitted."""
        # not how far the log is written: that may be in the middle of something nobody has to wait for
        emit = "SELECT pg_logical_emit_message(true, 'test', 'here') - '0/0'::pg_lsn"
        (lsn,) = connection.execute(emit).fetchone()

        def is_there():
            subtask = self.log_reader
            log = None if subtask is None else self.readers[subtask]._log
            position = None if log is None else log.position
            return position is not None and log.is_caught_up and position.commit_lsn == 0 and position.lsn >= lsn

        return self.run_until(is_there)

    def close(self):
        for reader in self.readers:
            reader.close()
        self.enumerator.close()


class Replica:
    """A table rebuilt from its changelog; a change that does not fit the rows there is an error."""

    def __init__(self, key=lambda row: row["id"]):
        self._key = key
        self.rows = {}

    def apply(self, row):
        key, values, kind = self._key(row), tuple(row), row.get_row_kind()
        if kind is RowKind.INSERT:
            assert key not in self.rows, f"{row} was inserted twice"
            self.rows[key] = values
        elif kind is RowKind.UPDATE_AFTER:
            assert self.rows.get(key, ...) is None, f"{row} updates {self.rows.get(key)}"
            self.rows[key] = values
        else:
            assert self.rows.get(key) == values, f"{kind} {row}, but there is {self.rows.get(key)}"
            if kind is RowKind.UPDATE_BEFORE:
                self.rows[key] = None
            else:
                del self.rows[key]

    @classmethod
    def of(cls, changelog, **options):
        replica = cls(**options)
        for row in changelog:
            replica.apply(row)
        return sorted(replica.rows.values(), key=repr)
