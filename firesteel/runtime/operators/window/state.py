"""Keyed state of window operators, in a format from which each of them can be restored.

Both keep the panes in the state ``window-contents``, one namespace per window. The general operator also has timers
per key and window (``window-timers``): one at the window's last timestamp, until it fires, and one for when the pane is
deleted. The aligned operator has one agenda for all keys instead. So:

1. The aligned operator keeps, in the state ``window-fired``, the keys for which a window has fired and stays because of
   allowed lateness; a pane without such a mark is yet to fire. The existence of that state identifies its writer.
2. In a canonical snapshot it leaves ``window-fired`` out, and writes the timers that the general operator would have.
3. When the aligned operator is restored and finds ``window-fired``, it makes its agenda from the windows and marks.
4. When it does not, a pane has fired if there is no timer at its window's last timestamp. It makes its marks and its
   agenda of that, and removes the timers.
5. When the general operator is restored and finds ``window-fired``, it registers the timers of step 2, and drops it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.state.api.backend import KeyedStateBackend, ObjectStateBackend
from firesteel.runtime.state.api.chunks import timer_table
from firesteel.runtime.time.timers import InternalTimerService

__all__ = [
    "CONTENTS_STATE",
    "FIRED_STATE",
    "MERGING_WINDOWS_STATE",
    "WINDOW_TIMERS",
    "PaneTimers",
    "contents_descriptor",
    "panes_yet_to_fire",
    "register_timers_of_aligned_windows",
]

CONTENTS_STATE = "window-contents"
"""The state with the contents of each key's windows, one namespace per window."""

FIRED_STATE = "window-fired"
"""The state with the keys for which a window has fired, one namespace per window."""

MERGING_WINDOWS_STATE = "merging-window-set"
"""The state that maps each key's windows in flight to the windows their contents are stored under."""

WINDOW_TIMERS = "window-timers"
"""The timers of the general operator."""


def contents_descriptor(spec: WindowSpec) -> StateDescriptor:
    """The descriptor of ``window-contents``. With an evictor, elements are kept, as ``TimestampedValue``."""
    if spec.evictor is not None:
        return ListStateDescriptor(CONTENTS_STATE)
    if spec.aggregation == "reduce":
        return ReducingStateDescriptor(CONTENTS_STATE, spec.aggregate_function)
    if spec.aggregation == "aggregate":
        return AggregatingStateDescriptor(CONTENTS_STATE, spec.aggregate_function)
    return ListStateDescriptor(CONTENTS_STATE)


class PaneTimers:
    """The timers that the general operator has for panes of event-time windows."""

    source = CONTENTS_STATE
    table = timer_table(f"{WINDOW_TIMERS}/event")
    omitted = frozenset({FIRED_STATE})

    def __init__(self, lateness: int, fired: Mapping[Any, Container[Any]]):
        self._lateness = lateness
        self._fired = fired

    def timers(self, namespace: Any, keys: Sequence[Any]) -> list[tuple[int, Any, Any]]:
        """The timers of some keys in a window."""
        last = namespace.max_timestamp()
        cleanup = min(last + self._lateness, MAX_WATERMARK)
        fired = self._fired.get(namespace, ())
        timers = [(last, key, namespace) for key in keys if key not in fired]
        if last < cleanup < MAX_WATERMARK:
            timers += [(cleanup, key, namespace) for key in keys]
        return timers


def panes_yet_to_fire(backend: KeyedStateBackend) -> dict[Any, set[Any]]:
    """Step 4: per window the keys that the general operator had a timer for; removes the timers."""
    queue = backend.timer_queue(f"{WINDOW_TIMERS}/event")
    waiting: dict[Any, set[Any]] = {}
    for timestamp, key, window in queue.live:
        if timestamp == window.max_timestamp():
            waiting.setdefault(window, set()).add(key)
    queue.clear()
    return waiting


def register_timers_of_aligned_windows(backend: KeyedStateBackend, timers: InternalTimerService, lateness: int) -> None:
    """Step 5: gives the general operator its timers, if the aligned one wrote the state it was restored with."""
    if not isinstance(backend, ObjectStateBackend) or FIRED_STATE not in backend.restored_states():
        return
    fired: dict[Any, set[Any]] = {}
    for window, key, _ in backend.entries(FIRED_STATE):
        fired.setdefault(window, set()).add(key)
    pane_timers = PaneTimers(lateness, fired)
    for window, key, _ in backend.entries(CONTENTS_STATE):
        for timestamp, _, _ in pane_timers.timers(window, (key,)):
            backend.key = key
            timers.register_event_time_timer(window, timestamp)
    backend.key = None
    backend.drop_state(FIRED_STATE)
