"""What each operator is to do, as frozen picklable values: made by the API, carried by the graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.connector import DeliveryGuarantee, Sink, Source
from firesteel.common.output_tag import OutputTag
from firesteel.common.state import MapStateDescriptor

__all__ = [
    "BroadcastProcessSpec",
    "CoFlatMapSpec",
    "CoMapSpec",
    "CoProcessSpec",
    "FilterSpec",
    "FlatMapSpec",
    "KeyedBroadcastProcessSpec",
    "MapSpec",
    "OperatorSpec",
    "ProcessSpec",
    "ReduceSpec",
    "SinkSpec",
    "SourceSpec",
    "TimestampsAndWatermarksSpec",
    "WindowSpec",
]


@dataclass(frozen=True)
class OperatorSpec:
    """Root of all operator specs. A ``function`` is a bare callable or a Function object."""


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """Reads a source and assigns timestamps and watermarks per split."""

    source: Source[Any]
    watermark_strategy: Any


@dataclass(frozen=True)
class MapSpec(OperatorSpec):
    """One result per record."""

    function: Any


@dataclass(frozen=True)
class FilterSpec(OperatorSpec):
    """Keeps records for which the function is true."""

    function: Any


@dataclass(frozen=True)
class FlatMapSpec(OperatorSpec):
    """Any number of results per record."""

    function: Any


@dataclass(frozen=True)
class ProcessSpec(OperatorSpec):
    """A ProcessFunction, or on a keyed stream a KeyedProcessFunction."""

    function: Any


@dataclass(frozen=True)
class ReduceSpec(OperatorSpec):
    """A running reduce on a keyed stream: a callable of two values, or a ReduceFunction."""

    function: Any


@dataclass(frozen=True)
class CoMapSpec(OperatorSpec):
    """A CoMapFunction on two connected streams."""

    function: Any


@dataclass(frozen=True)
class CoFlatMapSpec(OperatorSpec):
    """A CoFlatMapFunction on two connected streams."""

    function: Any


@dataclass(frozen=True)
class CoProcessSpec(OperatorSpec):
    """A CoProcessFunction or, keyed, a KeyedCoProcessFunction."""

    function: Any


@dataclass(frozen=True)
class BroadcastProcessSpec(OperatorSpec):
    """A BroadcastProcessFunction; its second input, index 1, is the broadcast side."""

    function: Any
    broadcast_states: tuple[MapStateDescriptor, ...]


@dataclass(frozen=True)
class KeyedBroadcastProcessSpec(BroadcastProcessSpec):
    """A KeyedBroadcastProcessFunction; only its first input is keyed."""


@dataclass(frozen=True)
class TimestampsAndWatermarksSpec(OperatorSpec):
    """Assigns timestamps and generates watermarks in the middle of a stream."""

    watermark_strategy: Any


@dataclass(frozen=True)
class WindowSpec(OperatorSpec):
    """A window operator.

    ``aggregation`` is None (the window keeps its elements), ``"reduce"`` or ``"aggregate"`` with ``aggregate_function``
    a ReduceFunction/callable or an AggregateFunction. ``window_function`` is None (emit the aggregate itself) or a
    (All)WindowFunction / Process(All)WindowFunction. ``all_windows`` tells which of the two families it is.
    """

    assigner: Any
    trigger: Any
    aggregation: str | None = None
    aggregate_function: Any = None
    window_function: Any = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    all_windows: bool = False


@dataclass(frozen=True)
class SinkSpec(OperatorSpec):
    """Writes records to a sink."""

    sink: Sink
    required_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    """What the program asks of the sink."""
