"""Records written to Kafka topics, exactly once by transactions."""

from firesteel.connectors.kafka.sink.sink import KafkaSink

__all__ = ["KafkaSink"]
