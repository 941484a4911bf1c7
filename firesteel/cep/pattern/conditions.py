"""Conditions of patterns: what an event must fulfil to be taken."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

__all__ = [
    "AndCondition",
    "Condition",
    "ConditionContext",
    "FieldCondition",
    "IterativeCondition",
    "NotCondition",
    "OrCondition",
    "RichIterativeCondition",
    "SimpleCondition",
    "SubtypeCondition",
    "TrueCondition",
    "to_condition",
    "user_conditions",
]


class ConditionContext(Protocol):
    """What a condition can ask besides the event itself."""

    def get_events_for_pattern(self, name: str) -> Iterable[Any]:
        """Returns the events that the partial match has taken for a stage, in their order."""
        ...

    def timestamp(self) -> int:
        """Returns the timestamp of the event; in processing time, when it arrived."""
        ...

    def current_processing_time(self) -> int:
        """Returns the processing time in milliseconds."""
        ...


class Condition(ABC):  # noqa: B024 - the root of a closed set
    """Root of all conditions."""


class IterativeCondition(Condition):
    """A condition that sees the events of the partial match, through its context."""

    def open(self, runtime_context: Any) -> None:
        """Called once before the first event."""

    def close(self) -> None:
        """Called once after the last event."""

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Returns whether the event fulfils the condition."""


class RichIterativeCondition(IterativeCondition):
    """An IterativeCondition that overrides ``open`` or ``close``; only the name differs, which is Flink's."""


class SimpleCondition(Condition):
    """A condition on the event alone."""

    def open(self, runtime_context: Any) -> None:
        """Called once before the first event."""

    def close(self) -> None:
        """Called once after the last event."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Returns whether the event fulfils the condition."""

    @staticmethod
    def of(function: Callable[[Any], Any]) -> SimpleCondition:
        """Returns a condition that calls a function."""
        return _FunctionCondition(function)


class _FunctionCondition(SimpleCondition):
    def __init__(self, function: Callable[[Any], Any]):
        self.filter = function  # type: ignore[assignment,method-assign]

    def filter(self, value: Any) -> bool:
        raise AssertionError("replaced by the function")


class _ContextFunctionCondition(IterativeCondition):
    def __init__(self, function: Callable[[Any, ConditionContext], Any]):
        self.filter = function  # type: ignore[assignment,method-assign]

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        raise AssertionError("replaced by the function")


class FieldCondition(SimpleCondition):
    """A field of the event is true, such as one that was computed before."""

    def __init__(self, position: int):
        self.position = position

    def filter(self, value: Any) -> bool:
        """Returns the field of the event."""
        return bool(value[self.position])


class SubtypeCondition(SimpleCondition):
    """The event is an instance of a class."""

    def __init__(self, subtype: type[Any]):
        self.subtype = subtype

    def filter(self, value: Any) -> bool:
        """Returns whether the event is an instance of the class."""
        return isinstance(value, self.subtype)


class TrueCondition(Condition):
    """Every event."""


class AndCondition(Condition):
    """Both conditions hold; the right one is evaluated only if the left one does."""

    def __init__(self, left: Condition, right: Condition):
        self.left = left
        self.right = right


class OrCondition(Condition):
    """One of the conditions holds; the right one is evaluated only if the left one does not."""

    def __init__(self, left: Condition, right: Condition):
        self.left = left
        self.right = right


class NotCondition(Condition):
    """The condition does not hold."""

    def __init__(self, condition: Condition):
        self.condition = condition


def to_condition(condition: Any) -> Condition:
    """Returns the condition of what a program gives: a condition, or a function of an event and perhaps a context.

    >>> type(to_condition(lambda event: event > 3)).__name__
    '_FunctionCondition'
    >>> type(to_condition(lambda event, ctx: event > ctx.timestamp())).__name__
    '_ContextFunctionCondition'
    """
    if isinstance(condition, Condition):
        return condition
    if not callable(condition):
        condition = getattr(condition, "filter", None)
        if not callable(condition):
            raise TypeError(f"A condition is needed, such as a function of an event, got {condition!r}.")
    if _parameters(condition) == 2:
        return _ContextFunctionCondition(condition)
    return _FunctionCondition(condition)


def _parameters(function: Callable[..., Any]) -> int:
    """The number of arguments to call a function with: two only if it must have two."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1  # builtin functions may have no signature
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in parameters if each.kind in positional and each.default is inspect.Parameter.empty]
    if len(required) > 2:
        raise TypeError(f"A condition is a function of an event and perhaps a context; {function!r} needs more.")
    return len(required)


def user_conditions(condition: Condition | None) -> Iterator[SimpleCondition | IterativeCondition]:
    """Yields the conditions of the program that a condition is composed of."""
    if isinstance(condition, (SimpleCondition, IterativeCondition)):
        yield condition
    elif isinstance(condition, NotCondition):
        yield from user_conditions(condition.condition)
    elif isinstance(condition, (AndCondition, OrCondition)):
        yield from user_conditions(condition.left)
        yield from user_conditions(condition.right)
