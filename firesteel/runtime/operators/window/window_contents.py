"""Contents of aligned windows: per key an aggregate, an accumulator or a list of elements.

A window's contents are its own: what leaves it is copied if it stays, or if it was not made for this window alone. The
reduce or aggregate function may change what it is given and return it, but not keep it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.codegen.at_work import AGGREGATE, handles_results_of
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.window.functions import aggregate_methods, reduce_callable
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.types.copying import copy_all, copy_value

__all__ = ["Panes", "WindowContents", "make_contents"]

Panes = dict[Any, Any]
"""What one window stores for each key."""


class WindowContents(ABC):
    """One kind of contents. The loops of ``add_all`` are the hot path."""

    @abstractmethod
    def new_panes(self) -> Panes:
        """The panes of a new window."""

    @abstractmethod
    def add_all(self, panes: Panes, keys: Iterable[Any], values: Iterable[Any]) -> None:
        """Adds each value to the pane of its key."""

    @abstractmethod
    def add_to_each(self, windows: Iterable[Panes], key: Any, value: Any) -> None:
        """Adds one value to its key's pane in each of several windows."""

    @abstractmethod
    def collect(self, key: Any, values: Sequence[Any]) -> Any:
        """What is stored for a key whose values all come at once; there is at least one."""

    @abstractmethod
    def result(self, stored: Any) -> Any:
        """The contents of a pane as the window function sees them; None if there is nothing to evaluate."""

    def failed_record(self, error: BaseException) -> tuple[Any, Any]:
        """The key and the value that were being added when an error came; None if it came from elsewhere."""
        trace = error.__traceback__
        while trace is not None:
            names = trace.tb_frame.f_locals
            if names.get("self") is self and "key" in names and "value" in names:
                return names["key"], names["value"]
            trace = trace.tb_next
        return None, None


class ReducedContents(WindowContents):
    """One value per key."""

    def __init__(self, function: Any, copies: bool):
        self._reduce = reduce_callable(function)
        self._copies = copies

    def new_panes(self) -> Panes:
        return {}

    def add_all(self, panes: Panes, keys: Iterable[Any], values: Iterable[Any]) -> None:
        """Reduces each value into its key's."""
        reduce, get = self._reduce, panes.get
        for key, value in zip(keys, values, strict=True):
            current = get(key)
            panes[key] = value if current is None else reduce(current, value)

    def add_to_each(self, windows: Iterable[Panes], key: Any, value: Any) -> None:
        """Reduces the value into the key's in each window."""
        for panes in windows:
            current = panes.get(key)
            panes[key] = value if current is None else self._reduce(current, value)

    def collect(self, key: Any, values: Sequence[Any]) -> Any:
        """Reduces all values into the first."""
        reduce = self._reduce
        stored = values[0]
        for value in values[1:]:
            stored = value if stored is None else reduce(stored, value)
        return stored

    @handles_results_of(AGGREGATE)
    def result(self, stored: Any) -> Any:
        if stored is None:
            raise InvalidProgramError(
                "The reduce function returned None.", hint="Return the new value; perhaps a 'return' is missing."
            )
        return copy_value(stored) if self._copies else stored


class AggregatedContents(WindowContents):
    """One accumulator per key."""

    def __init__(self, function: Any, copies: bool):
        self._create, self._add, self._get_result = aggregate_methods(function)
        self._copies = copies

    def new_panes(self) -> Panes:
        """A dictionary that makes the accumulator of a new key."""
        return defaultdict(self._create)

    def add_all(self, panes: Panes, keys: Iterable[Any], values: Iterable[Any]) -> None:
        """Adds each value to its key's accumulator."""
        add = self._add
        for key, value in zip(keys, values, strict=True):
            panes[key] = add(value, panes[key])

    def add_to_each(self, windows: Iterable[Panes], key: Any, value: Any) -> None:
        """Adds the value to the key's accumulator in each window."""
        add = self._add
        for panes in windows:
            panes[key] = add(value, panes[key])

    def collect(self, key: Any, values: Sequence[Any]) -> Any:
        """Adds all values to a new accumulator."""
        add = self._add
        stored = self._create()
        for value in values:
            stored = add(value, stored)
        return stored

    @handles_results_of(AGGREGATE)
    def result(self, stored: Any) -> Any:
        """The accumulator's result, which may be the accumulator itself."""
        return copy_value(self._get_result(stored)) if self._copies else self._get_result(stored)


class ListContents(WindowContents):
    """All elements per key. Windows that overlap have the same elements: each copies those it hands out."""

    def __init__(self, copies: bool):
        self._copies = copies

    def new_panes(self) -> Panes:
        """A dictionary that makes the list of a new key."""
        return defaultdict(list)

    def add_all(self, panes: Panes, keys: Iterable[Any], values: Iterable[Any]) -> None:
        """Appends each value to its key's list."""
        for key, value in zip(keys, values, strict=True):
            panes[key].append(value)

    def add_to_each(self, windows: Iterable[Panes], key: Any, value: Any) -> None:
        """Appends the value to the key's list in each window."""
        for panes in windows:
            panes[key].append(value)

    def collect(self, key: Any, values: Sequence[Any]) -> Any:
        return list(values)

    def result(self, stored: Any) -> Any:
        """A new list, as the function may keep it while the window continues."""
        return list(copy_all(stored)) if self._copies else stored.copy()


def make_contents(spec: WindowSpec, context: OperatorContext, *, is_shared: bool) -> WindowContents:
    """The kind of contents a spec asks for.

    With ``is_shared`` a window's elements may be returned again: by the window itself, or by another one.
    """
    copies = is_shared and not context.reuses_objects
    if spec.aggregation == "reduce":
        return ReducedContents(spec.aggregate_function, copies)
    if spec.aggregation == "aggregate":
        copies = not context.reuses_objects if spec.window_function is not None else context.copies_results
        return AggregatedContents(spec.aggregate_function, copies)
    return ListContents(copies)
