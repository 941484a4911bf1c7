"""Functions that are called with matches and timed-out partial matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from firesteel.api.output_tag import OutputTag
from firesteel.datastream.functions import Function, RuntimeContext

__all__ = [
    "Match",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternTimeoutFunction",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "TimedOutPartialMatchHandler",
    "flat_select_adapter",
    "select_adapter",
]

Match = dict[str, list[Any]]
"""The events of a match, or of a partial match, by stage, in their order."""


class PatternContext(Protocol):
    """What a PatternProcessFunction can ask and do besides returning results."""

    def timestamp(self) -> int:
        """Returns the timestamp of the last event of a match, or when the time of a partial match ended."""
        ...

    def current_processing_time(self) -> int:
        """Returns the processing time in milliseconds."""
        ...

    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emits a record to a side output."""
        ...


class PatternProcessFunction(Function):
    """Called with each match. A subclass that is a TimedOutPartialMatchHandler as well gets timed-out ones too."""

    @abstractmethod
    def process_match(self, match: Match, ctx: PatternContext) -> Iterable[Any] | None:
        """Returns or yields results; ``yield tag, value`` is a record of a side output."""


class TimedOutPartialMatchHandler(ABC):
    """A mix-in for a PatternProcessFunction: called with partial matches whose time has passed."""

    @abstractmethod
    def process_timed_out_match(self, match: Match, ctx: PatternContext) -> Iterable[Any] | None:
        """Emits to side outputs, with ``ctx.output(tag, value)`` or ``yield tag, value``."""


class PatternSelectFunction(Function):
    """One result per match."""

    @abstractmethod
    def select(self, match: Match) -> Any:
        """Returns the result."""


class RichPatternSelectFunction(PatternSelectFunction):
    """A PatternSelectFunction that overrides ``open`` or ``close``; only the name differs, which is Flink's."""


class PatternFlatSelectFunction(Function):
    """Any number of results per match."""

    @abstractmethod
    def flat_select(self, match: Match) -> Iterable[Any] | None:
        """Returns or yields the results."""


class RichPatternFlatSelectFunction(PatternFlatSelectFunction):
    """A PatternFlatSelectFunction that overrides ``open`` or ``close``; only the name differs, which is Flink's."""


class PatternTimeoutFunction(Function):
    """One result per partial match whose time has passed."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Any:
        """Returns the result."""


class PatternFlatTimeoutFunction(Function):
    """Any number of results per partial match whose time has passed."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Iterable[Any] | None:
        """Returns or yields the results."""


class _Adapter(PatternProcessFunction):
    """Calls a function that selects."""

    def __init__(self, selected: Any, call: Callable[[Match], Any], is_flat: bool, *others: Any):
        self.call = call
        self._is_flat = is_flat
        self._opened = [each for each in (selected, *others) if isinstance(each, Function)]

    def open(self, runtime_context: RuntimeContext) -> None:
        for each in self._opened:
            each.open(runtime_context)

    def close(self) -> None:
        for each in self._opened:
            each.close()

    def process_match(self, match: Match, ctx: PatternContext) -> Iterable[Any] | None:
        if self._is_flat:
            results: Iterable[Any] | None = self.call(match)
            return results
        return (self.call(match),)


class _TimeoutAdapter(_Adapter, TimedOutPartialMatchHandler):
    """Calls a second function with timed-out partial matches."""

    def __init__(
        self,
        selected: Any,
        call: Callable[[Match], Any],
        is_flat: bool,
        tag: OutputTag,
        timed_out: Any,
        timeout: Callable[[Match, int], Any],
    ):
        super().__init__(selected, call, is_flat, timed_out)
        self._tag = tag
        self._timeout = timeout

    def process_timed_out_match(self, match: Match, ctx: PatternContext) -> Iterable[Any] | None:
        result = self._timeout(match, ctx.timestamp())
        if not self._is_flat:
            ctx.output(self._tag, result)
        else:
            for each in result if result is not None else ():
                ctx.output(self._tag, each)
        return None


def select_adapter(select: Any, tag: OutputTag | None = None, timeout: Any = None) -> PatternProcessFunction:
    """Returns the process function of ``select``."""
    return _adapter("select", PatternSelectFunction, select, tag, PatternTimeoutFunction, timeout, is_flat=False)


def flat_select_adapter(select: Any, tag: OutputTag | None = None, timeout: Any = None) -> PatternProcessFunction:
    """Returns the process function of ``flat_select``."""
    kind = PatternFlatSelectFunction
    return _adapter("flat_select", kind, select, tag, PatternFlatTimeoutFunction, timeout, is_flat=True)


def _adapter(
    method: str,
    kind: type[Function],
    select: Any,
    tag: OutputTag | None,
    timeout_kind: type[Function],
    timeout: Any,
    *,
    is_flat: bool,
) -> PatternProcessFunction:
    call = _method(select, kind, method)
    if tag is None:
        return _Adapter(select, call, is_flat)
    return _TimeoutAdapter(select, call, is_flat, tag, timeout, _method(timeout, timeout_kind, "timeout"))


def _method(function: Any, kind: type[Function], name: str) -> Callable[..., Any]:
    """The method of a function object, or the callable itself."""
    if isinstance(function, kind):
        method: Callable[..., Any] = getattr(function, name)
        return method
    if not callable(function):
        raise TypeError(f"{name} needs a {kind.__name__} or a function, got {function!r}.")
    plain: Callable[..., Any] = function
    return plain
