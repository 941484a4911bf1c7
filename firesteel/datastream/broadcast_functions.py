"""Functions on a stream that is connected with a broadcast stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from firesteel.api.generics import Generic, IN1_contra, IN2_contra, KEY_contra, OUT_co
from firesteel.datastream.function_base import Function, Results
from firesteel.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    State,
    StateDescriptor,
)
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService

__all__ = ["BaseBroadcastProcessFunction", "BroadcastProcessFunction", "KeyedBroadcastProcessFunction"]


class BaseBroadcastProcessFunction(Function):
    """Base class of broadcast functions.

    A record of the broadcast side is processed in every subtask. Its changes to the broadcast state must depend only on
    the record and that state, so that all subtasks have the same state. The order of the two sides is undefined, except
    in a batch, which reads the broadcast side first.
    """

    class BaseContext(ABC):
        """The context of a record of either side."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp, or None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current event time in milliseconds."""

    class Context(BaseContext):
        """The broadcast side's context, which may change the broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state a descriptor names."""

    class ReadOnlyContext(BaseContext):
        """The other side's context, which may only read the broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """A view of the broadcast state a descriptor names."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes a stream together with a broadcast stream.

    Yield ``(tag, value)`` for a side output, on either side.
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """The broadcast side's context."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """The other side's context."""

    @abstractmethod
    def process_element(self, value: IN1_contra, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Results[OUT_co]:
        """Yields the results for a record of the stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2_contra, ctx: BroadcastProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for a record of the broadcast stream."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]):
    """Processes a keyed stream together with a broadcast stream, with keyed state and timers.

    Yield ``(tag, value)`` for a side output, on either side and in ``on_timer``.
    """

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """The broadcast side's context; it has no key, and so there is no keyed state except for all keys."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, State], Any]
        ) -> None:
            """Calls ``function(key, state)`` for every key that has a value; the function may change or clear it.

            Available in Flink's Java API, but not in PyFlink. An object with a method ``process(key, state)`` is also
            accepted. In a batch, no key has a value yet when the broadcast side is processed, so the function is not
            called.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """The keyed side's context."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Reads the clocks and sets timers for the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """The context of a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The time domain of the timer."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the timer."""

    @abstractmethod
    def process_element(self, value: IN1_contra, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Results[OUT_co]:
        """Yields the results for a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Results[OUT_co]:
        """Yields the results for a record of the broadcast stream."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Results[OUT_co]:
        """Yields the results when a timer fires."""
