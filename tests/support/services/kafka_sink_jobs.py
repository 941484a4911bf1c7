"""What a Kafka sink has written, as a consumer sees it, and jobs that write numbers to a topic."""

from __future__ import annotations

import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from firesteel.common import SimpleStringSchema
from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSinkBuilder
from firesteel.spi.sink import DeliveryGuarantee
from tests.support.jobs.sink_jobs import SinkJob

__all__ = [
    "ExactlyOnceJob",
    "fresh_prefix",
    "is_unblocked",
    "messages",
    "numbers",
    "sink_builder",
]

DEADLINE_S = 60.0


def fresh_prefix() -> str:
    """A transactional id prefix that no other test has."""
    return f"prefix-{uuid.uuid4().hex[:8]}"


def sink_builder(broker: Any, topic: str, guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE) -> KafkaSinkBuilder:
    """A sink of texts."""
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(guarantee)
    )


def messages(broker: Any, topic: str, isolation: str = "read_committed") -> list[Any]:
    """All that a consumer sees of a topic now, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    found: list[Any] = []
    try:
        partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        deadline = time.monotonic() + DEADLINE_S
        for partition in partitions:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                assert time.monotonic() < deadline, "the end of the topic was not reached"
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    break
                else:
                    # the consumer also tells of a broker that is away, and goes on by itself
                    assert not message.error().fatal(), message.error()
    finally:
        consumer.close()
    return found


def numbers(broker: Any, topic: str, isolation: str = "read_committed") -> list[int]:
    """The numbers in a topic, sorted."""
    return sorted(int(message.value()) for message in messages(broker, topic, isolation))


def is_unblocked(broker: Any, topic: str) -> bool:
    """Whether no open transaction keeps a consumer of committed records from the end of the topic."""
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": uuid.uuid4().hex, "isolation.level": isolation}
        )
        try:
            partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
            ends.append([consumer.get_watermark_offsets(TopicPartition(topic, each))[1] for each in partitions])
        finally:
            consumer.close()
    return bool(ends[0] == ends[1])


class ExactlyOnceJob(SinkJob):
    """Writes numbers to a topic, exactly once."""

    def __init__(
        self, broker: Any, topic: str, prefix: str, parallelism: int = 1, restored: Any = None, **settings: Any
    ):
        self.builder = sink_builder(broker, topic, DeliveryGuarantee.EXACTLY_ONCE)
        self.builder.set_transactional_id_prefix(prefix)
        for name, value in settings.items():
            self.builder.set_property(name.replace("_", "."), value)
        super().__init__(self.builder.build, parallelism, uuid.uuid4().hex, restored, to_record=str)

    def vanish(self, parallelism: int | None = None) -> None:
        """Starts anew, without that the writers of the attempt before were closed; what they had sent is there."""
        for harness in self.subtasks:
            producer = harness._chained.operator._writer._current()
            if producer is not None:
                producer.flush()
        count = len(self.subtasks) if parallelism is None else parallelism
        self.left = [*getattr(self, "left", []), *self.subtasks]
        self.attempt += 1
        self.start(count)

    def close(self) -> None:
        """Closes all writers there have been."""
        for harness in [*getattr(self, "left", []), *self.subtasks]:
            harness.close()
