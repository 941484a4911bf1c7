"""Connectors of PyFlink that are Java classes: their names can be imported; using one says what to use instead."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError

__all__ = [
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "Semantic",
]


class _JavaConnector:
    instead: ClassVar[str]

    def __init__(self, *_arguments: Any, **_options: Any):
        raise InvalidProgramError(
            f"{type(self).__name__} is implemented in Java, which Firesteel does not run.", hint=self.instead
        )


class FlinkKafkaConsumerBase(_JavaConnector):
    """Replaced by KafkaSource, in Flink as well."""

    instead = "Use KafkaSource.builder() and env.from_source."


class FlinkKafkaConsumer(FlinkKafkaConsumerBase):
    """Replaced by KafkaSource, in Flink as well."""


class FlinkKafkaProducerBase(_JavaConnector):
    """Replaced by KafkaSink, in Flink as well."""

    instead = "Use KafkaSink.builder() and stream.sink_to."


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """Replaced by KafkaSink, in Flink as well."""


class Semantic(Enum):
    """Guarantees of FlinkKafkaProducer. KafkaSink has DeliveryGuarantee."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
