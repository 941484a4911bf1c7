"""Kafka partition split: its current and its stopping offset."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.connectors.kafka.topics import KafkaTopicPartition

__all__ = ["DiscoveryFinished", "KafkaPartitionSplit"]


@dataclass(frozen=True)
class KafkaPartitionSplit:
    """A partition with the offset of the next record; a checkpoint keeps it as it is."""

    topic: str
    partition: int
    offset: int
    stopping_offset: int | None = None
    """The first offset that is not read; None to read on without end."""

    @property
    def split_id(self) -> str:
        """The topic and the number of the partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def topic_partition(self) -> KafkaTopicPartition:
        """The partition."""
        return KafkaTopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class DiscoveryFinished:
    """Signals a reader that it has all splits that there were when the enumerator started."""
