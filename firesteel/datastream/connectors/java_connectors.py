"""Connectors of PyFlink that are Java classes: their names can be imported; using one says what to use instead."""

from __future__ import annotations

from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError

__all__ = ["FlinkKafkaConsumer", "FlinkKafkaProducer"]


class _JavaConnector:
    instead: ClassVar[str]

    def __init__(self, *_arguments: Any, **_options: Any):
        raise InvalidProgramError(
            f"{type(self).__name__} is implemented in Java, which Firesteel does not run.", hint=self.instead
        )


class FlinkKafkaConsumer(_JavaConnector):
    """Replaced by KafkaSource, in Flink as well."""

    instead = "Use KafkaSource.builder() and env.from_source."


class FlinkKafkaProducer(_JavaConnector):
    """Replaced by KafkaSink, in Flink as well."""

    instead = "Use KafkaSink.builder() and stream.sink_to."
