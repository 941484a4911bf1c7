"""Records in topics of a real broker, and sources that read them."""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from firesteel.common import SimpleStringSchema, WatermarkStrategy
from firesteel.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder

__all__ = [
    "add_partitions",
    "builder",
    "commit",
    "committed",
    "delete_records",
    "deny",
    "fresh_topic",
    "produce",
    "produce_transaction",
    "stream_of",
    "values",
]

DEADLINE_S = 60.0


def fresh_topic(broker: Any, partitions: int = 1, prefix: str = "topic", **config: str) -> str:
    """A topic that no other test has."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return str(broker.create_topic(f"{prefix}-{uuid.uuid4().hex[:12]}", partitions, settings))


def values(count: int, first: int = 0) -> list[str]:
    """Texts that can be told from each other."""
    return [f"v{number}" for number in range(first, first + count)]


def produce(
    broker: Any,
    topic: str,
    records: Iterable[Any],
    *,
    partition: int | None = None,
    partitions: int = 1,
    timestamp: int | None = None,
    keys: Sequence[bytes] | None = None,
    headers: list[tuple[str, bytes]] | None = None,
) -> None:
    """Writes records, text or bytes: one partition after the other unless they are to go to one."""
    # a new topic's leader may not know it yet: what is then sent again must not come after what followed it
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1, "max.in.flight": 1})
    failures: list[Any] = []
    for number, record in enumerate(records):
        producer.produce(
            topic,
            value=record.encode() if isinstance(record, str) else record,
            key=None if keys is None else keys[number],
            partition=number % partitions if partition is None else partition,
            headers=headers,
            on_delivery=lambda error, _message: failures.append(error) if error is not None else None,
            **({} if timestamp is None else {"timestamp": timestamp}),
        )
    assert producer.flush(DEADLINE_S) == 0
    assert not failures, failures[0]


def produce_transaction(broker: Any, topic: str, records: Iterable[str], *, commit: bool = True) -> None:
    """Writes records to partition 0 in a transaction of their own."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, value=record.encode(), partition=0)
    producer.flush(DEADLINE_S)
    if commit:
        producer.commit_transaction(DEADLINE_S)
    else:
        producer.abort_transaction(DEADLINE_S)


def add_partitions(broker: Any, topic: str, total: int) -> None:
    """Gives a topic more partitions, and returns once they can be used."""
    admin = broker.admin()
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(DEADLINE_S)
    deadline = time.monotonic() + DEADLINE_S
    while len(admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions) < total:
        assert time.monotonic() < deadline, f"'{topic}' did not get its partitions"
        time.sleep(0.01)


def delete_records(broker: Any, topic: str, before: int) -> None:
    """Deletes the first records of partition 0."""
    admin = broker.admin()
    next(iter(admin.delete_records([TopicPartition(topic, 0, before)]).values())).result(DEADLINE_S)


def deny(broker: Any, *, topic: str, group: str) -> None:
    """Forbids everybody to read a topic, and to use a group."""
    admin = broker.admin()
    denied = [(ResourceType.TOPIC, topic, AclOperation.READ), (ResourceType.GROUP, group, AclOperation.ALL)]
    rules = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermissionType.DENY)
        for kind, name, operation in denied
    ]
    for done in admin.create_acls(rules).values():
        done.result(DEADLINE_S)
    # the client is part of a cycle
    del admin, done
    gc.collect()


def committed(broker: Any, group: str, topic: str, partition: int = 0) -> int | None:
    """What a group has committed; None if nothing."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        offset = consumer.committed([TopicPartition(topic, partition)], timeout=DEADLINE_S)[0].offset
    finally:
        consumer.close()
    return offset if offset >= 0 else None


def commit(broker: Any, group: str, topic: str, offset: int) -> None:
    """Commits an offset of partition 0 for a group."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    deadline = time.monotonic() + DEADLINE_S
    try:
        while True:
            try:
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            except KafkaException:
                # the coordinator of a group that was never heard of may not be known yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return
    finally:
        consumer.close()


def builder(broker: Any, *topics: str) -> KafkaSourceBuilder:
    """A source of the texts of topics."""
    begun = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
    if topics:
        begun.set_topics(*topics)
    return begun.set_value_only_deserializer(SimpleStringSchema())


def stream_of(env: Any, source: Any) -> Any:
    """The stream of a source, without watermarks."""
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").uid("kafka")
