"""Kafka as source and sink."""

from firesteel.connectors.kafka.sink.builder import KafkaSinkBuilder
from firesteel.connectors.kafka.sink.serialization import (
    KafkaHeaderProvider,
    KafkaPartitioner,
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkContext,
    KafkaTopicSelector,
)
from firesteel.connectors.kafka.sink.sink import KafkaSink
from firesteel.connectors.kafka.source.builder import KafkaSourceBuilder
from firesteel.connectors.kafka.source.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from firesteel.connectors.kafka.source.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.source import KafkaSource
from firesteel.connectors.kafka.topics import KafkaTopicPartition
from firesteel.datastream.connectors.java_connectors import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    Semantic,
)
from firesteel.formats.bad_records import BadRecord, BadRecords

__all__ = [
    "BadRecord",
    "BadRecords",
    "ConsumerRecord",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
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
    "Semantic",
]
