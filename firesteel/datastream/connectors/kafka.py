"""Kafka as source and sink."""

from firesteel.connectors.bad_records import BadRecord, BadRecords
from firesteel.connectors.kafka.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from firesteel.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.serialization import (
    KafkaHeaderProvider,
    KafkaPartitioner,
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkContext,
    KafkaTopicSelector,
)
from firesteel.connectors.kafka.sink import KafkaSink
from firesteel.connectors.kafka.sink_builder import KafkaSinkBuilder
from firesteel.connectors.kafka.source import KafkaSource
from firesteel.connectors.kafka.source_builder import KafkaSourceBuilder
from firesteel.connectors.kafka.topics import KafkaTopicPartition

__all__ = [
    "BadRecord",
    "BadRecords",
    "ConsumerRecord",
    "KafkaHeaderProvider",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaPartitioner",
    "KafkaProducerRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSinkContext",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
]
