"""Contexts of process functions: timestamp, current key, timer service and output of timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.api.pickled_key import plain_key
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.time.domain import TimeDomain
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["Collector", "OperatorTimerService", "ProcessContext"]

_FLUSH_THRESHOLD = 1024


class Collector:
    """Gathers results outside the generated loop (timers) and hands them on in batches."""

    __slots__ = ("_context", "_copies", "_sides", "_times", "_values")

    def __init__(self, context: OperatorContext):
        self._context = context
        self._copies = context.copies_results
        self._values: list[Any] = []
        self._times: list[int] | None = None
        """Of the values gathered; None if they have none. A batch is of one sort only."""
        self._sides: dict[OutputTag, tuple[list[Any], list[int] | None]] = {}

    def collect(self, results: Any, timestamp: int | None) -> None:
        """Takes what a function returned: None, or an iterable of values and ``(tag, value)``."""
        if results is None:
            return
        if (timestamp is None) is not (self._times is None):
            self.flush()
            self._times = None if timestamp is None else []
        values, times = self._values, self._times
        for result in results:
            if result.__class__ is tuple and len(result) == 2 and result[0].__class__ is OutputTag:
                self._collect_side(result[0], result[1], timestamp)
                continue
            values.append(copy_value(result) if self._copies else result)
            if times is not None:
                times.append(timestamp)  # type: ignore[arg-type]
            if len(values) >= _FLUSH_THRESHOLD:
                self.flush()
                values, times = self._values, self._times

    def _collect_side(self, tag: OutputTag, value: Any, timestamp: int | None) -> None:
        values, times = self._sides.setdefault(tag, ([], None if timestamp is None else []))
        values.append(value if self._context.reuses_objects else copy_value(value))
        if times is not None:
            times.append(timestamp)  # type: ignore[arg-type]

    def flush(self) -> None:
        if self._values:
            values, times = self._values, self._times
            self._values, self._times = [], None if times is None else []
            self._context.emit(values, times)
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag, (side, side_times) in sides.items():
                self._context.emit_side(tag, side, side_times)


class OperatorTimerService:
    """Flink's TimerService as user functions call it."""

    __slots__ = ("_context", "_timers")

    def __init__(self, context: OperatorContext, timers: Any):
        self._context = context
        self._timers = timers

    def current_processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._context.processing_time()

    def current_watermark(self) -> int:
        """The event time this operator has reached."""
        return int(self._timers.current_watermark)

    def register_event_time_timer(self, timestamp: int) -> None:
        """Calls on_timer once the watermark reaches the timestamp."""
        self._keyed().register_event_time_timer(None, timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Calls on_timer once the wall clock reaches the timestamp."""
        self._keyed().register_processing_time_timer(None, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._keyed().delete_event_time_timer(None, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._keyed().delete_processing_time_timer(None, timestamp)

    def _keyed(self) -> Any:
        if self._context.backend is None:
            raise RuntimeError("Setting timers is only supported on keyed streams.")
        return self._timers


class _NoTimers:
    """Replaces the timers of an operator that is not keyed: it only has the watermark."""

    __slots__ = ("current_watermark",)

    def __init__(self) -> None:
        self.current_watermark = MIN_TIMESTAMP


class ProcessContext:
    """The ctx argument of process_element and on_timer, one per operator."""

    __slots__ = ("_backend", "_collector", "_domain", "_flushes", "_function", "_timer_service", "_timers", "time")

    def __init__(self, context: OperatorContext, function: Any):
        self.time: int | None = None
        self._function = function
        self._domain: TimeDomain | None = None
        self._backend = context.backend
        # in a batch timers of the wall clock fire with all others, and results are handed on together
        self._flushes = not context.execution.one_key_at_a_time
        self._collector = Collector(context)
        if context.backend is None:
            self._timers: Any = _NoTimers()
        else:
            self._timers = context.timer_service("user-timers", self)
        self._timer_service = OperatorTimerService(context, self._timers)

    def timestamp(self) -> int | None:
        """The event time of the record or timer at hand, None if it has none."""
        return self.time

    def timer_service(self) -> OperatorTimerService:
        return self._timer_service

    def get_current_key(self) -> Any:
        """The key of the record or timer at hand."""
        return None if self._backend is None else plain_key(self._backend.key)

    def time_domain(self) -> TimeDomain | None:
        """In on_timer: which time domain the firing timer belongs to."""
        return self._domain

    def advance_watermark(self, timestamp: int) -> bool:
        """Fires the event-time timers that are due while the turn lasts; whether none is left."""
        if self._backend is None:
            self._timers.current_watermark = timestamp
            return True
        done: bool = self._timers.advance_watermark(timestamp)
        self._collector.flush()
        return done

    def end_groups(self) -> None:
        """Emits the results of timers in a batch."""
        self._collector.flush()

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """An event-time timer of the current key is due."""
        self._fire(timestamp, timestamp, TimeDomain.EVENT_TIME)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A processing-time timer of the current key is due; its results carry no timestamp, as in Flink."""
        self._fire(timestamp, None, TimeDomain.PROCESSING_TIME)
        if self._flushes:
            self._collector.flush()

    def _fire(self, timestamp: int, result_timestamp: int | None, domain: TimeDomain) -> None:
        self.time = timestamp
        self._domain = domain
        try:
            self._collector.collect(self._function.on_timer(timestamp, self), result_timestamp)
        finally:
            self._domain = None
            self.time = None
