"""Kafka client errors, with their cause and remedy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from firesteel.common.errors import FiresteelError, InvalidProgramError

__all__ = [
    "BrokerUnavailableError",
    "KafkaAuthorizationError",
    "KafkaClientError",
    "OffsetOutOfRangeError",
    "UnknownTopicError",
    "client_error",
    "create_client",
    "find_refusal",
    "is_refusal",
    "is_transient",
    "kafka_client",
]


class _ClientLog:
    """Takes what librdkafka logs, a line for each attempt to connect; what matters of it is raised or logged too."""

    def log(self, level: int, message: str, *arguments: Any) -> None:
        """Logs a line, as a detail."""
        _log.log(logging.INFO if level >= logging.CRITICAL else logging.DEBUG, message, *arguments)


_log = logging.getLogger("firesteel.connectors.kafka.client")
_client_log = _ClientLog()


class KafkaClientError(FiresteelError):
    """A Kafka cluster refused something, or could not be asked; ``code`` is librdkafka's or the protocol's name."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        topic: str | None = None,
        partition: int | None = None,
        hint: str | None = None,
    ):
        super().__init__(message, hint=hint)
        self.code = code
        self.topic = topic
        self.partition = partition


class BrokerUnavailableError(KafkaClientError):
    """No broker answered within the deadline."""


class UnknownTopicError(KafkaClientError):
    """A topic or partition that is not there, or no longer."""


class KafkaAuthorizationError(KafkaClientError):
    """The cluster does not let this client in, or not do this."""


class OffsetOutOfRangeError(KafkaClientError):
    """A position that the partition does not have, where none may be chosen instead of it."""


_UNAVAILABLE = (
    "_TRANSPORT",
    "_RESOLVE",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_WAIT_COORD",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
)
_PASSING = (
    "NOT_LEADER_FOR_PARTITION",
    "REPLICA_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "_FAIL",
    "_WAIT_CACHE",
    "_IN_PROGRESS",
    "_RETRY",
    "_MAX_POLL_EXCEEDED",
)
_UNKNOWN = ("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION", "UNKNOWN_TOPIC_ID")
_OUT_OF_RANGE = ("OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET", "_NO_OFFSET")
_PASSWORD = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM")
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
_REFUSAL_TIMEOUT_S = 2.0
_CUT_OFF = "Broker transport failure"
_OPENSSL = "SSL routines"
"""Parts of OpenSSL's messages about certificates and protocols, but not about lost connections."""
_AUTHORIZATION = {
    "TOPIC_AUTHORIZATION_FAILED": "Grant the principal READ and DESCRIBE (a sink: WRITE and DESCRIBE) on the topic.",
    "GROUP_AUTHORIZATION_FAILED": "Grant the principal READ on the group, or set another group.id.",
    "CLUSTER_AUTHORIZATION_FAILED": "Grant the principal what it does on the cluster: see the brokers' authorizer log.",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Grant the principal WRITE on the transactional ids with this prefix.",
}


def kafka_client() -> Any:
    """The confluent_kafka module; fails with what to install if it is not there."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise InvalidProgramError(
            f"The Kafka connector needs the confluent-kafka package, which cannot be imported: {error}.",
            hint="pip install 'firesteel[kafka]', on the driver and on the executors.",
        ) from error
    return confluent_kafka


def create_client(kind: Literal["Consumer", "Producer"], properties: Mapping[str, Any]) -> Any:
    """A confluent_kafka client; fails with what is wrong with the properties."""
    client = kafka_client()
    try:
        return getattr(client, kind)(dict(properties), logger=_client_log)
    except (client.KafkaException, ValueError, TypeError) as error:
        files = {name: properties[name] for name in _FILES if name in properties}
        missing = [f"{name} ({path})" for name, path in files.items() if not Path(path).exists()]
        raise InvalidProgramError(
            f"The Kafka client does not accept its properties: {_reason(error)}."
            + (f" On this machine there is no {', no '.join(missing)}." if missing else ""),
            hint="Names and values are librdkafka's, see its CONFIGURATION.md, and Java's where they mean the same.",
        ) from error


def is_transient(error: Any) -> bool:
    """Whether the client recovers by itself when the cluster does: the error of a broker that is away."""
    kafka_error = _kafka_error(error)
    if kafka_error.fatal():
        return False
    name = kafka_error.name()
    return kafka_error.retriable() or name in _UNAVAILABLE or name in _PASSING or _was_cut_off(kafka_error)


def is_refusal(error: Any, *, is_first_contact: bool) -> bool:
    """Whether the cluster does not let this client in, which waiting does not change.

    librdkafka tries again all the same. Certificates count at the first contact only: what has worked may work again.
    """
    kafka_error = _kafka_error(error)
    if _concerns_certificates(kafka_error):
        return is_first_contact
    return kafka_error.name() in _PASSWORD and not _was_cut_off(kafka_error)


def find_refusal(properties: Mapping[str, Any], doing: str) -> KafkaClientError | None:
    """Why the cluster does not let a client with a producer's properties in; None if it does, or cannot be reached."""
    refusals: list[Any] = []

    def hear(error: Any) -> None:
        if is_refusal(error, is_first_contact=True):
            refusals.append(error)

    producer = create_client("Producer", {**properties, "error_cb": hear})
    with suppress(kafka_client().KafkaException):
        producer.list_topics(timeout=_REFUSAL_TIMEOUT_S)
    producer.poll(0)
    return client_error(refusals[0], doing, servers=properties["bootstrap.servers"]) if refusals else None


