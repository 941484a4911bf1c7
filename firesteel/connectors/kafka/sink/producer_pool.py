"""Pool of transactional producers of one writer: created ahead, and reused after their transaction is committed."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from firesteel.connectors.kafka.client_errors import KafkaClientError, client_error, is_transient
from firesteel.connectors.kafka.sink.producer import KafkaWriteError, write_error
from firesteel.connectors.kafka.sink.record_producer import RecordProducer
from firesteel.connectors.kafka.sink.serialization import RecordBatch
from firesteel.connectors.kafka.sink.transactions import (
    DEADLINE_S,
    PreparedTransaction,
    TransactionCoordinators,
)

__all__ = ["ProducerPool", "TransactionalProducer", "live_producer"]

CALL_TIMEOUT_S = 1.0
"""How long a call to a coordinator blocks before it is checked whether the writer is still open."""
ABORT_TIMEOUT_S = 5.0
MAX_READY_PRODUCERS = 3
"""Producers that are kept; there are more while several checkpoints in a row are not completed."""
_COORDINATORS_TOPIC = "__transaction_state"
_log = logging.getLogger(__name__)

_live: weakref.WeakValueDictionary[str, TransactionalProducer] = weakref.WeakValueDictionary()


def live_producer(transactional_id: str) -> TransactionalProducer | None:
    """The producer of this process that has prepared a transaction, if its writer commits here too."""
    return _live.get(transactional_id)


class TransactionState(Enum):
    """How far a producer's transaction is."""

    UNINITIALIZED = "uninitialized"
    NONE = "none"
    OPEN = "open"
    PREPARED = "prepared"
    BROKEN = "broken"


class TransactionalProducer(RecordProducer):
    """A producer with a transactional id of its own."""

    def __init__(self, transactional_id: str, properties: Mapping[str, Any]):
        super().__init__({**properties, "transactional.id": transactional_id})
        self.transactional_id = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self._records = 0

    @property
    def has_records(self) -> bool:
        """Whether there are records in the transaction."""
        return self._records > 0

    def send(self, batch: RecordBatch) -> int:
        """Takes records into the transaction."""
        taken = super().send(batch)
        self._records += taken
        return taken

    def initialize(self, is_wanted: Callable[[], bool]) -> None:
        """Gets a producer id from the coordinator; takes some 60 ms."""
        # A producer that looks for its coordinator before it is connected waits half a second. It connects twice,
        # first to the bootstrap server, and answers in between.
        for _ in range(2):
            with suppress(self._kafka_exception):
                self.client.list_topics(_COORDINATORS_TOPIC, timeout=CALL_TIMEOUT_S)
            self.poll()
        if self._call("init_transactions", "begin to write transactions", is_wanted):
            self.state = TransactionState.NONE

    def _serve(self, wait_s: float) -> None:
        super()._serve(wait_s)
        if self.dropped_for and self.state is TransactionState.OPEN:
            raise self._why_dropped()

    def _why_dropped(self) -> Exception:
        """Why the transaction can only be aborted: librdkafka drops its records, and reports it with the next call."""
        try:
            # with an open transaction this does nothing but fail
            self.client.begin_transaction()
        except self._kafka_exception as error:
            return write_error(error, "', '".join(sorted(self.dropped_for)), self._properties)
        raise AssertionError("a transaction has begun within another")

    def begin(self) -> None:
        """Begins a transaction; the brokers learn of it with the first record."""
        assert self.state is TransactionState.NONE
        self.client.begin_transaction()
        self._records = 0
        self.state = TransactionState.OPEN

    def prepare(self, coordinators: TransactionCoordinators) -> PreparedTransaction:
        """Waits until all records are acknowledged, and returns how the transaction can be found."""
        assert self.state is TransactionState.OPEN
        self.flush()
        found = coordinators.describe(self.transactional_id)
        if found is None or found.state != "Ongoing":
            raise KafkaWriteError(
                f"The transaction '{self.transactional_id}' was aborted before the checkpoint: it is "
                f"{'unknown' if found is None else found.state}.",
                code="" if found is None else found.state,
                hint="The transaction may have exceeded transaction.timeout.ms "
                f"({self._properties['transaction.timeout.ms']} ms), which must be longer than the time between "
                "checkpoints, or another job may use the same transactional id prefix.",
            )
        self.state = TransactionState.PREPARED
        return PreparedTransaction(
            self.transactional_id, found.producer_id, found.producer_epoch, found.start_time_ms, found.partitions
        )

    def commit(self) -> None:
        """Commits what was prepared, also if someone else has done so. On failure the producer is of no more use."""
        if self.state is TransactionState.NONE:
            return
        state, self.state = self.state, TransactionState.BROKEN
        assert state is TransactionState.PREPARED, state
        self._call("commit_transaction", f"commit the transaction '{self.transactional_id}'")
        self.state = TransactionState.NONE

    def close(self) -> None:
        """Aborts a transaction that was not prepared, if the broker can be reached; ends the producer's threads."""
        if self.state is TransactionState.OPEN:
            try:
                self.client.purge()
                self.client.abort_transaction(ABORT_TIMEOUT_S)
                self.state = TransactionState.NONE
            except self._kafka_exception as error:
                _log.info("%s is not aborted now: %s", self.transactional_id, error)
        _live.pop(self.transactional_id, None)
        super().close()

    def has_connected(self) -> bool:
        """Whether the coordinator has given it a producer id."""
        return self.state is not TransactionState.UNINITIALIZED

    def can_end(self) -> bool:
        """Not with a transaction that is prepared, or can be neither committed nor aborted now."""
        return self.state is TransactionState.NONE

    def _call(self, method: str, doing: str, is_wanted: Callable[[], bool] = lambda: True) -> bool:
        """Calls a method of the client until it is done; returns whether it is done, or the pool closed.

        By its name: an error that a job remembers remembers this frame, and with the method the client would live on.
        """
        deadline = time.monotonic() + DEADLINE_S
        while is_wanted():
            try:
                getattr(self.client, method)(CALL_TIMEOUT_S)
            except self._kafka_exception as error:
                if not is_transient(error) or time.monotonic() > deadline:
                    raise client_error(error, doing, servers=self._properties["bootstrap.servers"]) from error
                # whether the cluster lets it in at all
                self.poll()
            else:
                return True
        return False


