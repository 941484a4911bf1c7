"""The end of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.datastream.operator_settings import OperatorSettings
from firesteel.graph.transformation import SinkTransformation, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["DataStreamSink"]


class DataStreamSink(OperatorSettings):
    """A sink that was added to a stream."""

    def __init__(self, environment: StreamExecutionEnvironment, transformation: SinkTransformation):
        self._environment = environment
        self._transformation = transformation

    def _operator(self) -> Transformation:
        return self._transformation
