"""Operators that become lines of their chain's generated loop.

Each gives the code that handles one record held in a variable; see ``runtime.codegen.loops`` for how the lines of a
whole chain become one function. Nothing here runs per record except what the generated lines name.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.codegen.ownership import keeps_nothing
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.base import CheckpointedOperator
from firesteel.runtime.operators.contexts import ProcessContext

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = [
    "FilterOperator",
    "FilterSpec",
    "FlatMapOperator",
    "FlatMapSpec",
    "InlineOperator",
    "MapOperator",
    "MapSpec",
    "ProcessOperator",
    "ProcessSpec",
]


class InlineOperator(CheckpointedOperator, ABC):
    """An operator of one input that handles records one by one."""

    method = ""
    emits_own_records = True  # those of timers, which are gathered

    def __init__(self, function: Any):
        self.function = self.user_function = function
        self.call = method_of(function, self.method)
        self.is_rich = self.call is not function
        """A bare callable has no open() and so can never reach keyed state: its key need not be set."""

    def open(self, context: OperatorContext) -> None:
        self.context = context
        if hasattr(self.function, "open") and self.is_rich:
            self.function.open(context.runtime_context)

    def close(self) -> None:
        if hasattr(self.function, "close") and self.is_rich:
            self.function.close()

    def process_watermark(self, timestamp: int) -> None:
        """Event time has reached the timestamp: fires all timers that are due, then passes the watermark on."""
        while not self.fire_timers(timestamp):
            pass
        self.context.emit_watermark(timestamp)

    def write_key(self, writer: LoopWriter, value: str) -> None:
        """Sets the current key, where the operator is keyed and could read it."""
        selectors = self.context.key_selectors
        if selectors and self.is_rich and not writer.sets_key_of(self.context):
            key = writer.new_variable("k")
            backend = writer.bind("backend", self.context.backend)
            writer.line(f"{backend}.key = {key} = {writer.call(selectors[0], value)}", element=value, what="key_by")

    @abstractmethod
    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines for one record, which is in the variable ``value``."""


@dataclass(frozen=True)
class MapSpec(FunctionSpec):
    """One result per record."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return MapOperator(self.function)


class MapOperator(InlineOperator):
    """One result per record."""

    method = "map"
    is_one_to_one = True

    def write(self, writer: LoopWriter, value: str) -> None:
        """``v1 = f(v0)`` and on."""
        self.write_key(writer, value)
        result = writer.new_variable("v")
        writer.line(f"{result} = {writer.call(self.call, value)}", element=value)
        writer.derive(result, value, self.call)
        writer.write_consumers(result)

    @property
    def keeps_records(self) -> bool:  # type: ignore[override]
        """Unless it can be seen that the function does not."""
        return not keeps_nothing(self.call)


@dataclass(frozen=True)
class FilterSpec(FunctionSpec):
    """Keeps records for which the function is true."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return FilterOperator(self.function)


class FilterOperator(InlineOperator):
    """Keeps what the function accepts."""

    method = "filter"

    def write(self, writer: LoopWriter, value: str) -> None:
        """``if f(v0):`` and on."""
        self.write_key(writer, value)
        with writer.block(f"if {writer.call(self.call, value)}:", element=value):
            writer.show(value, self.call)
            writer.write_consumers(value)

    @property
    def keeps_records(self) -> bool:  # type: ignore[override]
        """Unless it can be seen that the function does not."""
        return not keeps_nothing(self.call, is_predicate=True)


@dataclass(frozen=True)
class FlatMapSpec(FunctionSpec):
    """Any number of results per record."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return FlatMapOperator(self.function)


class FlatMapOperator(InlineOperator):
    """Any number of results per record."""

    method = "flat_map"

    def write(self, writer: LoopWriter, value: str) -> None:
        """``for v1 in f(v0):`` and on."""
        self.write_key(writer, value)
        result = writer.new_variable("v")
        with writer.block(f"for {result} in {writer.call(self.call, value)} or ():", element=value):
            writer.write_consumers(result)
            writer.write_room_check()


@dataclass(frozen=True)
class ProcessSpec(FunctionSpec):
    """A ProcessFunction, or on a keyed stream a KeyedProcessFunction."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return ProcessOperator(self.function)


class ProcessOperator(InlineOperator):
    """A ProcessFunction or a KeyedProcessFunction with its timers."""

    method = "process_element"

    def open(self, context: OperatorContext) -> None:
        """Opens the function with its contexts."""
        keyed = context.backend is not None
        self.process_context = ProcessContext(context, self.function if keyed else None)
        super().open(context)

    def fire_timers(self, timestamp: int) -> bool:
        return self.process_context.advance_watermark(timestamp)

    def write(self, writer: LoopWriter, value: str) -> None:
        """``for v1 in process_element(v0, ctx):`` and on."""
        self.write_key(writer, value)
        write_process_call(writer, self.call, self.process_context, value)


def write_process_call(
    writer: LoopWriter, call: Callable[..., Any], process_context: ProcessContext, value: str
) -> None:
    """Writes the call of a process function on one record and the handling of its results."""
    context = writer.bind("ctx", process_context)
    if writer.with_timestamps:
        writer.line(f"{context}.time = {writer.timestamp}")
    else:
        writer.prologue(f"{context}.time = None")
    write_tagged_results(writer, call, f"{value}, {context}", value)


def write_tagged_results(writer: LoopWriter, call: Callable[..., Any], arguments: str, value: str) -> None:
    """Writes the call of a function that returns or yields results and ``(tag, result)``, and what they go to."""
    process = writer.bind("process", call)
    result = writer.new_variable("v")
    if inspect.isgeneratorfunction(call):
        header = f"for {result} in {process}({arguments}):"
    else:
        results = writer.new_variable("r")
        writer.line(f"{results} = {process}({arguments})", element=value, function=call)
        header = f"for {result} in {results} if {results} is not None else ():"
    with writer.block(header, element=value, function=call):
        writer.write_tagged_consumers(result)
        writer.write_room_check()
