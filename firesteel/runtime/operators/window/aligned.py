"""The fast window operator for windows that are the same for all keys: tumbling and sliding event time.

Instead of a timer per key and window there is one per window, and instead of through the interfaces of keyed state it
works on the backend's dictionaries, one per window. What it emits is what :class:`WindowOperator` emits, and each can
be restored from what the other wrote (see ``state``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import gcd
from typing import Any, NamedTuple

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.errors import FiresteelError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.codegen.functions import direct_call
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.window.contexts import (
    ProcessWindowContext,
    WindowAssignerContext,
    WindowStateStore,
)
from firesteel.runtime.operators.window.functions import InternalWindowFunction, check_spec
from firesteel.runtime.operators.window.late_records import LateRecords
from firesteel.runtime.operators.window.leftover_windows import LeftoverWindows
from firesteel.runtime.operators.window.output import WindowOutput
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.operators.window.state import (
    CONTENTS_STATE,
    FIRED_STATE,
    PaneTimers,
    contents_descriptor,
    panes_yet_to_fire,
)
from firesteel.runtime.operators.window.timestamped_value import check_written_without_evictor
from firesteel.runtime.operators.window.window_contents import Panes, make_contents
from firesteel.runtime.state.api.backend import ObjectStateBackend
from firesteel.types.copying import are_immutable, copy_all, copy_value

__all__ = ["AlignedWindowOperator", "WindowAlignment", "alignment_of"]


_SHORT_RUN = 12
"""Shorter runs go record by record through the windows, longer ones window by window through the records."""


class WindowAlignment(NamedTuple):
    """Windows of ``size`` that start every ``slide`` at ``offset``, all in milliseconds."""

    size: int
    slide: int
    offset: int


class OpenWindows(NamedTuple):
    """Windows that records of a batch go into, none of which has fired."""

    panes: list[Panes]
    changed: list[set[Any]]
    """Of windows that the next snapshot writes only in part, the keys that changed."""
    keys: list[Any]
    """Those of the records added, which ``mark_changed`` puts into ``changed``."""

    def mark_changed(self) -> None:
        """Marks what was added to, for the next snapshot."""
        for changed in self.changed:
            changed.update(self.keys)


def alignment_of(spec: WindowSpec) -> WindowAlignment | None:
    """How the windows of a spec are aligned, or None where the general operator is needed."""
    assigner = spec.assigner
    if spec.evictor is not None or type(spec.trigger).__name__ != "EventTimeTrigger":
        return None
    kind = type(assigner).__name__
    if kind == "TumblingEventTimeWindows":
        return WindowAlignment(assigner.size, assigner.size, assigner.offset)
    if kind == "SlidingEventTimeWindows":
        return WindowAlignment(assigner.size, assigner.slide, assigner.offset)
    return None


class AlignedWindowOperator(StreamOperator):
    """Tumbling and sliding event-time windows with the event-time trigger.

    Time is cut into *slices* in which every timestamp belongs to the same windows (a tumbling window is one
    slice). A batch is split by slice; then each part goes into its windows in one loop.
    """

    emits_own_records = True

    def __init__(self, spec: WindowSpec):
        check_spec(spec)
        alignment = alignment_of(spec)
        if alignment is None:
            raise FiresteelError(f"{type(spec.assigner).__name__} with this trigger is not aligned.")
        self.spec = spec
        self._size, self._slide, self._offset = alignment
        self._slice = gcd(self._size, self._slide)
        self._lateness = spec.allowed_lateness
        self._holds_elements = spec.aggregation is None
        self._windows: dict[int, Panes] = {}
        self._fired: set[int] = set()
        self._waiting: dict[int, dict[Any, None]] = {}
        """Restored windows that have fired, with the keys that fire (again) once event time is back where it was."""
        self._agenda: list[tuple[int, int]] = []  # (time, window start): first to fire it, then to delete it
        self._leftovers = LeftoverWindows(self._fire_keys, self._delete_panes)
        self._suspended: tuple[TimeWindow, list[Any], Callable[[], None]] | None = None
        """A window of which some panes have fired, the keys of the others, and what is to be done when all have."""
        self.current_watermark = MIN_TIMESTAMP

    def open(self, context: OperatorContext) -> None:
        """Opens the user's window function, and adds restored windows."""
        super().open(context)
        selector = context.key_selectors[0] if context.key_selectors else None
        self._key_selector: Callable[[Any], Any] = (lambda _: 0) if selector is None else direct_call(selector)
        backend = context.backend
        if not isinstance(backend, ObjectStateBackend):
            raise FiresteelError(f"Aligned windows need a backend that keeps objects, not {type(backend).__name__}.")
        self._backend = backend
        self._contents = make_contents(
            self.spec, context, is_shared=self._lateness > 0 or (self._slide < self._size and self._holds_elements)
        )
        self._output = WindowOutput(context)
        self._late = LateRecords(self.spec, context, self._output)
        store = WindowStateStore(backend, merging=False)
        self._function = InternalWindowFunction(self.spec, ProcessWindowContext(self, context.runtime_context, store))
        self._changed: dict[int, set[Any]] = {}
        self._new: set[int] = set()
        """Windows since the last snapshot, which are all in the next one."""
        backend.get_state(contents_descriptor(self.spec), namespace_aware=True, internal=True)
        backend.get_state(ValueStateDescriptor(FIRED_STATE), namespace_aware=True, internal=True)
        self._table, self._marks = backend.state_table(CONTENTS_STATE), backend.state_table(FIRED_STATE)
        self._table.on_snapshot(self._changed.clear)
        self._table.on_snapshot(self._new.clear)
        self._tracked = self._table.tracked
        backend.derived_timers = self._pane_timers
        self._take_up(backend)
        self._function.open(context.runtime_context)

    def close(self) -> None:
        if hasattr(self, "_function"):
            self._function.close()

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self.context.processing_time()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        if not values:
            return
        if timestamps is None:
            self._refuse(values[0])
            return
        earliest = min(timestamps)
        if earliest == MIN_TIMESTAMP:
            self._refuse(values[timestamps.index(earliest)])
        first = earliest - (earliest - self._offset) % self._slice
        if max(timestamps) < first + self._slice:
            windows = self._open_windows(first)
            if windows is not None:
                self._add(windows, values)
                windows.mark_changed()
                return
        if self._size == self._slide:
            self._process_by_window(values, timestamps)
        else:
            self._process_by_run(values, timestamps)
        self._output.flush()

    def fire_timers(self, timestamp: int) -> bool:
        """Fires and deletes windows that are due, in the order of their ends."""
        self.current_watermark = max(timestamp, self.current_watermark)
        done = self._go_on() and self._leftovers.advance(timestamp) and self._advance(timestamp)
        self._output.flush()
        return done

    def _advance(self, timestamp: int) -> bool:
        agenda, turn = self._agenda, self.context.turn
        while agenda and agenda[0][0] <= timestamp:
            _, start = heapq.heappop(agenda)
            if start not in self._fired:
                if not self._fire_window(start):
                    return False
            elif start in self._waiting:
                if not self._fire_keys(self._window(start), list(self._waiting.pop(start))):
                    return False
            else:
                self._delete_window(start)
            if turn.is_over:
                return False
        return True

    def _process_by_window(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """Adds records to tumbling windows: gathers those of each open window first.

        Windows share nothing, so only the order within each matters.
        """
        size, offset = self._size, self._offset
        gathered: dict[int, list[Any] | None] = {}
        begin = end = 0
        part: list[Any] | None = None
        for value, timestamp in zip(values, timestamps, strict=True):
            if not begin <= timestamp < end:
                begin = timestamp - (timestamp - offset) % size
                end = begin + size
                if begin in gathered:
                    part = gathered[begin]
                else:
                    part = gathered[begin] = None if self._open_windows(begin) is None else []
            if part is None:
                self._process_one(value, timestamp, begin)
            else:
                part.append(value)
        for start, part in gathered.items():
            if part is not None:
                windows = self._opened((start,))
                self._add(windows, part)
                windows.mark_changed()

    def _process_by_run(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """Adds records to sliding windows: run by run of one slice.

        Slices share windows, so records must go into them in the order they came.
        """
        size, offset = self._slice, self._offset
        begin = end = 0
        slices: dict[int, OpenWindows | None] = {}
        windows: OpenWindows | None = None
        run: list[Any] = []
        for value, timestamp in zip(values, timestamps, strict=True):
            if not begin <= timestamp < end:
                if windows is not None:
                    self._add(windows, run)
                    run = []
                begin = timestamp - (timestamp - offset) % size
                end = begin + size
                if begin in slices:
                    windows = slices[begin]
                else:
                    windows = slices[begin] = self._open_windows(begin)
            if windows is None:
                self._process_one(value, timestamp, begin)
            else:
                run.append(value)
        if windows is not None:
            self._add(windows, run)
        for windows in slices.values():
            if windows is not None:
                windows.mark_changed()

    def _add(self, windows: OpenWindows, values: Sequence[Any]) -> None:
        """Adds records to open windows; nothing can fire."""
        panes, changed, added = windows
        try:
            if len(panes) == 1 and not changed:
                self._contents.add_all(panes[0], map(self._key_selector, values), values)
                return
            keys = list(map(self._key_selector, values))
            if len(panes) > 1 and self._copies_values(values):
                # each window's aggregate gets values of its own, made before a function can change one
                copies = [*(copy_all(values) for _ in panes[1:]), values]
                for one, own in zip(panes, copies, strict=True):
                    self._contents.add_all(one, keys, own)
            elif len(values) < _SHORT_RUN:
                for key, value in zip(keys, values, strict=True):
                    self._contents.add_to_each(panes, key, value)
            else:
                for one in panes:
                    self._contents.add_all(one, keys, values)
            if changed:
                added += keys
        except Exception as error:
            # a failure is explained by the current key and the local named value; the loops set neither
            key, value = self._contents.failed_record(error)
            self._set_key(key)
            raise

    def _process_one(self, value: Any, timestamp: int, slice_start: int) -> None:
        """Adds one record of a slice with windows that have fired or are gone, or with none at all."""
        skipped = True
        watermark = self.current_watermark
        key = None
        for start in self._starts(slice_start):
            if self._cleanup_time(start) <= watermark:
                continue
            if skipped:
                skipped = False
                key = self._key_selector(value)
                self._set_key(key)
            panes = self._windows.get(start)
            if panes is None:
                panes = self._open_window(start)
            self._contents.add_to_each((panes,), key, copy_value(value) if self._copies_values((value,)) else value)
            if self._tracked and start not in self._new:
                self._changes(start).add(key)
            if start in self._fired:
                self._fire_late(start, key)
        if skipped and timestamp + self._lateness <= watermark:
            self._late.add(value, timestamp)

    def _copies_values(self, values: Sequence[Any]) -> bool:
        """Whether records that go into several windows must be copied: a function may change and keep its own."""
        return not (
            self._holds_elements or self._size == self._slide or self.context.reuses_objects or are_immutable(values)
        )

    def _starts(self, slice_start: int) -> range:
        """The starts of the windows a slice belongs to, the latest first."""
        last = slice_start - (slice_start - self._offset) % self._slide
        return range(last, slice_start - self._size, -self._slide)

    def _open_windows(self, slice_start: int) -> OpenWindows | None:
        """The windows of a slice if there are any and none has fired."""
        starts = self._starts(slice_start)
        closed = self.current_watermark - self._size + 1
        if not starts or starts[-1] <= closed or not self._fired.isdisjoint(starts):
            return None
        windows = self._windows
        for start in starts:
            if start not in windows:
                self._open_window(start)
        return self._opened(starts)

    def _opened(self, starts: Sequence[int]) -> OpenWindows:
        windows = self._windows
        changed = [self._changes(start) for start in starts if start not in self._new] if self._tracked else []
        return OpenWindows([windows[start] for start in starts], changed, [])

    def _open_window(self, start: int) -> Panes:
        panes = self._windows[start] = self._contents.new_panes()
        self._table.add_new(self._window(start), panes)
        self._new.add(start)
        last = start + self._size - 1
        if last > self.current_watermark:
            heapq.heappush(self._agenda, (last, start))
        else:
            self._fired.add(start)
            self._schedule_cleanup(start)
        return panes

    def _window(self, start: int) -> TimeWindow:
        return TimeWindow(start, start + self._size)

    def _changes(self, start: int) -> set[Any]:
        changed = self._changed.get(start)
        if changed is None:
            changed = self._changed[start] = self._table.changed(self._window(start))
        return changed

    def _schedule_cleanup(self, start: int) -> None:
        time = self._cleanup_time(start)
        if time < MAX_WATERMARK:
            heapq.heappush(self._agenda, (time, start))

    def _cleanup_time(self, start: int) -> int:
        return min(start + self._size - 1 + self._lateness, MAX_WATERMARK)

    def _fire_window(self, start: int) -> bool:
        """Fires the panes of a window; False if the turn ended before all had fired."""
        return self._fire(self._window(start), list(self._windows[start]), partial(self._window_fired, start))

    def _window_fired(self, start: int) -> None:
        self._fired.add(start)
        if self._cleanup_time(start) > start + self._size - 1:
            self._mark_fired(self._window(start), self._windows[start])
            self._schedule_cleanup(start)
        else:
            self._delete_window(start)

    def _fire_keys(self, window: TimeWindow, keys: list[Any]) -> bool:
        """Fires panes of a window that is not deleted yet; False if the turn ended before all had fired."""
        return self._fire(window, keys, partial(self._mark_fired, window, keys))

    def _fire(self, window: TimeWindow, keys: list[Any], then: Callable[[], None]) -> bool:
        """Fires panes while the turn lasts, and when all have fired does what is to be done then; False if not all."""
        panes, turn = self._table.namespaces[window], self.context.turn
        if self.spec.window_function is None:
            self._set_key(None)
            result = self._contents.result
            turn.cursor = cursor = iter(list(map(panes.__getitem__, keys)))
            results = [contents for stored in cursor if (contents := result(stored)) is not None]
            if results:
                self.context.emit(results, [window.max_timestamp()] * len(results))
        else:
            turn.cursor = cursor = iter(keys)
            for key in cursor:
                self._fire_pane(window, key, panes[key])
        left = len(turn.take_rest())
        if left:
            self._set_aside(window, keys[:-left])
            self._suspended = window, keys[-left:], then
            return False
        then()
        return True

    def _set_aside(self, window: TimeWindow, keys: Iterable[Any]) -> None:
        """Ensures that panes that have fired do not fire again if a snapshot is taken before the others fire."""
        if self._lateness:
            self._mark_fired(window, keys)
            return
        panes = self._table.namespaces[window]
        for key in keys:
            del panes[key]
            if self._function.clears:
                self._set_key(key)
                self._function.clear(window)
        if self._tracked:
            self._table.changed(window).update(keys)

    def _go_on(self) -> bool:
        """Fires the panes that an earlier turn has left."""
        if self._suspended is None:
            return True
        suspended, self._suspended = self._suspended, None
        return self._fire(*suspended)

    def _fire_late(self, start: int, key: Any) -> None:
        """A record came for a window that has fired: so does its pane."""
        window = self._window(start)
        if window.max_timestamp() <= self.current_watermark:
            self._fire_pane(window, key, self._windows[start][key])
            self._mark_fired(window, (key,))
            return
        # the job was restored, and event time is not back where it was when the window fired
        if start not in self._waiting:
            self._waiting[start] = {}
            heapq.heappush(self._agenda, (window.max_timestamp(), start))
        self._waiting[start][key] = None
        if self._marks.namespaces.get(window, {}).pop(key, None) and self._tracked:
            self._marks.changed(window).add(key)

    def _fire_pane(self, window: TimeWindow, key: Any, stored: Any) -> None:
        self._set_key(key)
        contents = self._contents.result(stored)
        if contents is not None:
            self._output.collect(self._function.process(key, window, contents), window.max_timestamp())

    def _mark_fired(self, window: TimeWindow, keys: Iterable[Any]) -> None:
        """Remembers for the next snapshot that panes have fired and stay."""
        self._marks.namespaces.setdefault(window, {}).update(dict.fromkeys(keys, True))
        if self._tracked:
            self._marks.changed(window).update(keys)

    def _delete_window(self, start: int) -> None:
        del self._windows[start]
        self._fired.discard(start)
        self._changed.pop(start, None)
        self._new.discard(start)
        self._delete_panes(self._window(start))

    def _delete_panes(self, window: TimeWindow) -> None:
        panes = self._table.namespaces[window]
        self._table.drop(window)
        self._marks.drop(window)
        if self._function.clears:
            for key in panes:
                self._set_key(key)
                self._function.clear(window)

    # ---- snapshots, see the steps of ``state`` ------------------------------------------------------

    def _pane_timers(self) -> PaneTimers:
        """Step 2."""
        return PaneTimers(self._lateness, {window: set(keys) for window, keys in self._marks.namespaces.items()})

    def _take_up(self, backend: ObjectStateBackend) -> None:
        """Makes panes and agenda of the windows that were restored (steps 3 and 4)."""
        restored = {window: panes for window, panes in self._table.namespaces.items() if window is not None}
        yet_to_fire = None if FIRED_STATE in backend.restored_states() else panes_yet_to_fire(backend)
        for window, stored in restored.items():
            panes = self._table.namespaces[window] = self._contents.new_panes()
            panes.update(stored)
            if self._holds_elements:
                for elements in stored.values():
                    check_written_without_evictor(elements[0])
            if yet_to_fire is not None:
                fired = [key for key in panes if key not in yet_to_fire.get(window, ())]
                if fired:
                    self._mark_fired(window, fired)
            marks = self._marks.namespaces.get(window, {})
            waiting = [key for key in panes if key not in marks]
            if window.end - window.start == self._size:
                self._take_up_window(window.start, panes, waiting)
            else:
                cleanup = min(window.max_timestamp() + self._lateness, MAX_WATERMARK)
                self._leftovers.add(window, waiting, cleanup)

    def _take_up_window(self, start: int, panes: Panes, waiting: list[Any]) -> None:
        self._windows[start] = panes
        if len(waiting) < len(panes):
            self._fired.add(start)
            self._schedule_cleanup(start)
            if not waiting:
                return
            self._waiting[start] = dict.fromkeys(waiting)
        heapq.heappush(self._agenda, (start + self._size - 1, start))

    def _set_key(self, key: Any) -> None:
        self._backend.key = key

    def _refuse(self, value: Any) -> None:
        """Raises the assigner's own error about a record without a timestamp."""
        context = WindowAssignerContext(self, self.context.runtime_context)
        self.spec.assigner.assign_windows(value, MIN_TIMESTAMP, context)
        raise FiresteelError(
            f"A record without a timestamp cannot go into {type(self.spec.assigner).__name__}.",
            hint="Call assign_timestamps_and_watermarks before the window.",
        )
