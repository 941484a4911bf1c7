"""Kafka metadata client: queries topics and offsets with a deadline, in the enumerator's I/O thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.connectors.kafka.client_errors import (
    BrokerUnavailableError,
    KafkaClientError,
    client_error,
    create_client,
    is_refusal,
    is_transient,
    kafka_client,
)
from firesteel.connectors.kafka.topics import KafkaTopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ClusterMetadata"]

T = TypeVar("T")

_ATTEMPT_TIMEOUT_S = 2.0
"""How long one request blocks before it is checked whether the result is still needed."""
_RETRY_INTERVAL_S = 0.1
_UNKNOWN_RETRIES = 5
"""How often a topic is asked for that is not there: a broker that has just started may not know it yet."""


class ClusterMetadata:
    """A client that lives for a few questions; used in one thread.

    Errors that pass by themselves are waited for until the deadline, in all ``timeout_ms`` for one question. When
    ``abandoned`` is set, no further attempt is made.
    """

    def __init__(
        self, properties: Mapping[str, Any], group_id: str | None, timeout_ms: int, abandoned: threading.Event
    ) -> None:
        self.group_id = group_id
        self._servers = str(properties["bootstrap.servers"])
        self._timeout_s = timeout_ms / 1000
        self._abandoned = abandoned
        self._refusal: Any = None
        self._has_answered = False
        self._asks_group = False
        self._consumer = create_client("Consumer", {**properties, "error_cb": self._on_error})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._consumer.close()

    def all_topics(self) -> dict[str, int]:
        """All topics this client may see, with how many partitions each has."""
        listed = self._ask(lambda timeout: self._consumer.list_topics(timeout=timeout), "list the topics")
        return {name: len(topic.partitions) for name, topic in listed.topics.items() if topic.error is None}

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of the topics has; fails if one does not exist."""
        return {topic: self._partition_count(topic) for topic in topics}

    def committed_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """What the group has committed; a partition of which nothing was is left out."""
        wanted = [_topic_partition(partition) for partition in partitions]
        self._asks_group = True
        doing = f"find what the group '{self.group_id}' has committed"
        return self._offsets(lambda timeout: self._consumer.committed(wanted, timeout=timeout), doing)

    def beginning_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The first offset of each partition."""
        return self._list_offsets(dict.fromkeys(partitions, kafka_client().OFFSET_BEGINNING))

    def end_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The offset after the last record of each partition; with read_committed, of those that are committed."""
        return self._list_offsets(dict.fromkeys(partitions, kafka_client().OFFSET_END))

    def offsets_for_times(self, timestamps: Mapping[KafkaTopicPartition, int]) -> dict[KafkaTopicPartition, int]:
        """The first offset whose record is not older; a partition without one is left out."""
        return self._list_offsets(timestamps)

    def _list_offsets(self, timestamps: Mapping[KafkaTopicPartition, int]) -> dict[KafkaTopicPartition, int]:
        # the protocol's request for offsets by time takes -2 for the first and -1 for the end
        wanted = [_topic_partition(partition, timestamp) for partition, timestamp in timestamps.items()]
        return self._offsets(
            lambda timeout: self._consumer.offsets_for_times(wanted, timeout=timeout), "look up offsets"
        )

    def _offsets(self, call: Callable[[float], Any], doing: str) -> dict[KafkaTopicPartition, int]:
        def ask(timeout: float) -> dict[KafkaTopicPartition, int]:
            found = call(timeout)
            for answer in found:
                if answer.error is not None:
                    raise kafka_client().KafkaException(answer.error)
            return {
                KafkaTopicPartition(answer.topic, answer.partition): answer.offset
                for answer in found
                if answer.offset >= 0
            }

        return self._ask(ask, doing)

    def _partition_count(self, topic: str) -> int:
        tries = 0

        def ask(timeout: float) -> int:
            nonlocal tries
            description = self._consumer.list_topics(topic, timeout=timeout).topics[topic]
            if description.error is None and description.partitions:
                return len(description.partitions)
            error = description.error or kafka_client().KafkaError(kafka_client().KafkaError.UNKNOWN_TOPIC_OR_PART)
            tries += 1
            if error.name() != "UNKNOWN_TOPIC_OR_PART" or tries > _UNKNOWN_RETRIES:
                raise _Certain(client_error(error, "find partitions", servers=self._servers, topic=topic))
            raise kafka_client().KafkaException(error)

        return self._ask(ask, f"find the partitions of the topic '{topic}'")

    def _ask(self, call: Callable[[float], T], doing: str) -> T:
        deadline = time.monotonic() + self._timeout_s
        while True:
            remaining = deadline - time.monotonic()
            try:
                answer = call(max(min(remaining, _ATTEMPT_TIMEOUT_S), 0.01))
            except _Certain as certain:
                raise certain.error from None
            except kafka_client().KafkaException as error:
                self._hear()
                refused = self._refusal is not None
                if refused or remaining <= 0 or self._abandoned.is_set() or not _may_pass(error):
                    raise self._describe(self._refusal if refused else error, doing) from error
            else:
                self._has_answered = True
                return answer
            self._abandoned.wait(_RETRY_INTERVAL_S)

    def _describe(self, error: Any, doing: str) -> KafkaClientError:
        described = client_error(error, doing, servers=self._servers)
        if isinstance(described, BrokerUnavailableError):
            described.message += f" Waited {self._timeout_s:g} s (default.api.timeout.ms)."
        return described

    def _hear(self) -> None:
        """Handles messages of the brokers that are not answers to a request."""
        message = self._consumer.poll(0)
        if message is not None and message.error() is not None:
            self._on_error(message.error())

    def _on_error(self, error: Any) -> None:
        concerns_group = error.name() == "GROUP_AUTHORIZATION_FAILED"
        is_refused = not is_transient(error) or is_refusal(error, is_first_contact=not self._has_answered)
        if is_refused and (self._asks_group or not concerns_group):
            self._refusal = error


class _Certain(Exception):
    """An answer that will not change by asking again."""

    def __init__(self, error: KafkaClientError):
        super().__init__()
        self.error = error


def _may_pass(error: Any) -> bool:
    # a partition that was listed a moment ago may not be known to the broker that is asked for its offsets
    return is_transient(error) or error.args[0].name() in ("_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART")


def _topic_partition(partition: KafkaTopicPartition, offset: int | None = None) -> Any:
    client = kafka_client()
    return client.TopicPartition(
        partition.topic, partition.partition, client.OFFSET_INVALID if offset is None else offset
    )
