"""Aggregations of a keyed stream in bundles: local and global, salted, in mini-batches, and for windows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time, to_millis
from firesteel.datastream.data_stream import DataStream, check_function, parallelism_of
from firesteel.datastream.functions import AggregateFunction, Function, ReduceFunction
from firesteel.runtime.operators.aggregation.global_aggregate import GlobalAggregateSpec
from firesteel.runtime.operators.aggregation.local_aggregate import LocalAggregateSpec
from firesteel.runtime.operators.aggregation.mini_batch import MiniBatchAggregateSpec
from firesteel.runtime.operators.aggregation.salting import SaltSpec
from firesteel.runtime.operators.window.aligned import alignment_of
from firesteel.runtime.operators.window.local_aggregate import LocalWindowAggregateSpec
from firesteel.runtime.operators.window.partials import PartialAggregate

if TYPE_CHECKING:
    from firesteel.datastream.streams.keyed_stream import KeyedStream
    from firesteel.runtime.operators.window.spec import WindowSpec

__all__ = ["Aggregator", "BundledAggregation", "WindowedAggregation"]

Aggregator = Callable[[Any, Any], Any] | ReduceFunction | AggregateFunction


@dataclass(frozen=True)
class BundledAggregation:
    """What the methods of a keyed stream have in common."""

    method: str
    function: Aggregator
    max_records: int | None
    max_keys: int
    max_delay: Duration | Time | timedelta | int
    output_type: Any

    def __post_init__(self) -> None:
        _check_aggregator(self.method, self.function)
        if self.max_records is not None:
            _check_limit("max_records", self.max_records)
        _check_limit("max_keys", self.max_keys)
        if to_millis(self.max_delay) < 1:
            raise InvalidProgramError(f"max_delay must be at least 1 ms, got {self.max_delay!r}.")

    def local_and_global(self, keyed: KeyedStream[Any, Any]) -> DataStream[Any]:
        """Aggregates in the tasks before the exchange, and merges the partial results after it."""
        origin = keyed._origin_stream
        delay = to_millis(self.max_delay)
        spec = LocalAggregateSpec(self._copied(), self.max_records, self.max_keys, delay, keyed._key_selector)
        local = origin._transform("LocalAggregate", spec, None)
        # in the same task as its input
        local._transformation.parallelism = parallelism_of(origin._transformation)
        return self._merge(keyed, local)

    def salted(self, keyed: KeyedStream[Any, Any], salts: int) -> DataStream[Any]:
        """Spreads each key over several subtasks, which aggregate, and merges their partial results."""
        _check_limit("salts", salts)
        origin = keyed._origin_stream
        triples = origin._transform("Salt", SaltSpec(keyed._key_selector, salts), None)
        # in the same task as its input
        triples._transformation.parallelism = parallelism_of(origin._transformation)
        spec = LocalAggregateSpec(self._copied(), self.max_records, self.max_keys, to_millis(self.max_delay), None)
        local = triples.key_by(lambda triple: triple[1])._transform("LocalAggregate", spec, None)
        merged = self._merge(keyed, local)
        triples._transformation.part_of = merged._transformation
        return merged

    def in_mini_batches(self, keyed: KeyedStream[Any, Any]) -> DataStream[Any]:
        """Aggregates in the tasks after the exchange, with one access to the state per key and bundle."""
        spec = MiniBatchAggregateSpec(self.function, self.max_records, self.max_keys, to_millis(self.max_delay))
        return keyed._transform("MiniBatchAggregate", spec, self._output_type(keyed))

    def _merge(self, keyed: KeyedStream[Any, Any], local: DataStream[Any]) -> DataStream[Any]:
        pairs = local.key_by(lambda pair: pair[0], keyed._key_type)
        merged = pairs._transform("GlobalAggregate", GlobalAggregateSpec(self.function), self._output_type(keyed))
        local._transformation.part_of = merged._transformation
        return merged

    def _output_type(self, keyed: KeyedStream[Any, Any]) -> Any:
        if self.output_type is None and not isinstance(self.function, AggregateFunction):
            return keyed._transformation.output_type
        return self.output_type

    def _copied(self) -> Aggregator:
        return _copied(self.function)


@dataclass(frozen=True)
class WindowedAggregation:
    """The local part of an aggregation of windows."""

    method: str
    function: Aggregator
    max_keys: int

    def __post_init__(self) -> None:
        _check_aggregator(self.method, self.function)
        _check_limit("max_keys", self.max_keys)

    def merging(self) -> PartialAggregate:
        """Returns the aggregate function of the windows."""
        return PartialAggregate(self.function)

    def aggregate_locally(self, keyed: KeyedStream[Any, Any], spec: WindowSpec) -> KeyedStream[Any, Any]:
        """Aggregates in the tasks before the exchange; returns the partial results by key."""
        windows = alignment_of(spec)
        if windows is None:
            parts = [spec.assigner, spec.trigger, spec.evictor]
            raise InvalidProgramError(
                f"Windows of {', '.join(type(part).__name__ for part in parts if part is not None)} cannot be "
                "aggregated before the exchange.",
                hint="Use tumbling or sliding event-time windows with their default trigger, or aggregate instead of "
                "pre_aggregate.",
            )
        origin = keyed._origin_stream
        local_spec = LocalWindowAggregateSpec(_copied(self.function), keyed._key_selector, windows, self.max_keys)
        local = origin._transform("LocalWindowAggregate", local_spec, None)
        # in the same task as its input
        local._transformation.parallelism = parallelism_of(origin._transformation)
        return local.key_by(lambda element: element[0], keyed._key_type)


def _copied(function: Aggregator) -> Aggregator:
    """The function for another operator, which may be in the same process."""
    return copy.deepcopy(function) if isinstance(function, Function) else function


def _check_aggregator(method: str, function: Any) -> None:
    if not isinstance(function, AggregateFunction):
        check_function(method, function, ReduceFunction)


def _check_limit(name: str, limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidProgramError(f"{name} must be an integer of at least 1, got {limit!r}.")
