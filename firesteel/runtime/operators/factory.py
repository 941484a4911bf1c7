"""Makes the operator that does what a spec says."""

from __future__ import annotations

from typing import Any

from firesteel.runtime.operators import specs
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.broadcast import BroadcastOperator, KeyedBroadcastOperator
from firesteel.runtime.operators.co import CoFlatMapOperator, CoMapOperator, CoProcessOperator
from firesteel.runtime.operators.inline import (
    FilterOperator,
    FlatMapOperator,
    InlineOperator,
    MapOperator,
    ProcessOperator,
    ReduceOperator,
)
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.operators.window import create_window_operator

__all__ = ["create_operator"]

_BY_FUNCTION: dict[type[specs.OperatorSpec], type[InlineOperator]] = {
    specs.MapSpec: MapOperator,
    specs.FilterSpec: FilterOperator,
    specs.FlatMapSpec: FlatMapOperator,
    specs.ProcessSpec: ProcessOperator,
    specs.ReduceSpec: ReduceOperator,
    specs.CoMapSpec: CoMapOperator,
    specs.CoFlatMapSpec: CoFlatMapOperator,
    specs.CoProcessSpec: CoProcessOperator,
}


def create_operator(
    spec: specs.OperatorSpec, watermark_interval_ms: int, keeps_objects: bool = True
) -> InlineOperator | StreamOperator:
    """A new operator for one subtask; ``keeps_objects`` as of the state backend it will have."""
    operator_class = _BY_FUNCTION.get(type(spec))
    if operator_class is not None:
        function: Any = spec.function  # type: ignore[attr-defined]
        return operator_class(function)
    if isinstance(spec, specs.KeyedBroadcastProcessSpec):
        return KeyedBroadcastOperator(spec.function, spec.broadcast_states)
    if isinstance(spec, specs.BroadcastProcessSpec):
        return BroadcastOperator(spec.function, spec.broadcast_states)
    if isinstance(spec, specs.SourceSpec):
        return SourceOperator(spec.source, spec.watermark_strategy, watermark_interval_ms)
    if isinstance(spec, specs.SinkSpec):
        return SinkOperator(spec.sink)
    if isinstance(spec, specs.TimestampsAndWatermarksSpec):
        return TimestampsAndWatermarksOperator(spec.watermark_strategy, watermark_interval_ms)
    if isinstance(spec, specs.WindowSpec):
        return create_window_operator(spec, keeps_objects)
    raise AssertionError(f"no operator for {type(spec).__name__}")
