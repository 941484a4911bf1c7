"""Streams whose records every subtask keeps in broadcast state."""

from __future__ import annotations

from typing import Any

from firesteel.api.generics import Generic, R, T1_co, T2_co, T_co
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.streams.call_site import user_call_site
from firesteel.datastream.streams.keyed_stream import KeyedStream
from firesteel.datastream.streams.output_types import to_type_info
from firesteel.graph.transformation import TwoInputTransformation
from firesteel.runtime.operators.broadcast import BroadcastProcessSpec, KeyedBroadcastProcessSpec
from firesteel.runtime.state.api.operator_state import OperatorStateBackend

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream(Generic[T_co]):
    """A stream that reaches every subtask, to be kept in broadcast state."""

    def __init__(self, input_stream: DataStream[T_co], broadcast_state_descriptors: list[MapStateDescriptor]):
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise TypeError(f"broadcast needs MapStateDescriptors, got {descriptor!r}.")
            # what a task would refuse is refused here, where the program says it
            OperatorStateBackend().get_broadcast_state(descriptor)
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream(Generic[T1_co, T2_co]):
    """A stream, keyed or not, connected with a broadcast stream."""

    def __init__(
        self,
        non_broadcast_stream: DataStream[T1_co],
        broadcast_stream: BroadcastStream[T2_co],
        broadcast_state_descriptors: list[MapStateDescriptor],
    ):
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[T1_co, T2_co, R] | KeyedBroadcastProcessFunction[Any, T1_co, T2_co, R],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Applies a BroadcastProcessFunction or, if the stream is keyed, a KeyedBroadcastProcessFunction."""
        if not isinstance(func, (BroadcastProcessFunction, KeyedBroadcastProcessFunction)):
            raise TypeError(
                f"process needs a BroadcastProcessFunction or a KeyedBroadcastProcessFunction, got {func!r}."
            )
        keyed = self._is_keyed_stream()
        if isinstance(func, BroadcastProcessFunction) and keyed:
            raise TypeError("A BroadcastProcessFunction needs a stream that is not keyed.")
        if isinstance(func, KeyedBroadcastProcessFunction) and not keyed:
            raise TypeError("A KeyedBroadcastProcessFunction needs a keyed stream.")
        spec = KeyedBroadcastProcessSpec if keyed else BroadcastProcessSpec
        stream = self.non_broadcast_stream
        transformation = TwoInputTransformation(
            stream._transformation,
            self.broadcast_stream.input_stream._transformation,
            spec(func, tuple(self.broadcast_state_descriptors)),
            key_selectors=(stream._key_selector if keyed else None, None),
            key_type=stream._key_type if keyed else None,
            name="Keyed-Co-Process-Broadcast" if keyed else "Co-Process-Broadcast",
            output_type=to_type_info(output_type),
            defined_at=user_call_site(),
        )
        stream._environment._add_operator(transformation)
        return DataStream(stream._environment, transformation)

    def _is_keyed_stream(self) -> bool:
        return isinstance(self.non_broadcast_stream, KeyedStream)
