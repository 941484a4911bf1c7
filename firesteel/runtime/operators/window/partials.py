"""Window aggregation of partial results, which local aggregations have computed before the exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.runtime.operators.aggregation.function import Aggregation

__all__ = ["PartialAggregate", "unaggregated"]


def unaggregated(key: str, value: str) -> str:
    """The expression for an element that is a record as it came."""
    return f"({key}, None, {value})"


class PartialAggregate:
    """The AggregateFunction of a window whose elements are pairs of a key and a partial result.

    A record that may be late is an element of its own, a triple with the record at the end: it has to be counted, fire
    its window or go to the side output for itself. Accumulators are those of the function of the program.
    """

    def __init__(self, function: Any):
        self.wrapped_function = function
        self._aggregation = Aggregation(function)

    @property
    def wrapped_call(self) -> Callable[..., Any]:
        """The method of the function that failure reports name."""
        aggregation = self._aggregation
        return aggregation.add if aggregation.get_result is None else aggregation.get_result

    def create_accumulator(self) -> Any:
        """None: the first partial result is the accumulator."""
        return None

    def add(self, element: Any, accumulator: Any) -> Any:
        """Merges a partial result, or adds a record."""
        aggregation = self._aggregation
        if len(element) == 2:
            partial = element[1]
            return partial if accumulator is None else aggregation.merge_with(accumulator, partial)
        record = element[2]
        return aggregation.first_of(record) if accumulator is None else aggregation.add_to(accumulator, record)

    def get_result(self, accumulator: Any) -> Any:
        get_result = self._aggregation.get_result
        return accumulator if get_result is None else get_result(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return self._aggregation.merge_with(acc_a, acc_b)

    def records_of(self, element: Any) -> tuple[Any, ...]:
        """The records that a late element stands for, as far as they are known: none of an accumulator."""
        if len(element) == 3:
            return (element[2],)
        return (element[1],) if self._aggregation.is_reduce else ()
