"""Classification of consumer errors: fatal for the job, or retried."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from firesteel.connectors.kafka.client_errors import (
    KafkaAuthorizationError,
    KafkaClientError,
    UnknownTopicError,
    client_error,
    is_transient,
)
from firesteel.connectors.kafka.source.topic_check import TopicCheck

__all__ = ["ConsumerErrors"]

_log = logging.getLogger(__name__)

_LOG_INTERVAL_S = 30.0
_NO_GROUP = "GROUP_AUTHORIZATION_FAILED"


class ConsumerErrors:
    """Takes all errors of a reader's consumer; ``raise_if_any`` raises what the reader cannot go on with.

    What passes by itself, brokers that are away among it, is only logged. A topic that is missed is looked for first.
    """

    def __init__(
        self,
        servers: str,
        topics: Callable[[], Collection[str]],
        *,
        allows_missing_topics: bool,
        uses_group: bool,
    ) -> None:
        self._servers = servers
        self._topics = topics
        self._looks_for_topics = not allows_missing_topics
        self._uses_group = uses_group
        self._check: TopicCheck | None = None
        self._failure: KafkaClientError | None = None
        self._logged: dict[str, float] = {}

    def use(self, consumer: Any) -> None:
        """Sets the consumer that is asked for topics."""
        if self._looks_for_topics:
            self._check = TopicCheck(consumer, self._servers)

    def handle(self, error: Any, topic: str | None = None, partition: int | None = None) -> None:
        """An error, of a message or of the client as a whole; called during a poll."""
        described = client_error(error, "read", servers=self._servers, topic=topic, partition=partition)
        if isinstance(described, UnknownTopicError):
            if self._check is not None:
                self._check.begin(self._topics())
        elif not _is_bearable(error, described):
            self._failure = self._failure or described
            return
        if error.name() == _NO_GROUP and not self._uses_group:
            # librdkafka looks for a coordinator although nothing is committed
            return
        if time.monotonic() - self._logged.get(error.name(), -_LOG_INTERVAL_S) >= _LOG_INTERVAL_S:
            self._logged[error.name()] = time.monotonic()
            hint = f" {described.hint}" if isinstance(described, KafkaAuthorizationError) else ""
            said = f"{error.str()} ({error.name()}).{hint}"
            _log.warning("The Kafka consumer at %s continues after: %s", self._servers, said)

    def raise_if_any(self) -> None:
        """Raises the first error that ends the job."""
        failure = self._failure or (None if self._check is None else self._check.gone)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Ends a search under way."""
        if self._check is not None:
            self._check.close()


def _is_bearable(error: Any, described: KafkaClientError) -> bool:
    if is_transient(error):
        return True
    # commits to the group are informational; and a connection that worked at the start may work again
    return isinstance(described, KafkaAuthorizationError) and error.name() in (_NO_GROUP, "_SSL")
