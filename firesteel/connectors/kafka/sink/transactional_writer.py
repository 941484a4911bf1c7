"""Exactly-once writer of a KafkaSink, with transactions."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.connectors.kafka.client_errors import KafkaClientError
from firesteel.connectors.kafka.sink.abandoned_transactions import AbandonedTransactions, SinkIdentity
from firesteel.connectors.kafka.sink.producer_pool import ProducerPool, TransactionalProducer, TransactionState
from firesteel.connectors.kafka.sink.record_producer import RecordProducer
from firesteel.connectors.kafka.sink.serialization import KafkaRecordSerializationSchema
from firesteel.connectors.kafka.sink.transactional_id import TransactionalId
from firesteel.connectors.kafka.sink.transactions import PreparedTransaction, TransactionCoordinators
from firesteel.connectors.kafka.sink.writer import KafkaWriterBase
from firesteel.process import fault_points
from firesteel.spi.sink import WriterContext

__all__ = ["TransactionalKafkaWriter"]

_log = logging.getLogger(__name__)


class TransactionalKafkaWriter(KafkaWriterBase):
    """Writes the records between two checkpoints in one Kafka transaction.

    1. *Open*: the first record after a checkpoint begins a transaction, with a producer that has none. Without a record
       there is no transaction, and nothing to commit.
    2. *Prepared*: at the barrier of checkpoint n the writer waits until all records are acknowledged, and asks the
       coordinator for the transaction's producer id, epoch, start and partitions. With its transactional id these are
       the committable of n. The producer is not used until the transaction is committed; records that follow go to
       another.
    3. The checkpoint stores the committables (SinkOperator), and once more as state that *every* writer of a restored
       job is given: so that each knows which transactions are not to be aborted.
    4. *Committed*: checkpoint n is complete. The committer commits with the producer itself. Those of a checkpoint that
       was aborted are committed with the next one: there may be several.
    5. The producer goes back to the writer's pool, behind those that wait there.

    After a failure, in a new attempt, whose transactional ids are new:

    6. Before anything is written, the committables of the restored checkpoint are committed by id and epoch. Of each,
       the coordinator returns the state. *Ongoing*, with the same start and partitions: it is committed. *Committed*,
       or another transaction of the same producer has begun: that was done before the failure, since a producer begins
       another only after 4. *Aborted*: its records are lost (it had timed out), which is an error.
    7. All other transactions of earlier attempts are aborted, and their producers fenced: their records come again, and
       while they are open no read-committed consumer gets past them. One subtask does it for all, at the start, and
       once more when the first checkpoint is complete: a writer that was still alive may have begun another in between.

    A failure before the checkpoint is complete leaves a transaction that 7 aborts. A failure between completion and
    commit leaves one that 6 commits, whether the writer's process lives or not. A failure after the commit leaves one
    that 6 finds committed. So each record of a completed checkpoint is seen once by a consumer that reads committed
    records only, and no other.

    Where the commit happens in another process (epochs, batches), 4 is done there by id and epoch, and the writer, once
    it is notified, repeats it with the producer, which brokers take for a success. What runs of a task have left that
    do not count is aborted two checkpoints later, or in a batch at its end.

    A transaction must be committed within transaction.timeout.ms of its first record, restarts included.
    """

    def __init__(
        self,
        context: WriterContext,
        serializer: KafkaRecordSerializationSchema,
        properties: Mapping[str, Any],
        prefix: str,
        restored: Sequence[SinkIdentity | PreparedTransaction] | None = None,
    ):
        self._id = TransactionalId(
            prefix, context.sink_id, context.attempt_id, context.subtask_index, uuid.uuid4().hex[:12], 0
        )
        self._coordinators = TransactionCoordinators(properties)
        self._commits_in_driver = context.execution.commits_in_driver
        self._writing: TransactionalProducer | None = None
        self._prepared: list[tuple[int | None, TransactionalProducer, PreparedTransaction]] = []
        base_id = str(self._id).rpartition("-")[0]
        self._pool = ProducerPool(base_id, properties, commits_here=not context.execution.commits_in_driver)
        self._abandoned = AbandonedTransactions(
            self._coordinators,
            self._id,
            [item for item in restored or () if isinstance(item, SinkIdentity)],
            [item for item in restored or () if isinstance(item, PreparedTransaction)],
            parallelism=context.parallelism,
            is_new_job=restored is None and context.attempt_number == 0,
        )
        self._first_snapshot: int | None = None
        self._cleaning: _Cleaning | None = None
        # Without state, a later attempt of a batch continues with what earlier ones have prepared.
        self._is_cleaner = context.subtask_index == 0 and (
            restored is not None or not context.execution.commits_in_driver or context.attempt_number == 0
        )
        super().__init__(context, serializer, properties)
        self._pool.prefetch()
        if self._is_cleaner:
            self._clean()

    def flush(self, end_of_input: bool) -> None:
        """Waits until all records are acknowledged (2)."""
        self._check_cleaning()
        self._flush()

    def prepare_commit(self) -> list[PreparedTransaction]:
        """Hands over the transaction, if one was begun (2)."""
        producer = self._writing
        if producer is None or not producer.has_records:
            return []
        prepared = producer.prepare(self._coordinators)
        fault_points.reach("kafka.prepared")
        self._writing = None
        self._prepared.append((None, producer, prepared))
        return [prepared]

    def snapshot_state(self, checkpoint_id: int) -> list[SinkIdentity | PreparedTransaction]:
        """Whose transactions these are, and those that are not known to be committed (3)."""
        if self._first_snapshot is None:
            self._first_snapshot = checkpoint_id
        self._prepared = [
            (checkpoint_id if number is None else number, producer, prepared)
            for number, producer, prepared in self._prepared
        ]
        return [SinkIdentity(self._id.prefix, self._id.sink_id), *(prepared for _, _, prepared in self._prepared)]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Takes back the producers whose transactions are committed (5)."""
        kept = []
        for number, producer, prepared in self._prepared:
            if number is None or number > checkpoint_id:
                kept.append((number, producer, prepared))
            elif self._is_usable(producer):
                self._pool.give_back(producer)
            else:
                producer.close()
        self._prepared = kept
        if self._first_snapshot is None or checkpoint_id < self._first_snapshot:
            return
        if self._commits_in_driver:
            self._abandoned.abort_earlier_runs(self._own_ids())
        elif self._is_cleaner:
            self._is_cleaner = False
            self._clean()

    def close(self) -> None:
        """Aborts a transaction that was not prepared; leaves those that were."""
        producers = [producer for _, producer, _ in self._prepared]
        if self._writing is not None:
            producers.append(self._writing)
        self._prepared, self._writing = [], None
        for producer in producers:
            producer.close()
        self._pool.close()
        self._coordinators.close()
        if self._cleaning is not None:
            self._cleaning.close()

    def _clean(self) -> None:
        if self._cleaning is not None:
            self._cleaning.close()
        self._cleaning = _Cleaning(self._abandoned)

    def _is_usable(self, producer: TransactionalProducer) -> bool:
        try:
            # nothing to do unless it was committed elsewhere
            if producer.state is not TransactionState.BROKEN:
                producer.commit()
        except KafkaClientError as error:
            _log.info("the producer '%s' is not used again: %s", producer.transactional_id, error.message)
        return producer.state is TransactionState.NONE

    def _own_ids(self) -> list[str]:
        return [str(self._id._replace(number=number)) for number in range(self._pool.made)]

    def _producer(self) -> RecordProducer | None:
        if self._writing is None:
            producer = self._pool.take()
            if producer is not None:
                self._begin(producer)
        return self._writing

    def _wait_for_producer(self) -> RecordProducer:
        if self._writing is None:
            self._begin(self._pool.wait_and_take())
        assert self._writing is not None
        return self._writing

    def _begin(self, producer: TransactionalProducer) -> None:
        producer.begin()
        self._writing = producer
        # the one after the next barrier must not be waited for
        self._pool.prefetch()
        self._check_cleaning()

    def _current(self) -> RecordProducer | None:
        return self._writing

    def _check_cleaning(self) -> None:
        if self._cleaning is not None:
            self._cleaning.check()


class _Cleaning:
    """Step 7 at the start, beside the task's own thread."""

    def __init__(self, abandoned: AbandonedTransactions):
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(abandoned,), name="kafka-sink-cleaning", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises what went wrong."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Waits a moment for the end."""
        self._thread.join(2.0)

    def _run(self, abandoned: AbandonedTransactions) -> None:
        try:
            abandoned.abort_other_attempts()
        except Exception as error:  # noqa: BLE001 - raised in the task's own thread
            self._failure = error
