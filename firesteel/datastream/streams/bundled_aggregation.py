"""Aggregations of a keyed stream in bundles: local and global, salted, and in mini-batches."""

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

if TYPE_CHECKING:
    from firesteel.datastream.streams.keyed_stream import KeyedStream

__all__ = ["Aggregator", "BundledAggregation"]

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
        if not isinstance(self.function, AggregateFunction):
            check_function(self.method, self.function, ReduceFunction)
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
        """The function for another operator, which may be in the same process."""
        return copy.deepcopy(self.function) if isinstance(self.function, Function) else self.function


def _check_limit(name: str, limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidProgramError(f"{name} must be an integer of at least 1, got {limit!r}.")
