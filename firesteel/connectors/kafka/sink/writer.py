"""Writer of a KafkaSink with NONE or AT_LEAST_ONCE."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.connectors.kafka.sink.record_producer import RecordProducer
from firesteel.connectors.kafka.sink.serialization import KafkaRecordSerializationSchema, RecordBatch
from firesteel.spi.sink import DeliveryGuarantee, SinkWriter, WriterContext

__all__ = ["KafkaWriter", "KafkaWriterBase"]

PARTITIONS_AGE_S = 300.0
"""How long what is known of a topic's partitions is used; the producers' metadata.max.age.ms."""


class KafkaWriterBase(SinkWriter[Any]):
    """Serializes records and hands them to a producer; is its serializer's KafkaSinkContext.

    No record waits for a broker here: what the producer's queue has no room for is kept in order, and the task held
    back (``has_room``) until there is room for it.
    """

    def __init__(
        self, context: WriterContext, serializer: KafkaRecordSerializationSchema, properties: Mapping[str, Any]
    ):
        self.subtask_index = context.subtask_index
        self.parallelism = context.parallelism
        self._properties = properties
        self._serializer = serializer
        self._waiting: deque[RecordBatch] = deque()
        self._enough = max(1, int(properties["queue.buffering.max.messages"]) // 2)
        self._partitions: dict[str, tuple[float, list[int]]] = {}
        metrics = context.get_metrics_group()
        self._sent = metrics.counter("numRecordsSend")
        metrics.gauge("numRecordsSendQueued", self._queued)
        serializer.open(self)

    @abstractmethod
    def _producer(self) -> RecordProducer | None:
        """The producer that takes records now; None if there is none yet."""

    def partitions_for_topic(self, topic: str) -> list[int]:
        """The partitions that a topic has."""
        now = time.monotonic()
        asked_at, partitions = self._partitions.get(topic, (0.0, []))
        if not partitions or now - asked_at > PARTITIONS_AGE_S:
            partitions = self._wait_for_producer().partitions_for_topic(topic)
            self._partitions[topic] = now, partitions
        return partitions

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Hands records to the producer, or keeps them until it has room."""
        self._waiting.extend(self._serializer.serialize_batch(values, self, timestamps))
        self._send_waiting()

    def has_room(self) -> bool:
        """Whether the producer's queue is not too long."""
        if self._waiting and not self._send_waiting():
            return False
        producer = self._current()
        if producer is None or len(producer) < self._enough:
            return True
        producer.poll()
        return len(producer) < self._enough

    def _send_waiting(self) -> bool:
        """Sends waiting records, as far as there is room; returns whether none is left."""
        waiting = self._waiting
        while waiting:
            producer = self._producer()
            if producer is None:
                return False
            batch = waiting[0]
            taken = producer.send(batch)
            self._sent.inc(taken)
            producer.poll()
            if taken < len(batch.values):
                waiting[0] = batch.rest(taken)
                return False
            waiting.popleft()
        return True

    def _flush(self) -> None:
        """Waits until the producer has acknowledged all records."""
        while not self._send_waiting():
            self._wait_for_producer().wait_for_room()
        producer = self._current()
        if producer is not None:
            producer.flush()

    @abstractmethod
    def _current(self) -> RecordProducer | None:
        """The producer that has taken records, if there is one."""

    @abstractmethod
    def _wait_for_producer(self) -> RecordProducer:
        """The producer that takes records, waited for if need be."""

    def _queued(self) -> int:
        producer = self._current()
        return sum(len(batch.values) for batch in self._waiting) + (0 if producer is None else len(producer))


class KafkaWriter(KafkaWriterBase):
    """Writes at once. AT_LEAST_ONCE: a checkpoint waits until all records are acknowledged; NONE: it does not.

    1. A record goes into the producer's queue, and from there to its partition within linger.ms.
    2. At a checkpoint AT_LEAST_ONCE waits for the acknowledgement of every record. So what a completed checkpoint has
       behind it is in Kafka.
    3. A record that is not acknowledged in time (delivery.timeout.ms), or is refused, fails the task, with either
       guarantee. The records since the last checkpoint then come again: those that had been written, twice.
    """

    def __init__(
        self,
        context: WriterContext,
        serializer: KafkaRecordSerializationSchema,
        properties: Mapping[str, Any],
        guarantee: DeliveryGuarantee,
    ):
        self._flushes = guarantee is not DeliveryGuarantee.NONE
        self._own: RecordProducer | None = RecordProducer(properties)
        super().__init__(context, serializer, properties)

    def flush(self, end_of_input: bool) -> None:
        """Waits for acknowledgements; NONE only at the end of the input."""
        if self._flushes or end_of_input:
            self._flush()
        elif self._own is not None:
            self._own.poll()

    def close(self) -> None:
        """Ends the producer; what it has not sent by now is lost."""
        producer, self._own = self._own, None
        if producer is not None:
            producer.close()

    def _producer(self) -> RecordProducer | None:
        return self._own

    _current = _producer

    def _wait_for_producer(self) -> RecordProducer:
        assert self._own is not None
        return self._own
