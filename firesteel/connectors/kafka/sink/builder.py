"""Configures a KafkaSink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.properties import check_client, check_properties
from firesteel.connectors.kafka.sink.producer import producer_properties
from firesteel.connectors.kafka.sink.serialization import KafkaRecordSerializationSchema
from firesteel.connectors.kafka.sink.sink import KafkaSink
from firesteel.connectors.kafka.sink.wire_properties import wire_arguments
from firesteel.spi.sink import DeliveryGuarantee

__all__ = ["KafkaSinkBuilder"]

MAXIMUM_PREFIX_BYTES = 32_000
"""A transactional id has at most 32767 bytes in Kafka's protocol."""


class KafkaSinkBuilder:
    """Builds a KafkaSink. Bootstrap servers and a record serializer are required.

    Example::

        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers("localhost:9092")
            .set_record_serializer(
                KafkaRecordSerializationSchema.builder()
                .set_topic("events")
                .set_value_serialization_schema(SimpleStringSchema())
                .build()
            )
            .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .build()
        )
    """

    def __init__(self) -> None:
        self._properties: dict[str, Any] = {}
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._ignores_lost = False

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Sets the bootstrap servers: ``host:port``, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Sets the delivery guarantee. The default is ``DeliveryGuarantee.NONE``."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise TypeError(f"set_delivery_guarantee takes a DeliveryGuarantee, not {delivery_guarantee!r}.")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Sets the prefix of the sink's transactional ids. Required for EXACTLY_ONCE.

        No other job on the same Kafka cluster may have the same prefix: a job that starts aborts what it finds under
        its prefix. It should stay the same when a job is started again, so that what the last run left is found.
        """
        if not isinstance(transactional_id_prefix, str) or not transactional_id_prefix:
            raise InvalidProgramError(f"A transactional id prefix is text, not {transactional_id_prefix!r}.")
        if len(transactional_id_prefix.encode()) > MAXIMUM_PREFIX_BYTES:
            raise InvalidProgramError(f"A transactional id prefix has at most {MAXIMUM_PREFIX_BYTES} bytes.")
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Sets the serializer that converts records to Kafka records."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(
                f"set_record_serializer takes a KafkaRecordSerializationSchema, not {record_serializer!r}; begin one "
                "with KafkaRecordSerializationSchema.builder()."
            )
        self._serializer = record_serializer
        return self

    def set_property(self, key: str, value: Any) -> KafkaSinkBuilder:
        """Sets a property of the Kafka producer, by Java's name or librdkafka's."""
        self._properties.update(check_properties({key: value}))
        return self

    def set_properties(self, properties: Mapping[str, Any]) -> KafkaSinkBuilder:
        """Sets several properties of the Kafka producer."""
        self._properties.update(check_properties(properties))
        return self

    set_kafka_producer_config = set_properties

    def ignore_failures_after_transaction_timeout(self) -> KafkaSinkBuilder:
        """Restores a job even if its prepared transactions were aborted. Their records are lost, which is logged."""
        self._ignores_lost = True
        return self

    def build(self) -> KafkaSink:
        """Returns the sink. Fails if a setting is missing or invalid; does not connect to a broker."""
        if not self._properties.get("bootstrap.servers", "").strip():
            raise InvalidProgramError("A KafkaSink needs bootstrap servers.", hint="Call set_bootstrap_servers.")
        if self._serializer is None:
            raise InvalidProgramError(
                "A KafkaSink needs a record serializer.",
                hint="Call set_record_serializer, with KafkaRecordSerializationSchema.builder()….build().",
            )
        properties = producer_properties(self._properties, self._guarantee)
        check_client(properties, "producer")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            if self._prefix is None:
                raise InvalidProgramError(
                    "A KafkaSink with DeliveryGuarantee.EXACTLY_ONCE needs a transactional id prefix.",
                    hint="Call set_transactional_id_prefix with a text that no other job on the Kafka cluster uses.",
                )
            wire_arguments(properties)
        return KafkaSink(
            self._serializer,
            properties,
            self._guarantee,
            self._prefix,
            ignores_lost_transactions=self._ignores_lost,
        )
