"""Producer properties of a KafkaSink, and the classification of producer errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.client_errors import KafkaClientError, client_error, create_client
from firesteel.connectors.kafka.properties import client_properties, to_bool, to_int
from firesteel.spi.sink import DeliveryGuarantee

__all__ = ["KafkaWriteError", "create_producer", "producer_properties", "write_error"]

DEFAULT_LINGER_MS = 5
DEFAULT_DELIVERY_TIMEOUT_MS = 120_000
"""As the Java producer; librdkafka's own is 5 minutes."""
DEFAULT_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""The maximum that brokers allow by default (transaction.max.timeout.ms); they refuse Flink's hour."""
DEFAULT_QUEUE_MESSAGES = 200_000

_ACKS = ("acks", "request.required.acks")
_IN_FLIGHT = ("max.in.flight.requests.per.connection", "max.in.flight")
_RETRIES = ("retries", "message.send.max.retries")
_LINGER = ("linger.ms", "queue.buffering.max.ms")
_DELIVERY_TIMEOUT = ("delivery.timeout.ms", "message.timeout.ms")
_REFUSED = {
    "transactional.id": "The sink names its transactions itself: use set_transactional_id_prefix.",
    "on_delivery": "The sink handles delivery reports itself, and fails the task if a delivery fails.",
    "dr_cb": "The sink handles delivery reports itself, and fails the task if a delivery fails.",
    "dr_msg_cb": "The sink handles delivery reports itself, and fails the task if a delivery fails.",
    "delivery.report.only.error": "The sink handles delivery reports itself, and fails the task if a delivery fails.",
}


class KafkaWriteError(KafkaClientError):
    """Records that Kafka has not accepted: the job restarts from its last checkpoint, if it has a restart strategy."""


def producer_properties(properties: Mapping[str, Any], guarantee: DeliveryGuarantee) -> dict[str, Any]:
    """What a producer is made with: the user's properties, and defaults for the rest."""
    for name, hint in _REFUSED.items():
        if name in properties:
            raise InvalidProgramError(f"The Kafka property '{name}' cannot be set for a KafkaSink.", hint=hint)
    wanted = client_properties(properties, "producer")
    acks = _first(wanted, _ACKS, "all")
    if guarantee is not DeliveryGuarantee.NONE and acks == "0":
        raise InvalidProgramError(
            f"A KafkaSink with acks=0 cannot provide DeliveryGuarantee.{guarantee.name}: it does not receive "
            "acknowledgements.",
            hint="Keep the default of 'acks' (all), or use DeliveryGuarantee.NONE.",
        )
    defaults: dict[str, Any] = {
        "linger.ms": DEFAULT_LINGER_MS,
        # a key goes to the partition to which Java's producers (and Flink) send it
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": DEFAULT_QUEUE_MESSAGES,
        # as Java's producer: a broker that is back is found again within a second
        "reconnect.backoff.max.ms": 1000,
    }
    if any(name in wanted for name in _LINGER):
        del defaults["linger.ms"]
    delivery_timeout_ms = DEFAULT_DELIVERY_TIMEOUT_MS
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        if acks not in ("all", "-1"):
            raise InvalidProgramError(
                f"A KafkaSink with acks={acks} cannot provide DeliveryGuarantee.EXACTLY_ONCE.",
                hint="Keep the default of 'acks': all.",
            )
        if not to_bool(wanted, "enable.idempotence", True):
            raise InvalidProgramError(
                "A KafkaSink with enable.idempotence=false cannot provide DeliveryGuarantee.EXACTLY_ONCE.",
                hint="Keep the default of 'enable.idempotence': true.",
            )
        transaction_timeout_ms = to_int(wanted, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
        if not 1000 <= transaction_timeout_ms <= 2**31 - 1:
            raise InvalidProgramError(
                f"The Kafka property 'transaction.timeout.ms' is {transaction_timeout_ms}: it must be at least 1000.",
                hint="It must be longer than the time between checkpoints and a restart of the job together.",
            )
        defaults["transaction.timeout.ms"] = transaction_timeout_ms
        delivery_timeout_ms = min(delivery_timeout_ms, transaction_timeout_ms)
    else:
        wanted.pop("transaction.timeout.ms", None)
        if (
            acks in ("all", "-1")
            and _first(wanted, _RETRIES, "1") != "0"
            and to_int({"in.flight": _first(wanted, _IN_FLIGHT, "5")}, "in.flight", 5) <= 5
        ):
            # as Java's producer: a retry neither repeats nor reorders records
            defaults["enable.idempotence"] = "true"
    if not any(name in wanted for name in _DELIVERY_TIMEOUT):
        defaults["delivery.timeout.ms"] = delivery_timeout_ms
    return {**defaults, **wanted}


def delivery_timeout_s(properties: Mapping[str, Any]) -> float:
    """How long a record may take to be acknowledged, by a producer's properties."""
    value = _first(properties, _DELIVERY_TIMEOUT, str(DEFAULT_DELIVERY_TIMEOUT_MS))
    return int(value) / 1000 or float("inf")


def create_producer(properties: Mapping[str, Any], on_failure: Any, on_error: Any) -> Any:
    """A confluent_kafka Producer, which calls two functions in ``poll``.

    ``on_failure`` for each record that was not delivered, ``on_error`` with what goes wrong beside that.
    """
    own = {"on_delivery": on_failure, "delivery.report.only.error": True, "error_cb": on_error}
    return create_client("Producer", {**properties, **own})


def write_error(error: Any, topic: str | None, properties: Mapping[str, Any], size: int | None = None) -> Exception:
    """What to raise for records that Kafka has not taken."""
    kafka_error = error.args[0] if isinstance(error, BaseException) and error.args else error
    servers, name = properties["bootstrap.servers"], kafka_error.name()
    if name == "MSG_SIZE_TOO_LARGE":
        of = "" if size is None else f" of {size} bytes"
        return KafkaWriteError(
            f"A record{of} is too large for the topic '{topic}' at {servers} ({name}: {kafka_error.str()}).",
            code=name,
            topic=topic,
            hint="Raise the producer's message.max.bytes (max.request.size) and the topic's max.message.bytes, "
            "or use compression.type.",
        )
    if name in ("_MSG_TIMED_OUT", "_TIMED_OUT"):
        return KafkaWriteError(
            f"The topic '{topic}' at {servers} has not acknowledged records for delivery.timeout.ms "
            f"({delivery_timeout_s(properties) * 1000:g} ms) ({name}: {kafka_error.str()}).",
            code=name,
            topic=topic,
            hint="Check that the partition's leader and enough replicas (min.insync.replicas) are up. If no record "
            "was ever written, check that security.protocol is that of the listener.",
        )
    if name in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
        return KafkaWriteError(
            f"The transaction is aborted, and its producer may no longer write at {servers} "
            f"({name}: {kafka_error.str()}).",
            code=name,
            topic=topic,
            hint="It was open for longer than transaction.timeout.ms "
            f"({properties.get('transaction.timeout.ms')} ms); or a new attempt of the job, or another job with the "
            "same transactional id prefix, has begun.",
        )
    return client_error(kafka_error, "write records", servers=servers, topic=topic)


def _first(properties: Mapping[str, Any], names: tuple[str, ...], default: str) -> str:
    return next((str(properties[name]) for name in names if name in properties), default)
