"""The aggregation that a reduce function or an AggregateFunction defines, on partial results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.codegen.functions import method_of

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter

__all__ = ["Aggregation", "neutral_function"]


class Aggregation:
    """How records become a partial result, how partial results are merged, and what is emitted.

    A reduce function has records as partial results. An AggregateFunction has accumulators.
    """

    def __init__(self, function: Any):
        self.is_reduce = not callable(getattr(function, "create_accumulator", None))
        self.add: Callable[[Any, Any], Any] = method_of(function, "reduce" if self.is_reduce else "add")
        """Of a partial result and a record; an AggregateFunction takes them the other way round."""
        self.merge: Callable[[Any, Any], Any] = self.add if self.is_reduce else function.merge
        self.create: Callable[[], Any] | None = None if self.is_reduce else function.create_accumulator
        self.get_result: Callable[[Any], Any] | None = None if self.is_reduce else function.get_result
        self.state_name = "_reduce_state" if self.is_reduce else "_aggregate_state"
        """A reduce has the state of KeyedStream.reduce, so that either restores the state of the other."""

    def write_first(self, writer: LoopWriter, value: str) -> str:
        """Writes the partial result of one record; returns the variable that holds it."""
        first = writer.new_variable("a")
        if self.create is None:
            writer.line(f"{first} = {value}")
        else:
            call = f"{writer.bind('add', self.add)}({value}, {writer.bind('create', self.create)}())"
            writer.line(f"{first} = {call}", element=value, function=self.add)
        self._write_check(writer, first, value)
        return first

    def write_add(self, writer: LoopWriter, partial: str, value: str) -> None:
        """Writes the addition of a record to the partial result in a variable."""
        call = writer.call_with_two(self.add, *((partial, value) if self.is_reduce else (value, partial)))
        writer.line(f"{partial} = {call}", element=value)
        self._write_check(writer, partial, value)

    def _write_check(self, writer: LoopWriter, partial: str, value: str) -> None:
        with writer.block(f"if {partial} is None:"):
            writer.line(f"{writer.bind('refuse', self.refuse_none)}()", element=value, function=self.add)

    def first_of(self, value: Any) -> Any:
        """The partial result of one record."""
        return value if self.create is None else self.checked(self.add(value, self.create()))

    def add_to(self, partial: Any, value: Any) -> Any:
        """A partial result with one more record."""
        return self.checked(self.add(partial, value) if self.is_reduce else self.add(value, partial))

    def merge_with(self, partial: Any, other: Any) -> Any:
        """Two partial results in one."""
        return self.checked(self.merge(partial, other))

    def checked(self, partial: Any) -> Any:
        """The partial result, unless it is None."""
        if partial is None:
            self.refuse_none()
        return partial

    def refuse_none(self) -> NoReturn:
        """Raises the error for a function that returned None: the next record would start over."""
        name = "reduce function" if self.is_reduce else "AggregateFunction"
        what = "value" if self.is_reduce else "accumulator"
        raise InvalidProgramError(
            f"The {name} returned None.", hint=f"Return the new {what}; perhaps a 'return' is missing."
        )


class _NeutralAggregate:
    """An AggregateFunction that keeps the first accumulator."""

    def create_accumulator(self) -> Any:
        return 0

    def add(self, _value: Any, accumulator: Any) -> Any:
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, _acc_b: Any) -> Any:
        return acc_a


def _first(value: Any, _: Any) -> Any:
    return value


def neutral_function(function: Any) -> Any:
    """A function of the same kind that calls no user code."""
    return _first if Aggregation(function).is_reduce else _NeutralAggregate()
