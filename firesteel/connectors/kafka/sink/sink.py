"""A sink that writes records to Kafka topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.connectors.kafka.sink.committer import KafkaCommitter
from firesteel.connectors.kafka.sink.serialization import KafkaRecordSerializationSchema
from firesteel.connectors.kafka.sink.transactional_writer import TransactionalKafkaWriter
from firesteel.connectors.kafka.sink.transactions import PreparedTransaction
from firesteel.connectors.kafka.sink.writer import KafkaWriter
from firesteel.spi.sink import DeliveryGuarantee, Sink, SinkWriter, WriterContext

if TYPE_CHECKING:
    from firesteel.connectors.kafka.sink.builder import KafkaSinkBuilder

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """Writes records to Kafka, with the guarantee that its builder was told.

    - ``NONE``: records may be lost if a broker or the job fails, and come twice.
    - ``AT_LEAST_ONCE``: each checkpoint waits until all records are acknowledged. None is lost; after a failure of the
      job those since the last checkpoint may come twice. A consumer sees a record within milliseconds.
    - ``EXACTLY_ONCE``: the records between two checkpoints are a Kafka transaction, committed when the checkpoint is
      complete. A consumer with ``isolation.level=read_committed`` sees each once, after the checkpoint.

    See :class:`TransactionalKafkaWriter` for how. Start with ``KafkaSink.builder()``.
    """

    name = "Kafka Sink"
    shares_writer_state = True

    def __init__(
        self,
        serializer: KafkaRecordSerializationSchema,
        properties: Mapping[str, Any],
        guarantee: DeliveryGuarantee,
        transactional_id_prefix: str | None,
        *,
        ignores_lost_transactions: bool = False,
    ):
        self._serializer = serializer
        self._properties = dict(properties)
        self._guarantee = guarantee
        self._prefix = transactional_id_prefix or ""
        self._ignores_lost = ignores_lost_transactions

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begins a sink."""
        from firesteel.connectors.kafka.sink.builder import KafkaSinkBuilder

        return KafkaSinkBuilder()

    def __repr__(self) -> str:
        return f"KafkaSink({self._serializer!r} at {self._properties['bootstrap.servers']}, {self._guarantee.value})"

    def get_transformer(self) -> None:
        """Returns None: a topic selector and a header provider get the records as they are."""

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer with producers of its own."""
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return KafkaWriter(context, self._serializer, self._properties, self._guarantee)
        return TransactionalKafkaWriter(context, self._serializer, self._properties, self._prefix)

    def restore_writer(self, context: WriterContext, state: Sequence[Any]) -> SinkWriter[Any]:
        """A writer that knows which transactions of the attempt before are still to be committed."""
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            self._commit_what_was_prepared(context, state)
            return self.create_writer(context)
        return TransactionalKafkaWriter(context, self._serializer, self._properties, self._prefix, state)

    def _commit_what_was_prepared(self, context: WriterContext, state: Sequence[Any]) -> None:
        """Finishes the transactions of a job that gave EXACTLY_ONCE, and gives less from now on."""
        prepared = [item for item in state if isinstance(item, PreparedTransaction)]
        if prepared and context.subtask_index == 0:
            committer = KafkaCommitter(self._properties, self._prefix, ignores_lost=self._ignores_lost)
            try:
                committer.recommit(prepared)
            finally:
                committer.close()

    def create_committer(self) -> KafkaCommitter | None:
        """The committer of transactions; None if there are none."""
        if self._guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        return KafkaCommitter(self._properties, self._prefix, ignores_lost=self._ignores_lost)

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """What the builder was told."""
        return self._guarantee

    def needs_checkpoints(self) -> bool:
        """Transactions are committed with checkpoints."""
        return self._guarantee is DeliveryGuarantee.EXACTLY_ONCE
