"""The general window operator: any assigner, any trigger, merging windows too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.errors import FiresteelError
from firesteel.runtime.codegen.at_work import TRIGGER, handles_results_of
from firesteel.runtime.codegen.functions import direct_call
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.window.contexts import (
    ProcessWindowContext,
    TriggerContext,
    WindowAssignerContext,
    WindowStateStore,
)
from firesteel.runtime.operators.window.functions import InternalWindowFunction, check_spec
from firesteel.runtime.operators.window.late_records import LateRecords
from firesteel.runtime.operators.window.merging_window_set import MergingWindowSet
from firesteel.runtime.operators.window.output import WindowOutput
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.runtime.operators.window.state import (
    MERGING_WINDOWS_STATE,
    WINDOW_TIMERS,
    contents_descriptor,
    register_timers_of_aligned_windows,
)
from firesteel.runtime.operators.window.timestamped_value import check_written_without_evictor

__all__ = ["WindowOperator"]


class WindowOperator(StreamOperator):
    """Assigns records to windows, keeps their contents in state, and evaluates them when the trigger fires.

    A *pane* is the contents of one window for one key. An event-time pane is deleted once the watermark
    reaches the window's last timestamp plus the allowed lateness; a record whose windows are all past that is
    late.
    """

    reads_iterators = True
    emits_own_records = True

    def __init__(self, spec: WindowSpec):
        check_spec(spec)
        self.spec = spec
        self._assigner = spec.assigner
        self._trigger = spec.trigger
        self._event_time: bool = spec.assigner.is_event_time()
        self._merging = hasattr(spec.assigner, "merge_windows")
        self._holds_elements = spec.aggregation is None

    def open(self, context: OperatorContext) -> None:
        """Gets the state and the timers, and opens the user's window function."""
        super().open(context)
        backend = context.backend
        selector = context.key_selectors[0] if context.key_selectors else None
        if backend is None or selector is None:
            raise FiresteelError("A window operator needs a keyed stream; window_all keys by a constant.")
        self._backend = backend
        self._key_selector = direct_call(selector)
        self._timers = context.timer_service(WINDOW_TIMERS, self)
        self._contents = backend.get_state(contents_descriptor(self.spec), namespace_aware=True)
        if self._event_time:
            register_timers_of_aligned_windows(backend, self._timers, self.spec.allowed_lateness)
        self._merging_sets: Any = None
        if self._merging:
            self._merging_sets = backend.get_state(ValueStateDescriptor(MERGING_WINDOWS_STATE), internal=True)
        self._output = WindowOutput(context)
        self._late = LateRecords(self.spec, context, self._output)
        runtime_context = context.runtime_context
        self._assigner_context = WindowAssignerContext(self._timers, runtime_context)
        self._trigger_context = TriggerContext(runtime_context, self._timers, backend)
        store = WindowStateStore(backend, self._merging)
        self._function = InternalWindowFunction(self.spec, ProcessWindowContext(self._timers, runtime_context, store))
        self._function.open(runtime_context)

    def process_batch(self, values: Iterable[Any], timestamps: Sequence[int] | None) -> None:
        backend, selector = self._backend, self._key_selector
        process = self._process_merging if self._merging else self._process
        times: Iterable[int] = repeat(MIN_TIMESTAMP) if timestamps is None else timestamps
        for value, timestamp in zip(values, times, strict=False):
            key = backend.key = selector(value)
            if process(key, value, timestamp, self._assign(value, timestamp)):
                self._check_late(value, timestamp)
        self._output.flush()

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Adds records of the current key to its windows."""
        key = self._backend.key
        process = self._process_merging if self._merging else self._process
        times: Iterable[int] = repeat(MIN_TIMESTAMP) if timestamps is None else timestamps
        for value, timestamp in zip(values, times, strict=False):
            process(key, value, timestamp, self._assign(value, timestamp))

    def end_groups(self) -> None:
        """Emits what was collected."""
        self._output.flush()

    def fire_timers(self, timestamp: int) -> bool:
        done = self._timers.advance_watermark(timestamp)
        self._output.flush()
        return done

    def close(self) -> None:
        if hasattr(self, "_function"):
            self._function.close()

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """An event-time timer of a pane is due: the trigger's, or that which deletes the pane."""
        self._on_timer(self._trigger.on_event_time, timestamp, key, namespace, self._event_time)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A processing-time timer of a pane is due."""
        self._on_timer(self._trigger.on_processing_time, timestamp, key, namespace, not self._event_time)
        if not self.context.execution.one_key_at_a_time:
            self._output.flush()

    def cleanup_time(self, window: Any) -> int:
        """When a window's panes are deleted; the end of time means never."""
        last: int = window.max_timestamp()
        return min(last + self.spec.allowed_lateness, MAX_WATERMARK) if self._event_time else last

    def _assign(self, value: Any, timestamp: int) -> Any:
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)
        if self._event_time and timestamp == MIN_TIMESTAMP:
            # an assigner that does not look would make a pane that fires at the first watermark
            raise FiresteelError(
                f"A record without a timestamp cannot go into {type(self._assigner).__name__}.",
                hint="Call assign_timestamps_and_watermarks before the window.",
            )
        return windows

    def _process(self, key: Any, value: Any, timestamp: int, windows: Iterable[Any]) -> bool:
        """Adds a record to windows that do not merge; True if all of them are gone already."""
        skipped = True
        context = self._trigger_context
        for window in windows:
            if self._is_window_late(window):
                continue
            skipped = False
            self._contents.set_current_namespace(window)
            self._add(value, timestamp)
            context.window = window
            self._evaluate(self._trigger.on_element(value, timestamp, window, context), key, window)
            self._register_cleanup_timer(window)
        return skipped

    def _process_merging(self, key: Any, value: Any, timestamp: int, windows: Iterable[Any]) -> bool:
        """Adds a record to windows that merge with those in flight; True if all of them are gone already."""
        skipped = True
        context = self._trigger_context
        in_flight = MergingWindowSet(self._assigner, self._merging_sets)
        for window in windows:
            # late is decided after the merge: an old record may belong to a session that is still open
            actual = in_flight.add_window(window, self._merge_windows)
            if self._is_window_late(actual):
                in_flight.retire_window(actual)
                continue
            skipped = False
            self._contents.set_current_namespace(in_flight.get_state_window(actual))
            self._add(value, timestamp)
            context.window = actual
            self._evaluate(self._trigger.on_element(value, timestamp, actual, context), key, actual)
            self._register_cleanup_timer(actual)
        in_flight.persist()
        return skipped

    def _add(self, value: Any, timestamp: int) -> None:
        self._contents.add(value)

    def _merge_windows(self, result: Any, merged: list[Any], state_window: Any, state_windows: list[Any]) -> None:
        if self._event_time:
            now, end = self._timers.current_watermark, self.cleanup_time(result)
        else:
            now, end = self._timers.current_processing_time(), result.max_timestamp()
        if end <= now:
            raise FiresteelError(
                f"Merging made {result} end before the {'watermark' if self._event_time else 'time'} {now}.",
                hint="An assigner may only merge windows into one that ends no earlier than each of them.",
            )
        context = self._trigger_context
        context.window = result
        context.merged_windows = merged
        self._trigger.on_merge(result, context)
        context.merged_windows = []
        for window in merged:
            context.window = window
            self._trigger.clear(window, context)
            self._delete_cleanup_timer(window)
        if state_windows:
            self._contents.merge_namespaces(state_window, state_windows)

    def _on_timer(self, call: Any, timestamp: int, key: Any, window: Any, may_clean_up: bool) -> None:
        in_flight = None
        state_window = window
        if self._merging:
            in_flight = MergingWindowSet(self._assigner, self._merging_sets)
            state_window = in_flight.get_state_window(window)
            if state_window is None:
                return  # the window was merged into another, and its trigger left a timer behind
        self._contents.set_current_namespace(state_window)
        context = self._trigger_context
        context.window = window
        self._evaluate(call(timestamp, window, context), key, window)
        if may_clean_up and timestamp == self.cleanup_time(window):
            self._contents.clear()
            self._trigger.clear(window, context)
            self._function.clear(window)
            if in_flight is not None:
                in_flight.retire_window(window)
                in_flight.persist()

    @handles_results_of(TRIGGER)
    def _evaluate(self, result: Any, key: Any, window: Any) -> None:
        """Applies a trigger result, with the contents set to the window."""
        if result.is_fire():
            contents = self._contents.get()
            if contents is not None and not (self._holds_elements and not contents):
                if self._holds_elements:
                    check_written_without_evictor(contents[0])
                self._output.collect(self._function.process(key, window, contents), window.max_timestamp())
        if result.is_purge():
            self._contents.clear()

    def _check_late(self, value: Any, timestamp: int) -> None:
        """Accounts for a record that no window took; one assigned to no window at all need not be late."""
        if self._event_time and timestamp + self.spec.allowed_lateness <= self._timers.current_watermark:
            self._late.add(value, timestamp)

    def _is_window_late(self, window: Any) -> bool:
        return self._event_time and self.cleanup_time(window) <= self._timers.current_watermark

    def _register_cleanup_timer(self, window: Any) -> None:
        time = self.cleanup_time(window)
        if time != MAX_WATERMARK:
            if self._event_time:
                self._timers.register_event_time_timer(window, time)
            else:
                self._timers.register_processing_time_timer(window, time)

    def _delete_cleanup_timer(self, window: Any) -> None:
        time = self.cleanup_time(window)
        if time != MAX_WATERMARK:
            if self._event_time:
                self._timers.delete_event_time_timer(window, time)
            else:
                self._timers.delete_processing_time_timer(window, time)
