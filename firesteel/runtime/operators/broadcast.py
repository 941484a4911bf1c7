"""Broadcast operators, which read a stream and a broadcast stream, inlined into the loop of each input.

Input 0 is the stream itself, which is keyed or not; input 1 is the broadcast side. Its records reach every subtask,
which is to keep in its broadcast state what it needs of them: the subtasks' copies are alike as long as the function
makes the same changes in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.api.state import MapStateDescriptor
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.broadcast_contexts import (
    BroadcastContext,
    KeyedBroadcastContext,
    ReadOnlyBroadcastContext,
)
from firesteel.runtime.operators.co import TwoInputOperator
from firesteel.runtime.operators.inline import write_process_call
from firesteel.runtime.state.api.backend import NO_KEY

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext
    from firesteel.runtime.operators.inline import InlineOperator

__all__ = ["BroadcastOperator", "BroadcastProcessSpec", "KeyedBroadcastOperator", "KeyedBroadcastProcessSpec"]

_BROADCAST_SIDE = 1


@dataclass(frozen=True)
class BroadcastProcessSpec(FunctionSpec):
    """A BroadcastProcessFunction; its second input, index 1, is the broadcast side."""

    broadcast_states: tuple[MapStateDescriptor, ...]

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return BroadcastOperator(self.function, self.broadcast_states)

    def declares_states(self, *, is_keyed: bool) -> bool:
        """The broadcast states, at least."""
        return True

    @property
    def has_broadcast_side(self) -> bool:
        """Whether the second input is a broadcast stream."""
        return True


@dataclass(frozen=True)
class KeyedBroadcastProcessSpec(BroadcastProcessSpec):
    """A KeyedBroadcastProcessFunction; only its first input is keyed."""

    def create(self, runtime: OperatorRuntime) -> InlineOperator:
        """Returns a new operator for one subtask."""
        return KeyedBroadcastOperator(self.function, self.broadcast_states)


class BroadcastOperator(TwoInputOperator):
    """A BroadcastProcessFunction."""

    method = "process_element"
    context_class: type[BroadcastContext] = BroadcastContext

    def __init__(self, function: Any, descriptors: Sequence[MapStateDescriptor]):
        super().__init__(function)
        self.calls = (function.process_element, function.process_broadcast_element)
        self.descriptors = tuple(descriptors)

    def open(self, context: OperatorContext) -> None:
        """Opens the function with its contexts; every broadcast state is there from now on, if only an empty one."""
        keyed = context.backend is not None
        self.process_context = ReadOnlyBroadcastContext(context, self.function if keyed else None, self.descriptors)
        self.broadcast_context = self.context_class(context, self.process_context, self.descriptors)
        super().open(context)

    def fire_timers(self, timestamp: int) -> bool:
        return self.process_context.advance_watermark(timestamp)

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``for v1 in process_element(v0, ctx):`` and on."""
        context: Any = self.broadcast_context if index == _BROADCAST_SIDE else self.process_context
        write_process_call(writer, self.calls[index], context, value)


class KeyedBroadcastOperator(BroadcastOperator):
    """A KeyedBroadcastProcessFunction with its timers."""

    context_class = KeyedBroadcastContext

    def write_input(self, writer: LoopWriter, value: str, index: int) -> None:
        """Sets the key of a record, or that there is none: else the last one's would still be there."""
        if index != _BROADCAST_SIDE:
            super().write_input(writer, value, index)
            return
        writer.prologue(f"{writer.bind('backend', self.context.backend)}.key = {writer.bind('no_key', NO_KEY)}")
        self.write_call(writer, value, index)
