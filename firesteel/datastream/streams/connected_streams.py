"""ConnectedStreams: two streams, possibly of different types, read by one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.api.generics import Generic, R, S, T1_co, T2_co
from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from firesteel.datastream.streams.call_site import user_call_site
from firesteel.datastream.streams.keyed_stream import KeyedStream
from firesteel.datastream.streams.output_types import to_type_info
from firesteel.graph.transformation import TwoInputTransformation
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.co import CoFlatMapSpec, CoMapSpec, CoProcessSpec

__all__ = ["ConnectedStreams"]


class ConnectedStreams(Generic[T1_co, T2_co]):
    """Two streams read by one function, which can share state between them."""

    def __init__(self, stream1: DataStream[T1_co], stream2: DataStream[T2_co]):
        self.stream1 = stream1
        self.stream2 = stream2

    def __repr__(self) -> str:
        return f"<ConnectedStreams of {self.stream1!r} and {self.stream2!r}>"

    def key_by(
        self,
        key_selector1: Callable[[T1_co], S] | KeySelector[T1_co, S],
        key_selector2: Callable[[T2_co], S] | KeySelector[T2_co, S],
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams[T1_co, T2_co]:
        """Partitions both streams by key, so that equal keys of both meet in the same subtask."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction[T1_co, T2_co, R], output_type: Any = None) -> DataStream[R]:
        """Applies a CoMapFunction; returned values other than None are emitted."""
        if not isinstance(func, CoMapFunction):
            raise TypeError(f"map on connected streams needs a CoMapFunction, got {func!r}.")
        return self._transform("Co-Map", CoMapSpec(func), output_type)

    def flat_map(self, func: CoFlatMapFunction[T1_co, T2_co, R], output_type: Any = None) -> DataStream[R]:
        """Applies a CoFlatMapFunction."""
        if not isinstance(func, CoFlatMapFunction):
            raise TypeError(f"flat_map on connected streams needs a CoFlatMapFunction, got {func!r}.")
        return self._transform("Co-Flat Map", CoFlatMapSpec(func), output_type)

    def process(
        self,
        func: CoProcessFunction[T1_co, T2_co, R] | KeyedCoProcessFunction[Any, T1_co, T2_co, R],
        output_type: Any = None,
    ) -> DataStream[R]:
        """Applies a CoProcessFunction or, if both streams are keyed, a KeyedCoProcessFunction."""
        if not isinstance(func, (CoProcessFunction, KeyedCoProcessFunction)):
            raise TypeError(f"process needs a CoProcessFunction or a KeyedCoProcessFunction, got {func!r}.")
        if isinstance(func, KeyedCoProcessFunction) and not self._is_keyed_stream():
            raise InvalidProgramError(
                f"{type(func).__name__} is a KeyedCoProcessFunction, but the streams are not both keyed.",
                hint="Call key_by(selector1, selector2) on the connected streams first.",
            )
        name = "Keyed Co-Process" if self._is_keyed_stream() else "Co-Process"
        return self._transform(name, CoProcessSpec(func), output_type)

    def _is_keyed_stream(self) -> bool:
        return isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream)

    def _transform(self, name: str, spec: OperatorSpec, output_type: Any) -> DataStream:
        keyed = self._is_keyed_stream()
        environment = self.stream1._environment
        transformation = TwoInputTransformation(
            self.stream1._transformation,
            self.stream2._transformation,
            spec,
            # as in Flink there is keyed state only if both streams are keyed
            key_selectors=(self.stream1._key_selector, self.stream2._key_selector) if keyed else (None, None),
            key_type=self.stream1._key_type if keyed else None,
            name=name,
            output_type=to_type_info(output_type),
            defined_at=user_call_site(),
        )
        environment._add_operator(transformation)
        return DataStream(environment, transformation)
