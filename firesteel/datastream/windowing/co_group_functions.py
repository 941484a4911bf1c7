"""Functions of windows over two streams: CoGroupFunction, JoinFunction and FlatJoinFunction as window functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from firesteel.datastream.function_base import RuntimeContext
from firesteel.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector, WindowFunction
from firesteel.types.copying import are_immutable, copy_value

__all__ = ["CoGroupWindowFunction", "UnionKeySelector", "tag_one", "tag_two", "union_key_selector"]

tag_one = lambda record: (0, record)
tag_two = lambda record: (1, record)


class UnionKeySelector(KeySelector):
    """The key of a record of either stream, which has a tag before it."""

    def __init__(self, one: Any, two: Any):
        self._selectors = one, two
        self._one, self._two = (getattr(selector, "get_key", selector) for selector in self._selectors)

    def open(self, runtime_context: RuntimeContext) -> None:
        for selector in self._selectors:
            if isinstance(selector, KeySelector):
                selector.open(runtime_context)

    def close(self) -> None:
        for selector in self._selectors:
            if isinstance(selector, KeySelector):
                selector.close()

    def get_key(self, value: Any) -> Any:
        tag, record = value
        return self._two(record) if tag else self._one(record)


def union_key_selector(one: Any, two: Any) -> Any:
    """The key selector of both streams as one; a plain function, which can be inlined, if both are."""
    if isinstance(one, KeySelector) or isinstance(two, KeySelector):
        return UnionKeySelector(one, two)
    return lambda tagged: two(tagged[1]) if tagged[0] else one(tagged[1])


class CoGroupWindowFunction(WindowFunction[Any, Any, Any, Any]):
    """Divides the records of a window by stream, and calls the user's function with both groups, or with each pair."""

    def __init__(self, function: Any, kind: type[CoGroupFunction | JoinFunction | FlatJoinFunction]):
        self.wrapped_function = function
        method = "co_group" if kind is CoGroupFunction else "join"
        self.wrapped_call: Callable[[Any, Any], Any] = getattr(function, method, function)
        self._kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        if hasattr(self.wrapped_function, "open"):
            self.wrapped_function.open(runtime_context)

    def close(self) -> None:
        if hasattr(self.wrapped_function, "close"):
            self.wrapped_function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        """The results of both groups, or of all pairs."""
        groups: tuple[list[Any], list[Any]] = [], []
        for tag, record in inputs:
            groups[tag].append(record)
        if self._kind is CoGroupFunction:
            results: Iterable[Any] = self.wrapped_call(*groups)
            return results
        if not groups[0] or not groups[1]:
            return ()
        return self._join(*groups) if self._kind is JoinFunction else self._flat_join(*groups)

    def _join(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        join = self.wrapped_call
        for one, two in _pairs(first, second):
            yield join(one, two)

    def _flat_join(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        join = self.wrapped_call
        for one, two in _pairs(first, second):
            results = join(one, two)
            if results is not None:
                yield from results


def _pairs(first: list[Any], second: list[Any]) -> Iterable[tuple[Any, Any]]:
    """All pairs; records that could be changed are copied for each."""
    if are_immutable(first) and are_immutable(second):
        return product(first, second)
    return ((copy_value(one), copy_value(two)) for one in first for two in second)
