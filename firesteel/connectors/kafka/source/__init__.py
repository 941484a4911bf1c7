"""Records of Kafka topics."""

from firesteel.connectors.kafka.source.source import KafkaSource

__all__ = ["KafkaSource"]
