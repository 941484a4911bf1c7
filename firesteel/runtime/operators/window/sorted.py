"""Window operator of batch execution for aligned event-time windows: reads each key's records sorted by timestamp.

So a window is a run of them. There is no state and there are no timers: each window is evaluated at once, from the
earliest to the latest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.window.aligned import alignment_of
from firesteel.runtime.operators.window.contexts import ProcessWindowContext, WindowAssignerContext, WindowStateStore
from firesteel.runtime.operators.window.functions import InternalWindowFunction, check_spec
from firesteel.runtime.operators.window.late_records import LateRecords
from firesteel.runtime.operators.window.output import WindowOutput
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.operators.window.window_contents import make_contents
from firesteel.types.copying import copy_all

__all__ = ["SortedWindowOperator"]


class SortedWindowOperator(StreamOperator):
    """Tumbling and sliding event-time windows with the event-time trigger, of sorted groups."""

    emits_own_records = True
    current_watermark = MAX_WATERMARK
    """Windows are evaluated only: no function is called before a key's time has ended."""

    def __init__(self, spec: WindowSpec):
        check_spec(spec)
        alignment = alignment_of(spec)
        if alignment is None:
            raise FiresteelError(f"{type(spec.assigner).__name__} with this trigger is not aligned.")
        self.spec = spec
        self.user_function = spec.user_function()
        self._size, self._slide, self._offset = alignment

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._contents = make_contents(self.spec, context, is_shared=False)
        self._copies = self._slide < self._size and not context.reuses_objects
        """Windows that overlap have the same records, and a function may change them."""
        self._output = WindowOutput(context)
        LateRecords(self.spec, context, self._output)  # there are none; registers its counters
        store = WindowStateStore(context.backend, merging=False)
        self._function = InternalWindowFunction(self.spec, ProcessWindowContext(self, context.runtime_context, store))
        self._function.open(context.runtime_context)

    def close(self) -> None:
        if hasattr(self, "_function"):
            self._function.close()

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self.context.processing_time()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Never called: records come in groups."""
        raise AssertionError("sorted windows read groups")

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Evaluates all windows of the current key, whose records these are."""
        if timestamps is None or timestamps[0] == MIN_TIMESTAMP:
            self._refuse(values[0])
            return
        size, slide = self._size, self._slide
        first = timestamps[0]
        # the earliest window with the first record in it
        start = first - (first - self._offset) % slide
        start -= (start - first + size - 1) // slide * slide if start > first - size else 0
        begin, count = 0, len(values)
        while begin < count:
            begin = bisect_left(timestamps, start, begin)
            if begin == count:
                return
            if timestamps[begin] >= start + size:
                # nothing in between: on to the earliest window with the next record in it
                start += ((timestamps[begin] - start - size) // slide + 1) * slide
                continue
            end = bisect_left(timestamps, start + size, begin)
            self._fire(TimeWindow(start, start + size), values[begin:end])
            start += slide

    def end_groups(self) -> None:
        """Emits what was collected."""
        self._output.flush()

    def _fire(self, window: TimeWindow, values: Sequence[Any]) -> None:
        key = self._backend.key
        contents = self._contents.result(self._contents.collect(key, copy_all(values) if self._copies else values))
        if contents is not None:
            self._output.collect(self._function.process(key, window, contents), window.max_timestamp())
        if self._function.clears:
            self._function.clear(window)

    def _refuse(self, value: Any) -> None:
        """Raises the assigner's own error about a record without a timestamp."""
        context = WindowAssignerContext(self, self.context.runtime_context)
        self.spec.assigner.assign_windows(value, MIN_TIMESTAMP, context)
        raise FiresteelError(
            f"A record without a timestamp cannot go into {type(self.spec.assigner).__name__}.",
            hint="Call assign_timestamps_and_watermarks before the window.",
        )
