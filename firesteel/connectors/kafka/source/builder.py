"""Configures a Kafka source."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.kafka.source.deserialization import KafkaRecordDeserializationSchema
from firesteel.connectors.kafka.source.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.source import KafkaSource
from firesteel.connectors.kafka.topics import (
    KafkaTopicPartition,
    PartitionSetSubscriber,
    Subscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
)
from firesteel.formats.bad_records import BadRecords
from firesteel.spi.source import Boundedness

__all__ = ["KafkaSourceBuilder"]


class KafkaSourceBuilder:
    """Builds a KafkaSource. Bootstrap servers, topics or partitions, and a deserializer are required.

    >>> from firesteel.common import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("orders", "returns")
    ...     .set_group_id("billing")
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source
    KafkaSource(topics orders, returns at localhost:9092; from earliest)
    """

    def __init__(self) -> None:
        self._subscriber: Subscriber | None = None
        self._starting_offsets = KafkaOffsetsInitializer.earliest()
        self._stopping_offsets: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._deserializer: KafkaRecordDeserializationSchema | None = None
        self._bad_records = BadRecords.fail()
        self._properties: dict[str, Any] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Sets the bootstrap servers: ``host:port``, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Sets the consumer group whose offsets are committed. No consumer joins the group."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Reads all partitions of these topics, which must exist."""
        return self._subscribe(TopicListSubscriber(topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Reads all topics whose whole name matches a regular expression, including topics created later."""
        return self._subscribe(TopicPatternSubscriber(topic_pattern))

    def set_partitions(self, partitions: Collection[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Reads these partitions, which must exist."""
        return self._subscribe(PartitionSetSubscriber(partitions))

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Sets the starting offsets. The default is the earliest. A restored job continues from its checkpoint."""
        self._starting_offsets = _checked(starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stops at these offsets. The source still counts as unbounded, and the job runs as a streaming job.

        It ends when all partitions have been read up to there, unless new ones are looked for
        (``partition.discovery.interval.ms``; by default not).
        """
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._stopping_offsets = _checked(stopping_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Stops at these offsets. The source is bounded: a job with only bounded sources can run as a batch."""
        self._boundedness = Boundedness.BOUNDED
        self._stopping_offsets = _checked(stopping_offsets_initializer)
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """Sets the deserializer of values. Kafka records without a value are skipped."""
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise InvalidProgramError(
                f"set_value_only_deserializer needs a DeserializationSchema, got {deserialization_schema!r}.",
                hint="For example SimpleStringSchema().",
            )
        return self.set_deserializer(KafkaRecordDeserializationSchema.value_only(deserialization_schema))

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Sets the deserializer of Kafka records, with key, headers, timestamp, partition and offset."""
        if not isinstance(record_deserializer, KafkaRecordDeserializationSchema):
            raise InvalidProgramError(
                f"set_deserializer needs a KafkaRecordDeserializationSchema, got {record_deserializer!r}.",
                hint="For values alone: set_value_only_deserializer(SimpleStringSchema()).",
            )
        self._deserializer = record_deserializer
        return self

    def set_bad_records(self, policy: BadRecords) -> KafkaSourceBuilder:
        """Sets the policy for records that cannot be deserialized. By default the job fails."""
        if not isinstance(policy, BadRecords):
            raise InvalidProgramError(f"set_bad_records needs a BadRecords, got {policy!r}.", hint="BadRecords.drop()")
        self._bad_records = policy
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Sets the prefix of the client ids, which brokers use in logs and quotas."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: Any) -> KafkaSourceBuilder:
        """Sets a property of the source or of its consumers."""
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSourceBuilder:
        """Sets several properties."""
        self._properties.update(props)
        return self

    def build(self) -> KafkaSource:
        """Returns the source. Fails if a setting is missing or invalid."""
        if self._subscriber is None:
            raise InvalidProgramError(
                "The Kafka source has no topics or partitions to read.",
                hint="Call set_topics, set_topic_pattern or set_partitions.",
            )
        if self._deserializer is None:
            raise InvalidProgramError(
                "The Kafka source has no deserializer.",
                hint="Call set_value_only_deserializer(SimpleStringSchema()), or set_deserializer.",
            )
        for offsets in (self._starting_offsets, self._stopping_offsets):
            if offsets is not None:
                offsets.validate(self._properties)
        return KafkaSource(
            self._subscriber,
            self._starting_offsets,
            self._stopping_offsets,
            self._boundedness,
            self._deserializer,
            self._properties,
            self._bad_records,
        )

    def _subscribe(self, subscriber: Subscriber) -> KafkaSourceBuilder:
        if self._subscriber is not None:
            raise InvalidProgramError(
                f"The Kafka source is to read {subscriber!r}, but it reads {self._subscriber!r} already.",
                hint="Call one of set_topics, set_topic_pattern and set_partitions, once.",
            )
        self._subscriber = subscriber
        return self


def _checked(offsets: KafkaOffsetsInitializer) -> KafkaOffsetsInitializer:
    if not isinstance(offsets, KafkaOffsetsInitializer):
        raise InvalidProgramError(
            f"Offsets are given by a KafkaOffsetsInitializer, not {offsets!r}.",
            hint="For example KafkaOffsetsInitializer.earliest().",
        )
    return offsets
