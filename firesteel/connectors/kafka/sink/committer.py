"""Exactly-once committer of a KafkaSink: commits the transactions that its writers prepared."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.connectors.kafka.client_errors import BrokerUnavailableError, KafkaClientError
from firesteel.connectors.kafka.sink.producer_pool import live_producer
from firesteel.connectors.kafka.sink.transactional_id import TransactionalId
from firesteel.connectors.kafka.sink.transactions import Outcome, PreparedTransaction, TransactionCoordinators
from firesteel.spi.sink import Committer

__all__ = ["KafkaCommitter", "TransactionLostError"]

_log = logging.getLogger(__name__)


class TransactionLostError(FiresteelError):
    """A prepared transaction that was aborted: its records will never be seen."""

    def __init__(self, message: str, *, transactional_id: str, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.transactional_id = transactional_id


class KafkaCommitter(Committer[PreparedTransaction]):
    """Commits transactions: with the producer itself where it lives in this process, otherwise by its id and epoch.

    See :class:`TransactionalKafkaWriter` for the protocol of which this is steps 4 and 6.
    """

    def __init__(self, properties: Mapping[str, Any], prefix: str, *, ignores_lost: bool = False):
        self._properties = properties
        self._prefix = prefix
        self._ignores_lost = ignores_lost
        self._coordinators: TransactionCoordinators | None = None
        self._sinks: dict[str, None] = {}

    def commit(self, committables: Sequence[PreparedTransaction]) -> None:
        """Commits transactions of this attempt."""
        for prepared in committables:
            producer = live_producer(prepared.transactional_id)
            if producer is not None:
                try:
                    producer.commit()
                    continue
                except BrokerUnavailableError:
                    # the next attempt commits it
                    raise
                except KafkaClientError as error:
                    _log.warning("%s; checking the outcome.", error.message)
            self._commit_by_id(prepared)

    def recommit(self, committables: Sequence[PreparedTransaction]) -> None:
        """Commits transactions of an attempt before, of which some or all may be committed."""
        for prepared in committables:
            self._commit_by_id(prepared, restored=True)

    def finish(self) -> None:
        """Aborts what tasks of the batch that failed, or were run twice, have left."""
        for sink_id in self._sinks:
            coordinators = self._connected()
            for transactional_id in coordinators.list_ongoing(f"{self._prefix}-{sink_id}-"):
                coordinators.abort(transactional_id)

    def close(self) -> None:
        """Closes the connections."""
        if self._coordinators is not None:
            self._coordinators.close()

    def _commit_by_id(self, prepared: PreparedTransaction, *, restored: bool = False) -> None:
        parts = TransactionalId.parse(prepared.transactional_id, self._prefix)
        if parts is not None:
            self._sinks[parts.sink_id] = None
        outcome = self._connected().commit(prepared)
        if outcome is Outcome.UNKNOWN and restored:
            _log.warning(
                "The transaction '%s' no longer exists on the brokers: assuming that it was committed after the "
                "checkpoint.",
                prepared.transactional_id,
            )
        elif outcome in (Outcome.ABORTED, Outcome.UNKNOWN):
            self._report_lost(prepared, outcome)

    def _report_lost(self, prepared: PreparedTransaction, outcome: Outcome) -> None:
        error = TransactionLostError(
            f"The transaction '{prepared.transactional_id}' that a checkpoint relies on "
            f"{'was aborted' if outcome is Outcome.ABORTED else 'is gone'}: its records are lost. Its "
            f"transaction.timeout.ms is {self._properties.get('transaction.timeout.ms')} ms.",
            transactional_id=prepared.transactional_id,
            hint="A transaction is aborted when it is older than transaction.timeout.ms, which must be longer than "
            "the time between checkpoints and a restart together; or by another job with the same transactional "
            "id prefix. To write the records again, restore an earlier checkpoint, or start without a "
            "checkpoint; to continue without them, call ignore_failures_after_transaction_timeout() on the "
            "sink's builder.",
        )
        if not self._ignores_lost:
            raise error
        _log.error("%s", error.message)

    def _connected(self) -> TransactionCoordinators:
        if self._coordinators is None:
            self._coordinators = TransactionCoordinators(self._properties)
        return self._coordinators
