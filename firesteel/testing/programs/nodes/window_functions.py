"""The functions that generated windows are evaluated with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.testing.programs.records import change, fields, make, merge_trails
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["Apply", "ApplyAll", "Gather", "Listing", "ListingAll"]

_MAX_TIMESTAMP = 10**11
"""All records of a program are before that, and all ends of windows in processing time are behind it."""


@dataclass
class Gather(AggregateFunction):
    """Adds v and joins trails in an accumulator that is changed in place: a record of the shape ``list``."""

    shape: str
    ordered: bool = False
    shares: bool = False
    """Returns the accumulator itself as result. Only for the shape ``list``."""
    trip: Trip | None = None

    def create_accumulator(self) -> list[Any]:
        """Returns an empty accumulator."""
        return [0, 0, 0, []]

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        """Adds a record."""
        step(self.trip)
        k, v, t, trail = fields(value)
        accumulator[0] = max(accumulator[0], k)
        accumulator[1] += v
        accumulator[2] = max(accumulator[2], t)
        accumulator[3][:] = merge_trails(accumulator[3], trail, ordered=self.ordered)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        """Returns a record."""
        return accumulator if self.shares else make(self.shape, *accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        """Adds two accumulators."""
        trail = merge_trails(acc_a[3], acc_b[3], ordered=self.ordered)
        return [max(acc_a[0], acc_b[0]), acc_a[1] + acc_b[1], max(acc_a[2], acc_b[2]), trail]


def _summary(shape: str, elements: Iterable[Any], t: int | None, *, ordered: bool) -> Any:
    """Returns one record for all: the sum of v, and t or the latest of theirs."""
    k, total, latest, joined = 0, 0, 0, list[int]()
    for element in elements:
        element_k, v, time, trail = fields(element)
        k = max(k, element_k)
        total += v
        latest = max(latest, time)
        joined = merge_trails(joined, trail, ordered=ordered)
    return make(shape, k, total, latest if t is None else t, joined)


def _end(window: Any) -> int | None:
    """Returns the last timestamp of a window of event time; None for other windows."""
    return window.max_timestamp() if window.max_timestamp() < _MAX_TIMESTAMP else None


@dataclass
class Listing(ProcessWindowFunction[Any, Any, Any, Any]):
    """Summarises a window; may count its firings in state, and change the elements it was given."""

    shape: str
    ordered: bool = False
    counts: str = ""
    """``window``: appends how often this window was evaluated; ``global``: how often any of the key was."""
    changes: bool = False
    trip: Trip | None = None

    def process(self, key: Any, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterator[Any]:
        """Yields one record; none if everything was evicted."""
        step(self.trip)
        elements = list(elements)
        k, v, t, trail = fields(_summary(self.shape, elements, _end(context.window()), ordered=self.ordered))
        trail = list(trail)
        if self.counts:
            store = context.window_state() if self.counts == "window" else context.global_state()
            state = store.get_state(ValueStateDescriptor("firings"))
            state.update((state.value() or 0) + 1)
            trail.append(state.value())
        if self.changes:
            for element in elements:
                change(element, -7)
        if elements:
            yield make(self.shape, k, v, t, trail)

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        """Removes the window's own state."""
        if self.counts == "window":
            context.window_state().get_state(ValueStateDescriptor("firings")).clear()


@dataclass
class Apply(WindowFunction[Any, Any, Any, Any]):
    """Summarises a window."""

    shape: str
    ordered: bool = False
    trip: Trip | None = None

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        """Returns one record; none if everything was evicted."""
        step(self.trip)
        elements = list(inputs)
        return [_summary(self.shape, elements, _end(window), ordered=self.ordered)] if elements else []


@dataclass
class ListingAll(ProcessAllWindowFunction[Any, Any, Any]):
    """Summarises a window of all keys; k is 0."""

    shape: str
    ordered: bool = False
    trip: Trip | None = None

    def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[Any]) -> Iterator[Any]:
        """Yields one record."""
        step(self.trip)
        _, v, t, trail = fields(_summary(self.shape, elements, _end(context.window()), ordered=self.ordered))
        yield make(self.shape, 0, v, t, trail)


@dataclass
class ApplyAll(AllWindowFunction[Any, Any, Any]):
    """Summarises a window of all keys; k is 0."""

    shape: str
    ordered: bool = False
    trip: Trip | None = None

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        """Returns one record."""
        step(self.trip)
        _, v, t, trail = fields(_summary(self.shape, inputs, _end(window), ordered=self.ordered))
        return [make(self.shape, 0, v, t, trail)]
