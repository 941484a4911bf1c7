"""Topic subscriptions of a Kafka source, and the assignment of partitions to subtasks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Protocol

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.client_errors import UnknownTopicError

__all__ = [
    "KafkaTopicPartition",
    "PartitionSetSubscriber",
    "Subscriber",
    "TopicListSubscriber",
    "TopicMetadata",
    "TopicPatternSubscriber",
    "split_owner",
]


class KafkaTopicPartition:
    """A partition of a topic, by name and number."""

    __slots__ = ("partition", "topic")

    def __init__(self, topic: str, partition: int):
        if not isinstance(topic, str) or not topic:
            raise InvalidProgramError(f"The topic of a KafkaTopicPartition is a name, not {topic!r}.")
        if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
            raise InvalidProgramError(
                f"The partition of a KafkaTopicPartition is a number from 0 on, not {partition!r}."
            )
        self.topic = topic
        self.partition = partition

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KafkaTopicPartition) and other.partition == self.partition and other.topic == self.topic
        )

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return f"KafkaTopicPartition({self.topic!r}, {self.partition})"

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicMetadata(Protocol):
    """What a subscriber can ask of the cluster; a call may take its time, up to a deadline."""

    def all_topics(self) -> dict[str, int]:
        """All topics this client may see, with how many partitions each has."""
        ...

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of the topics has; fails if one does not exist."""
        ...


class Subscriber(ABC):
    """Determines the partitions to read now."""

    allows_missing_topics = False
    """Whether a topic that is deleted is simply no longer read."""

    @abstractmethod
    def partitions(self, metadata: TopicMetadata) -> set[KafkaTopicPartition]:
        """The partitions to read, of those the cluster has."""


class TopicListSubscriber(Subscriber):
    """All partitions of some topics, each of which must exist."""

    def __init__(self, topics: Collection[str]):
        self.topics = _checked_topics(topics)

    def __repr__(self) -> str:
        return f"topics {', '.join(self.topics)}"

    def partitions(self, metadata: TopicMetadata) -> set[KafkaTopicPartition]:
        """All partitions the topics have now."""
        counts = metadata.partition_counts(self.topics)
        return {KafkaTopicPartition(topic, partition) for topic in self.topics for partition in range(counts[topic])}


class TopicPatternSubscriber(Subscriber):
    """All partitions of all topics whose whole name matches a regular expression; there may be none yet."""

    allows_missing_topics = True

    def __init__(self, pattern: str):
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise InvalidProgramError(
                f"The topic pattern {pattern!r} is not a regular expression: {error}.",
                hint="Python's syntax counts, which is that of Java for most patterns.",
            ) from None
        self.pattern = pattern

    def __repr__(self) -> str:
        return f"topics matching '{self.pattern}'"

    def partitions(self, metadata: TopicMetadata) -> set[KafkaTopicPartition]:
        """All partitions of the topics that match now."""
        matches = re.compile(self.pattern).fullmatch
        return {
            KafkaTopicPartition(topic, partition)
            for topic, count in metadata.all_topics().items()
            if matches(topic)
            for partition in range(count)
        }


class PartitionSetSubscriber(Subscriber):
    """Certain partitions, each of which must exist."""

    def __init__(self, partitions: Collection[KafkaTopicPartition]):
        wrong = [partition for partition in partitions if not isinstance(partition, KafkaTopicPartition)]
        if wrong or not partitions:
            raise InvalidProgramError(
                f"set_partitions needs KafkaTopicPartitions, got {wrong[0]!r}."
                if wrong
                else "There are no partitions.",
                hint="For example set_partitions({KafkaTopicPartition('orders', 0)}).",
            )
        self.wanted = tuple(sorted(partitions, key=lambda partition: (partition.topic, partition.partition)))

    def __repr__(self) -> str:
        return f"partitions {', '.join(map(str, self.wanted))}"

    def partitions(self, metadata: TopicMetadata) -> set[KafkaTopicPartition]:
        """Those partitions."""
        counts = metadata.partition_counts(sorted({partition.topic for partition in self.wanted}))
        for wanted in self.wanted:
            if wanted.partition >= counts[wanted.topic]:
                raise UnknownTopicError(
                    f"Partition {wanted.partition} of the topic '{wanted.topic}' does not exist: "
                    f"it has {counts[wanted.topic]}, from 0 on.",
                    code="_UNKNOWN_PARTITION",
                    topic=wanted.topic,
                    partition=wanted.partition,
                    hint="Check set_partitions, or add partitions to the topic.",
                )
        return set(self.wanted)


def split_owner(topic: str, partition: int, readers: int) -> int:
    """The subtask that reads a partition: Flink's, so that the partitions of a topic are spread evenly."""
    return ((_java_hash(topic) * 31 & 0x7FFFFFFF) % readers + partition) % readers


def _java_hash(text: str) -> int:
    """What Java's String.hashCode gives; Python's differs from process to process."""
    units = text.encode("utf-16-be")
    result = 0
    for i in range(0, len(units), 2):
        result = (result * 31 + (units[i] << 8) + units[i + 1]) & 0xFFFFFFFF
    return result


def _checked_topics(topics: Collection[str]) -> tuple[str, ...]:
    for topic in topics:
        if not isinstance(topic, str) or not topic:
            raise InvalidProgramError(f"The name of a topic must be a str, not {topic!r}.", hint="set_topics('a', 'b')")
    if not topics:
        raise InvalidProgramError("set_topics needs at least one topic.")
    return tuple(dict.fromkeys(topics))
