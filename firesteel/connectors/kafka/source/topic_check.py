"""Verifies that a topic which a consumer does not find has been deleted."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

from firesteel.connectors.kafka.client_errors import UnknownTopicError, client_error, kafka_client

__all__ = ["TopicCheck"]

_MAX_CHECKS = 3
_PAUSE_S = 1.0
_TIMEOUT_S = 2.0


class TopicCheck:
    """Asks for topics in a thread of its own, since the answer may take its time.

    A broker that has just started does not know all topics yet. So a topic counts as gone only when it was missing in
    three answers, each a second after the other.
    """

    def __init__(self, consumer: Any, servers: str) -> None:
        self._consumer = consumer
        self._servers = servers
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self.gone: UnknownTopicError | None = None

    def begin(self, topics: Collection[str]) -> None:
        """Begins a check unless one is under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._check, args=(tuple(topics),), name="firesteel-kafka-topic-check", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Waits for a check under way, which ends early."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(2 * _TIMEOUT_S)

    def _check(self, topics: tuple[str, ...]) -> None:
        missing: Any = None
        for _ in range(_MAX_CHECKS):
            if self._closed.wait(_PAUSE_S):
                return
            missing = self._find_missing(topics)
            if missing is None:
                return
        topic, error = missing
        described = client_error(error, "read on", servers=self._servers, topic=topic)
        if isinstance(described, UnknownTopicError):
            self.gone = described

    def _find_missing(self, topics: tuple[str, ...]) -> tuple[str, Any] | None:
        for topic in topics:
            try:
                error = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error
            except kafka_client().KafkaException:
                return None  # the brokers are away: unknown
            if error is not None and error.name() == "UNKNOWN_TOPIC_OR_PART":
                return topic, error
        return None
