"""Properties of a Kafka source: Flink's own, and those of its consumers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.properties import check_client, check_properties, client_properties, to_bool, to_int
from firesteel.connectors.kafka.source.offsets import KafkaOffsetResetStrategy

__all__ = ["SourceProperties"]

DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
COMMIT_ON_CHECKPOINT = "commit.offsets.on.checkpoint"
CLIENT_ID_PREFIX = "client.id.prefix"

_OWN = frozenset(
    {
        DISCOVERY_INTERVAL,
        COMMIT_ON_CHECKPOINT,
        CLIENT_ID_PREFIX,
        "register.consumer.metrics",
        "poll.timeout.ms",
        "scan.topic-integrity-check.enabled",
    }
)
_DISCOVERY_INTERVAL_MS = 5 * 60 * 1000
_API_TIMEOUT_MS = 60_000
_DEFAULTS = {
    # Java's default, and so Flink's; librdkafka's is read_committed
    "isolation.level": "read_uncommitted",
    "enable.auto.commit": "false",
    # A full queue is left alone for so long: with librdkafka's second, reading stands still most of the time.
    "fetch.queue.backoff.ms": "1",
    # A broker answers one fetch after the other. While it waits for records of partitions that have none, those whose
    # queue was full when it was asked get nothing; and it takes so long until the end of a partition is seen.
    "fetch.wait.max.ms": "100",
    # Java's default: a broker that is back is found again within a second
    "reconnect.backoff.max.ms": "1000",
    # Deleted topics are reported when they have been missed for so long; the reader then makes sure.
    "topic.metadata.propagation.max.ms": "1000",
}
_ALWAYS = {
    "enable.partition.eof": "true",
    # No consumer joins the group. But a commit is retried for so long while its coordinator is away, and a consumer
    # that is closed meanwhile waits for it.
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "1000",
}
_RESET = {
    KafkaOffsetResetStrategy.EARLIEST: "earliest",
    KafkaOffsetResetStrategy.LATEST: "latest",
    KafkaOffsetResetStrategy.NONE: "error",
}


class SourceProperties:
    """Checked properties; with ``stops`` the source has stopping offsets."""

    def __init__(self, properties: Mapping[str, Any], reset: KafkaOffsetResetStrategy, *, stops: bool) -> None:
        given = check_properties(properties)
        if not str(given.get("bootstrap.servers", "")).strip():
            raise InvalidProgramError(
                "The Kafka source has no bootstrap servers.", hint="Call set_bootstrap_servers('host:9092')."
            )
        self.servers = str(given["bootstrap.servers"])
        self.group_id: str | None = given.get("group.id")
        commits = to_bool(given, COMMIT_ON_CHECKPOINT, self.group_id is not None)
        if self.group_id is None and (commits or to_bool(given, "enable.auto.commit", False)):
            raise InvalidProgramError(
                "Offsets are committed for a consumer group, and the Kafka source has none.", hint="Call set_group_id."
            )
        self.commits_on_checkpoint = commits
        # a source that stops would never end if it continued to look for partitions
        interval = to_int(given, DISCOVERY_INTERVAL, -1 if stops else _DISCOVERY_INTERVAL_MS)
        self.discovery_interval_ms = interval if interval > 0 else None
        self.api_timeout_ms = to_int(given, "default.api.timeout.ms", _API_TIMEOUT_MS)
        self._client_id = given.get(CLIENT_ID_PREFIX) or self.group_id or f"KafkaSource-{uuid.uuid4().hex[:8]}"
        client = {**_DEFAULTS, **client_properties(given, "consumer", _OWN), **_ALWAYS}
        client["auto.offset.reset"] = _RESET[reset]
        # librdkafka requires a group even if no consumer joins it; one that is not there is never written to
        client.setdefault("group.id", self._client_id)
        if client["enable.auto.commit"] == "false":
            client.setdefault("enable.auto.offset.store", "false")
        check_client(client, "consumer")
        self._client = client

    def for_enumerator(self) -> dict[str, Any]:
        """What the enumerator's client is made with."""
        return {**self._client, "client.id": f"{self._client_id}-enumerator"}

    def for_reader(self, subtask: int) -> dict[str, Any]:
        """What a reader's consumer is made with."""
        return {**self._client, "client.id": f"{self._client_id}-{subtask}"}
