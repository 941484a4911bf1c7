"""Two-input operators of connected streams, inlined into the loop of each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.contexts import ProcessContext
from firesteel.runtime.operators.inline import InlineOperator, write_process_call

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = [
    "CoFlatMapOperator",
    "CoFlatMapSpec",
    "CoMapOperator",
    "CoMapSpec",
    "CoProcessOperator",
    "CoProcessSpec",
    "TwoInputOperator",
]


class TwoInputOperator(InlineOperator):
    """Calls ``<method>1`` for records of the first input and ``<method>2`` for those of the second."""

    def __init__(self, function: Any):
        super().__init__(function)
        self.is_rich = True
        self.calls = (method_of(function, self.method + "1"), method_of(function, self.method + "2"))

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines for a record of the first input."""
        self.write_input(writer, value, 0)

    def write_input(self, writer: LoopWriter, value: str, index: int) -> None:
        """Writes the lines for a record of either input."""
        selectors = self.context.key_selectors
        if selectors and not writer.sets_key_of(self.context):
            key = writer.new_variable("k")
            backend = writer.bind("backend", self.context.backend)
            writer.line(f"{backend}.key = {key} = {writer.call(selectors[index], value)}", element=value, what="key_by")
        self.write_call(writer, value, index)

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """Writes the call of the user function and the handling of its results."""
        raise NotImplementedError


@dataclass(frozen=True)
class CoMapSpec(FunctionSpec):
    """A CoMapFunction on two connected streams."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return CoMapOperator(self.function)


class CoMapOperator(TwoInputOperator):
    """One result per record of either input; None is no result, as in PyFlink."""

    method = "map"

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``v1 = map1(v0)`` and on."""
        result = writer.new_variable("v")
        call = writer.bind("map", self.calls[index])
        writer.line(f"{result} = {call}({value})", element=value, function=self.calls[index])
        with writer.block(f"if {result} is not None:"):
            writer.write_consumers(result)


@dataclass(frozen=True)
class CoFlatMapSpec(FunctionSpec):
    """A CoFlatMapFunction on two connected streams."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return CoFlatMapOperator(self.function)


class CoFlatMapOperator(TwoInputOperator):
    """Any number of results per record of either input."""

    method = "flat_map"

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``for v1 in flat_map1(v0):`` and on."""
        result = writer.new_variable("v")
        call = writer.bind("flat_map", self.calls[index])
        with writer.block(f"for {result} in {call}({value}) or ():", element=value, function=self.calls[index]):
            writer.write_consumers(result)
            writer.write_room_check()


@dataclass(frozen=True)
class CoProcessSpec(FunctionSpec):
    """A CoProcessFunction or, keyed, a KeyedCoProcessFunction."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return CoProcessOperator(self.function)


class CoProcessOperator(TwoInputOperator):
    """A CoProcessFunction or KeyedCoProcessFunction."""

    method = "process_element"

    def open(self, context: OperatorContext) -> None:
        """Opens the function with its contexts."""
        self.process_context = ProcessContext(context, self.function if context.backend is not None else None)
        super().open(context)

    def fire_timers(self, timestamp: int) -> bool:
        return self.process_context.advance_watermark(timestamp)

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``for v1 in process_element1(v0, ctx):`` and on."""
        write_process_call(writer, self.calls[index], self.process_context, value)
