"""The end of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.datastream.streams.operator_settings import OperatorSettings
from firesteel.graph.transformation import SinkTransformation, Transformation
from firesteel.spi.sink import DeliveryGuarantee

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["DataStreamSink"]


class DataStreamSink(OperatorSettings):
    """A sink that was added to a stream."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        transformation: SinkTransformation,
        writer: Transformation | None = None,
    ):
        self._environment = environment
        self._transformation = transformation
        self._writer = writer

    def __repr__(self) -> str:
        return f"<DataStreamSink {self._operator().name!r}>"

    def require_delivery_guarantee(self, guarantee: DeliveryGuarantee) -> DataStreamSink:
        """Rejects the program at submission unless this sink, its job and their sources provide the guarantee."""
        if not isinstance(guarantee, DeliveryGuarantee):
            raise TypeError(f"A DeliveryGuarantee is needed, got {guarantee!r}.")
        self._transformation.spec = replace(self._transformation.spec, required_guarantee=guarantee)
        return self

    def _operator(self) -> Transformation:
        return self._writer or self._transformation