class ProducerPool:
    """Hands out producers that are ready, the one that was given back first. Makes more in another thread."""

    def __init__(self, base_id: str, properties: Mapping[str, Any], *, commits_here: bool):
        self._base_id = base_id
        self._properties = properties
        self._commits_here = commits_here
        self._condition = threading.Condition()
        self._ready: deque[TransactionalProducer] = deque()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self.made = 0
        """How many producers there have been."""

    def take(self) -> TransactionalProducer | None:
        """A producer that is ready, or None: one will be."""
        with self._condition:
            if self._ready:
                return self._ready.popleft()
            if self._failure is not None:
                raise self._failure
            self._make()
            return None

    def wait_and_take(self) -> TransactionalProducer:
        """A producer that is ready, waited for."""
        # the caller gives up first, with a reason
        deadline = time.monotonic() + DEADLINE_S + 10 * CALL_TIMEOUT_S
        while (producer := self.take()) is None:
            with self._condition:
                if not self._ready and self._failure is None:
                    self._condition.wait(0.1)
            if time.monotonic() > deadline:
                raise KafkaWriteError(f"No producer could be made within {DEADLINE_S:g} s for '{self._base_id}'.")
        return producer

    def prefetch(self) -> None:
        """Ensures that a producer will be available for the next request."""
        with self._condition:
            if not self._ready and self._failure is None:
                self._make()

    def give_back(self, producer: TransactionalProducer) -> None:
        """Takes a producer whose transaction is committed."""
        with self._condition:
            if not self._closed and len(self._ready) < MAX_READY_PRODUCERS:
                self._ready.append(producer)
                return
        producer.close()

    def close(self) -> None:
        """Ends the producers that are not in use."""
        with self._condition:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join(2 * CALL_TIMEOUT_S)
        for producer in self._ready:
            producer.close()
        self._ready.clear()

    def _make(self) -> None:
        """Starts making one, if none is being made."""
        if self._thread is None and not self._closed:
            number, self.made = self.made, self.made + 1
            self._thread = threading.Thread(
                target=self._initialize, args=(f"{self._base_id}-{number}",), name="kafka-producer-init", daemon=True
            )
            self._thread.start()

    def _initialize(self, transactional_id: str) -> None:
        producer: TransactionalProducer | None = None
        failure: Exception | None = None
        try:
            producer = TransactionalProducer(transactional_id, self._properties)
            producer.initialize(lambda: not self._closed)
        except Exception as error:  # noqa: BLE001 - raised in the task's own thread
            # without its traceback, in which the producer would live on
            failure = self._explain(error).with_traceback(None)
            failure.__cause__ = failure.__context__ = None
        with self._condition:
            self._thread = None
            if self._closed or failure is not None:
                self._failure = failure
            elif producer is not None:
                if self._commits_here:
                    _live[transactional_id] = producer
                self._ready.append(producer)
                producer = None
            self._condition.notify_all()
        if producer is not None:
            producer.close()

    def _explain(self, error: Exception) -> Exception:
        if not isinstance(error, KafkaClientError) or error.code != "INVALID_TRANSACTION_TIMEOUT":
            return error
        coordinators = TransactionCoordinators(self._properties)
        try:
            longest = coordinators.longest_timeout_ms()
        finally:
            coordinators.close()
        return KafkaWriteError(
            f"The sink's transaction.timeout.ms ({self._properties['transaction.timeout.ms']} ms) is longer than what "
            f"the brokers at {self._properties['bootstrap.servers']} allow: their transaction.max.timeout.ms is "
            f"{'shorter' if longest is None else f'{longest} ms'}.",
            code=error.code,
            hint="Set a shorter transaction.timeout.ms with set_property, or raise the brokers' "
            "transaction.max.timeout.ms.",
        )