def client_error(
    error: Any,
    doing: str,
    *,
    servers: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> KafkaClientError:
    """What to raise for a confluent_kafka KafkaError or KafkaException; ``doing`` completes "cannot …"."""
    kafka_error = _kafka_error(error)
    name, reason = kafka_error.name(), kafka_error.str()
    at = f" at {servers}" if servers else ""
    place = "" if topic is None else f" '{topic}'" if partition is None else f" '{topic}', partition {partition}"
    where: dict[str, Any] = {"code": name, "topic": topic, "partition": partition}
    if name in _UNKNOWN:
        raise_as: type[KafkaClientError] = UnknownTopicError
        hint = (
            "Create the topic, or check its name and the bootstrap servers; it may have been deleted while the job ran."
        )
        message = f"Cannot {doing}: the topic{place} does not exist{at}"
    elif name in _AUTHORIZATION:
        raise_as = KafkaAuthorizationError
        hint = _AUTHORIZATION[name]
        message = f"Cannot {doing}{at}: no permission{f' for{place}' if place else ''}"
    elif name in _PASSWORD or name == "_SSL" or _concerns_certificates(kafka_error):
        raise_as = KafkaAuthorizationError
        hint = "Check security.protocol, sasl.mechanism, sasl.username, sasl.password and the ssl.* properties."
        message = f"Cannot {doing}{at}: the cluster does not accept this client"
    elif name in _OUT_OF_RANGE:
        raise_as = OffsetOutOfRangeError
        hint = (
            "The records there were deleted, or the topic was created again. Start from other offsets, or set a "
            "reset strategy of the KafkaOffsetsInitializer: KafkaOffsetResetStrategy.EARLIEST or LATEST."
        )
        message = f"Cannot {doing}: the topic{place} has no such offset"
    elif name in _UNAVAILABLE:
        raise_as = BrokerUnavailableError
        hint = (
            "Check that the brokers run, that bootstrap.servers (and their advertised.listeners) can be reached, and "
            "that security.protocol is that of the listener: a broker ends connections of another one without a word."
        )
        message = f"Cannot {doing}: no Kafka broker responds{at}"
    else:
        raise_as = KafkaClientError
        hint = None
        message = f"Cannot {doing}{at}{f', topic{place}' if place else ''}"
    return raise_as(f"{message} ({name}: {reason}).", hint=hint, **where)


def _concerns_certificates(kafka_error: Any) -> bool:
    """Whether one side does not trust the other; a broker reports that only when the connection is made (TLS 1.3)."""
    return kafka_error.name() in ("_SSL", "_TRANSPORT") and _OPENSSL in kafka_error.str()


def _was_cut_off(kafka_error: Any) -> bool:
    """Whether the connection was lost while the client was being let in."""
    return kafka_error.name() == "_AUTHENTICATION" and _CUT_OFF in kafka_error.str()


def _kafka_error(error: Any) -> Any:
    """The KafkaError itself, also of a KafkaException."""
    return error.args[0] if isinstance(error, BaseException) and error.args else error


def _reason(error: BaseException) -> str:
    kafka_error = _kafka_error(error)
    return str(kafka_error.str() if hasattr(kafka_error, "str") else error).rstrip(".")
