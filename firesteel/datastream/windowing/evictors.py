"""Evictors: remove elements of a window before or after its function is called. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from firesteel.api.generics import Generic, T, W_contra
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time, to_millis
from firesteel.metrics import MetricGroup
from firesteel.runtime.operators.window.timestamped_value import TimestampedValue

__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "TimeEvictor", "TimestampedValue"]


class Evictor(ABC, Generic[T, W_contra]):
    """Removes elements of a window when its trigger fires.

    Both methods get a list of all elements in the order in which they were added, each a ``TimestampedValue``. They
    remove elements from the list (``del elements[:2]``), or return those that stay. What is removed is gone from the
    window for later firings too.
    """

    class EvictorContext(ABC):
        """The context of an evictor."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The current event time in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The metric group of the operator."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> Iterable[TimestampedValue] | None:
        """Evicts elements before the function is called; ``size`` is their number."""

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> Iterable[TimestampedValue] | None:
        """Evicts elements after the function was called; ``size`` is the number of those that are left."""


class _BeforeOrAfter(Evictor[Any, Any]):
    """An evictor that does the same either before or after the function."""

    def __init__(self, do_evict_after: bool):
        self.do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> Iterable[TimestampedValue] | None:
        """Evicts elements, unless that is to be done after the function."""
        return None if self.do_evict_after else self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> Iterable[TimestampedValue] | None:
        """Evicts elements, if that is to be done after the function."""
        return self._evict(elements) if self.do_evict_after else None

    def _evict(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        """What is left of the elements."""
        raise NotImplementedError


class CountEvictor(_BeforeOrAfter):
    """Keeps the last ``max_count`` elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False):
        super().__init__(do_evict_after)
        if max_count < 0:
            raise InvalidProgramError(f"CountEvictor cannot keep {max_count} elements.")
        self.max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """An evictor that keeps that many elements."""
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        return elements[max(len(elements) - self.max_count, 0) :]

    def __repr__(self) -> str:
        return f"CountEvictor({self.max_count})"


class TimeEvictor(_BeforeOrAfter):
    """Keeps elements that are less than ``window_size`` milliseconds older than the latest one.

    Nothing is evicted if the first element has no timestamp.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False):
        super().__init__(do_evict_after)
        self.window_size = window_size

    @staticmethod
    def of(window_size: Duration | Time | timedelta | int, do_evict_after: bool = False) -> TimeEvictor:
        """An evictor that keeps the elements of that time."""
        return TimeEvictor(to_millis(window_size), do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        if not elements or not elements[0].has_timestamp():
            return elements
        cutoff = max(element.get_timestamp() for element in elements) - self.window_size
        return [element for element in elements if element.get_timestamp() > cutoff]

    def __repr__(self) -> str:
        return f"TimeEvictor({self.window_size})"


class DeltaEvictor(_BeforeOrAfter):
    """Keeps elements whose distance from the last one is below a threshold."""

    def __init__(self, threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False):
        super().__init__(do_evict_after)
        if not callable(delta_function):
            raise TypeError(f"DeltaEvictor needs a callable of two records, got {delta_function!r}.")
        self.threshold = threshold
        self.delta_function = delta_function

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """An evictor with a threshold and a function of an element and the last element."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        if not elements:
            return elements
        last, delta = elements[-1].value, self.delta_function
        return [element for element in elements if not delta(element.value, last) >= self.threshold]

    def __repr__(self) -> str:
        return f"DeltaEvictor({self.threshold})"
