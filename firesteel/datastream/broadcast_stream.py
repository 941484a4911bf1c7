"""Streams whose records every subtask keeps in broadcast state."""

from __future__ import annotations

from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.keyed_stream import KeyedStream
from firesteel.datastream.state import MapStateDescriptor

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream:
    """A stream that reaches every subtask, to be kept in broadcast state."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]):
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise TypeError(f"broadcast needs MapStateDescriptors, got {descriptor!r}.")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream connected with a broadcast stream."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ):
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: Any = None,
    ) -> DataStream:
        """Not available yet: broadcast state is still to come."""
        keyed = isinstance(self.non_broadcast_stream, KeyedStream)
        if isinstance(func, BroadcastProcessFunction) and keyed:
            raise TypeError("A BroadcastProcessFunction needs a stream that is not keyed.")
        if isinstance(func, KeyedBroadcastProcessFunction) and not keyed:
            raise TypeError("A KeyedBroadcastProcessFunction needs a keyed stream.")
        raise InvalidProgramError(
            "Broadcast state is not supported yet.",
            hint="broadcast() without descriptors also sends records to every subtask.",
        )
