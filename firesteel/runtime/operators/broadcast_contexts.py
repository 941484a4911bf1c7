"""Contexts of broadcast process functions: time and broadcast state, which only the broadcast side may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.api.pickled_key import plain_key
from firesteel.api.state import MapStateDescriptor, StateDescriptor
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.operators.contexts import ProcessContext

if TYPE_CHECKING:
    from firesteel.runtime.operators.base import OperatorContext
    from firesteel.runtime.state.api.operator_state import HeapBroadcastState, ReadOnlyHeapBroadcastState

__all__ = ["BroadcastContext", "KeyedBroadcastContext", "ReadOnlyBroadcastContext"]

S = TypeVar("S")


class ReadOnlyBroadcastContext(ProcessContext):
    """The ctx argument of process_element and on_timer: it may read the broadcast state."""

    __slots__ = ("_views",)

    def __init__(self, context: OperatorContext, function: Any, descriptors: Iterable[MapStateDescriptor]):
        super().__init__(context, function)
        get = context.operator_state.get_broadcast_state
        self._views = {each.get_name(): get(each).read_only(each.get_name()) for each in descriptors}

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        """The event time this operator has reached."""
        return self._timer_service.current_watermark()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyHeapBroadcastState:
        """A view of the broadcast state a descriptor names."""
        return _find(self._views, state_descriptor)


class BroadcastContext:
    """The ctx argument of process_broadcast_element: it may change the broadcast state."""

    __slots__ = ("_context", "_states", "_time", "time")

    def __init__(
        self,
        context: OperatorContext,
        process_context: ReadOnlyBroadcastContext,
        descriptors: Iterable[MapStateDescriptor],
    ):
        self.time: int | None = None
        self._context = context
        self._time = process_context.timer_service()
        self._states = {each.get_name(): context.operator_state.get_broadcast_state(each) for each in descriptors}

    def timestamp(self) -> int | None:
        """The event time of the record at hand, None if it has none."""
        return self.time

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._time.current_processing_time()

    def current_watermark(self) -> int:
        """The event time this operator has reached."""
        return self._time.current_watermark()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> HeapBroadcastState:
        """The broadcast state a descriptor names."""
        return _find(self._states, state_descriptor)


class KeyedBroadcastContext(BroadcastContext):
    """The same where the other side is keyed: it can also go over that side's state, key by key."""

    __slots__ = ()

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Any) -> None:
        """Calls a function with each key that has a value in a state, and the state, which it may change."""
        if not isinstance(state_descriptor, StateDescriptor):
            raise TypeError(f"apply_to_keyed_state needs a StateDescriptor, got {state_descriptor!r}.")
        process: Callable[[Any, Any], Any] = getattr(function, "process", function)
        if not callable(process):
            raise TypeError(f"apply_to_keyed_state needs a function of key and state, got {function!r}.")
        # in a batch no key has a value yet, and afterwards only one at a time: as in Flink there is nothing to do
        if not self._context.execution.one_key_at_a_time:
            assert self._context.backend is not None
            self._context.backend.apply_to_all_keys(state_descriptor, lambda key, state: process(plain_key(key), state))


def _find(states: dict[str, S], descriptor: MapStateDescriptor) -> S:
    if not isinstance(descriptor, MapStateDescriptor):
        raise TypeError(f"get_broadcast_state needs a MapStateDescriptor, got {descriptor!r}.")
    found = states.get(descriptor.name)
    if found is None:
        known = ", ".join(f"'{name}'" for name in sorted(states))
        raise InvalidProgramError(
            f"There is no broadcast state '{descriptor.name}' here, only {known}.",
            hint="Give its descriptor to broadcast(...), too, or check the name for typos.",
        )
    return found
