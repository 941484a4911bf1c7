"""The fast window operator for windows that are the same for all keys: tumbling and sliding event time.

Instead of a timer per key and window there is one per window, and instead of keyed state one dictionary from
key to contents per window. What it emits is what :class:`WindowOperator` emits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple

from firesteel.common.errors import FiresteelError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.specs import WindowSpec
from firesteel.runtime.operators.window.contents import Panes, make_contents
from firesteel.runtime.operators.window.contexts import (
    ProcessWindowContext,
    WindowAssignerContext,
    WindowStateStore,
)
from firesteel.runtime.operators.window.functions import InternalWindowFunction, check_spec
from firesteel.runtime.operators.window.late import LateRecords
from firesteel.runtime.operators.window.output import WindowOutput

__all__ = ["AlignedWindow", "AlignedWindowOperator", "WindowAlignment", "alignment_of"]


_SHORT_RUN = 12
"""Shorter runs go record by record through the windows, longer ones window by window through the records."""


class WindowAlignment(NamedTuple):
    """Windows of ``size`` that start every ``slide`` at ``offset``, all in milliseconds."""

    size: int
    slide: int
    offset: int


@dataclass(frozen=True)
class AlignedWindow:
    """One window as it is written to and read from a snapshot."""

    start: int
    fired: bool
    panes: dict[Any, Any]
    """The stored contents per key: an aggregate, an accumulator, or the list of elements."""


def alignment_of(spec: WindowSpec) -> WindowAlignment | None:
    """How the windows of a spec are aligned, or None where the general operator is needed."""
    assigner = spec.assigner
    if type(spec.trigger).__name__ != "EventTimeTrigger":
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

    def __init__(self, spec: WindowSpec):
        check_spec(spec)
        alignment = alignment_of(spec)
        if alignment is None:
            raise FiresteelError(f"{type(spec.assigner).__name__} with this trigger is not aligned.")
        self.spec = spec
        self._size, self._slide, self._offset = alignment
        self._slice = gcd(self._size, self._slide)
        self._lateness = spec.allowed_lateness
        self._contents = make_contents(spec)
        self._windows: dict[int, Panes] = {}
        self._fired: set[int] = set()
        self._agenda: list[tuple[int, int]] = []  # (time, window start): first to fire it, then to delete it
        self.current_watermark = MIN_TIMESTAMP

    def open(self, context: OperatorContext) -> None:
        """Opens the user's window function."""
        super().open(context)
        selector = context.key_selectors[0] if context.key_selectors else None
        self._key_selector: Callable[[Any], Any] = (lambda _: 0) if selector is None else selector
        self._backend = context.backend
        self._output = WindowOutput(context)
        self._late = LateRecords(self.spec, context, self._output)
        store = None if self._backend is None else WindowStateStore(self._backend, merging=False)
        self._function = InternalWindowFunction(self.spec, ProcessWindowContext(self, context.runtime_context, store))
        self._function.open(context.runtime_context)

    def close(self) -> None:
        """Closes the user's window function."""
        if hasattr(self, "_function"):
            self._function.close()

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self.context.processing_time()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Adds records to their windows."""
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
                return
        if self._size == self._slide:
            self._process_by_window(values, timestamps)
        else:
            self._process_by_run(values, timestamps)
        self._output.flush()

    def process_watermark(self, timestamp: int) -> None:
        """Fires and deletes windows that are due, in the order of their ends, then sends the watermark on."""
        if timestamp > self.current_watermark:
            self.current_watermark = timestamp
            agenda = self._agenda
            while agenda and agenda[0][0] <= timestamp:
                time, start = heapq.heappop(agenda)
                if start not in self._fired:
                    self._fire_window(start)
                    self._fired.add(start)
                    if self._cleanup_time(start) > time:
                        self._schedule_cleanup(start)
                        continue
                self._delete_window(start)
            self._output.flush()
        self.context.emit_watermark(timestamp)

    def snapshot(self) -> list[AlignedWindow]:
        """The windows in flight, by start."""
        return [
            AlignedWindow(start, start in self._fired, dict(panes)) for start, panes in sorted(self._windows.items())
        ]

    def restore(self, windows: Iterable[AlignedWindow]) -> None:
        """Takes up windows of one or more snapshots; called before the first record.

        A restored window that had fired fires again with each record, even before the watermark is back.
        """
        for window in windows:
            panes = self._windows.get(window.start)
            if panes is None:
                panes = self._windows[window.start] = self._contents.new_panes()
                if window.fired:
                    self._fired.add(window.start)
                    self._schedule_cleanup(window.start)
                else:
                    heapq.heappush(self._agenda, (window.start + self._size - 1, window.start))
            panes.update(window.panes)

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
                self._add([self._windows[start]], part)

    def _process_by_run(self, values: Sequence[Any], timestamps: Sequence[int]) -> None:
        """Adds records to sliding windows: run by run of one slice.

        Slices share windows, so records must go into them in the order they came.
        """
        size, offset = self._slice, self._offset
        begin = end = 0
        slices: dict[int, list[Panes] | None] = {}
        windows: list[Panes] | None = None
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

    def _add(self, windows: list[Panes], values: Sequence[Any]) -> None:
        """Adds records to open windows; nothing can fire."""
        try:
            if len(windows) == 1:
                self._contents.add_all(windows[0], map(self._key_selector, values), values)
            elif len(values) < _SHORT_RUN:
                for value in values:
                    self._contents.add_to_each(windows, self._key_selector(value), value)
            else:
                keys = list(map(self._key_selector, values))
                for panes in windows:
                    self._contents.add_all(panes, keys, values)
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
            self._contents.add_to_each((panes,), key, value)
            if start in self._fired:
                self._fire_pane(TimeWindow(start, start + self._size), key, panes[key])
        if skipped and timestamp + self._lateness <= watermark:
            self._late.add(value, timestamp)

    def _starts(self, slice_start: int) -> range:
        """The starts of the windows a slice belongs to, the latest first."""
        last = slice_start - (slice_start - self._offset) % self._slide
        return range(last, slice_start - self._size, -self._slide)

    def _open_windows(self, slice_start: int) -> list[Panes] | None:
        """The windows of a slice if there are any and none has fired."""
        starts = self._starts(slice_start)
        closed = self.current_watermark - self._size + 1
        if not starts or starts[-1] <= closed or not self._fired.isdisjoint(starts):
            return None
        windows = self._windows
        return [windows[start] if start in windows else self._open_window(start) for start in starts]

    def _open_window(self, start: int) -> Panes:
        panes = self._windows[start] = self._contents.new_panes()
        last = start + self._size - 1
        if last > self.current_watermark:
            heapq.heappush(self._agenda, (last, start))
        else:
            self._fired.add(start)
            self._schedule_cleanup(start)
        return panes

    def _schedule_cleanup(self, start: int) -> None:
        time = self._cleanup_time(start)
        if time < MAX_WATERMARK:
            heapq.heappush(self._agenda, (time, start))

    def _cleanup_time(self, start: int) -> int:
        return min(start + self._size - 1 + self._lateness, MAX_WATERMARK)

    def _fire_window(self, start: int) -> None:
        panes = self._windows[start]
        if self.spec.window_function is None:
            self._set_key(None)
            results = self._contents.results(panes)
            if results:
                self.context.emit(results, [start + self._size - 1] * len(results))
            return
        window = TimeWindow(start, start + self._size)
        for key, stored in panes.items():
            self._fire_pane(window, key, stored)

    def _fire_pane(self, window: TimeWindow, key: Any, stored: Any) -> None:
        self._set_key(key)
        contents = self._contents.result(stored)
        if contents is not None:
            self._output.collect(self._function.process(key, window, contents), window.max_timestamp())

    def _delete_window(self, start: int) -> None:
        panes = self._windows.pop(start)
        self._fired.discard(start)
        if self._function.clears:
            window = TimeWindow(start, start + self._size)
            for key in panes:
                self._set_key(key)
                self._function.clear(window)

    def _set_key(self, key: Any) -> None:
        if self._backend is not None:
            self._backend.key = key

    def _refuse(self, value: Any) -> None:
        """Raises the assigner's own error about a record without a timestamp."""
        context = WindowAssignerContext(self, self.context.runtime_context)
        self.spec.assigner.assign_windows(value, MIN_TIMESTAMP, context)
        raise FiresteelError(
            f"A record without a timestamp cannot go into {type(self.spec.assigner).__name__}.",
            hint="Call assign_timestamps_and_watermarks before the window.",
        )
