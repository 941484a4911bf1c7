"""Contexts of triggers, window assigners and process window functions."""

from __future__ import annotations

import copy
from typing import Any, Protocol

from firesteel.common.errors import FiresteelError
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.time.timers import InternalTimerService

__all__ = [
    "EvictorContext",
    "ProcessWindowContext",
    "TriggerContext",
    "WindowAssignerContext",
    "WindowStateStore",
    "WindowTime",
]


class WindowTime(Protocol):
    """The two clocks of a window operator."""

    @property
    def current_watermark(self) -> int:
        """How far event time has come."""
        ...

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...


class _NamespacedStates:
    """States of a backend that belong to one user of it, under names of their own."""

    __slots__ = ("_backend", "_prefix", "_states")

    def __init__(self, backend: KeyedStateBackend, prefix: str):
        self._backend = backend
        self._prefix = prefix
        self._states: dict[tuple[str, type], Any] = {}

    def get(self, descriptor: Any, namespace: Any) -> Any:
        """The descriptor's state, turned to a namespace."""
        name = descriptor.get_name()
        state = self._states.get((name, type(descriptor)))
        if state is None:
            # A backend has one state object per name. Without the prefix, turning a trigger's "count" to a
            # window would also turn a user's state of that name, held since open().
            prefixed = copy.copy(descriptor)
            prefixed.name = f"{self._prefix}/{name}"
            state = self._backend.get_state(prefixed, namespace_aware=True)
            self._states[name, type(descriptor)] = state
        state.set_current_namespace(namespace)
        return state


class TriggerContext:
    """The context of every trigger call, and in ``on_merge`` also Flink's OnMergeContext."""

    __slots__ = (
        "_runtime_context",
        "_states",
        "_timers",
        "merged_windows",
        "window",
    )

    def __init__(self, runtime_context: Any, timers: InternalTimerService, backend: KeyedStateBackend):
        self._runtime_context = runtime_context
        self._timers = timers
        self._states = _NamespacedStates(backend, "trigger")
        self.window: Any = None
        self.merged_windows: list[Any] = []

    def get_current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._timers.current_processing_time()

    def get_current_watermark(self) -> int:
        """How far event time has come."""
        return self._timers.current_watermark

    def get_metric_group(self) -> Any:
        return self._runtime_context.get_metrics_group()

    def register_processing_time_timer(self, time: int) -> None:
        """Calls on_processing_time for this key and window once the wall clock is there."""
        self._timers.register_processing_time_timer(self.window, time)

    def register_event_time_timer(self, time: int) -> None:
        """Calls on_event_time for this key and window once the watermark is there."""
        self._timers.register_event_time_timer(self.window, time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time_timer(self.window, time)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time_timer(self.window, time)

    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        """The trigger's state of this key and window."""
        return self._states.get(state_descriptor, self.window)

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        """Merges the trigger's state of the windows being merged into that of the result."""
        if not self.merged_windows:
            return
        state = self._states.get(state_descriptor, self.window)
        if not hasattr(state, "merge_namespaces"):
            raise FiresteelError(
                f"The state '{state_descriptor.get_name()}' of a trigger cannot be merged.",
                hint="Use a ReducingState, an AggregatingState or a ListState where windows merge.",
            )
        # a window that only grows keeps its own state: it is both target and source
        state.merge_namespaces(self.window, [window for window in self.merged_windows if window != self.window])


class WindowAssignerContext:
    """The context of ``assign_windows``."""

    __slots__ = ("_runtime_context", "_time")

    def __init__(self, time: WindowTime, runtime_context: Any):
        self._time = time
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._time.current_processing_time()

    def get_runtime_context(self) -> Any:
        """The runtime context; its keyed state is that of the element's key."""
        return self._runtime_context


class EvictorContext:
    """The context of an evictor."""

    __slots__ = ("_runtime_context", "_time")

    def __init__(self, time: WindowTime, runtime_context: Any):
        self._time = time
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._time.current_processing_time()

    def get_current_watermark(self) -> int:
        """How far event time has come."""
        return self._time.current_watermark

    def get_metric_group(self) -> Any:
        return self._runtime_context.get_metrics_group()


class WindowStateStore:
    """Per-key and per-window state of a process window function."""

    __slots__ = ("_merging", "_states", "window")

    def __init__(self, backend: KeyedStateBackend, merging: bool):
        self._states = _NamespacedStates(backend, "window")
        self._merging = merging
        self.window: Any = None

    def _get(self, state_descriptor: Any) -> Any:
        if self._merging:
            raise FiresteelError(
                "Per-window state is not allowed with merging windows.",
                hint="Use context.global_state(), or windows that do not merge.",
            )
        return self._states.get(state_descriptor, self.window)

    def get_state(self, state_descriptor: Any) -> Any:
        """A ValueState of this key and window."""
        return self._get(state_descriptor)

    def get_list_state(self, state_descriptor: Any) -> Any:
        """A ListState of this key and window."""
        return self._get(state_descriptor)

    def get_map_state(self, state_descriptor: Any) -> Any:
        """A MapState of this key and window."""
        return self._get(state_descriptor)

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        """A ReducingState of this key and window."""
        return self._get(state_descriptor)

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        """An AggregatingState of this key and window."""
        return self._get(state_descriptor)


class ProcessWindowContext:
    """The context of a Process(All)WindowFunction."""

    __slots__ = ("_runtime_context", "_store", "_time", "current_window")

    def __init__(self, time: WindowTime, runtime_context: Any, store: WindowStateStore | None):
        self._time = time
        self._runtime_context = runtime_context
        self._store = store
        self.current_window: Any = None

    def window(self) -> Any:
        """The window being evaluated or cleared."""
        return self.current_window

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._time.current_processing_time()

    def current_watermark(self) -> int:
        """How far event time has come."""
        return self._time.current_watermark

    def window_state(self) -> WindowStateStore:
        """State per key and window; delete it in ``clear``."""
        if self._store is None:
            raise FiresteelError("Per-window state needs a keyed stream.")
        self._store.window = self.current_window
        return self._store

    def global_state(self) -> Any:
        """State per key, shared by all windows."""
        return self._runtime_context
