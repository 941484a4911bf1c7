"""Triggers, which decide when a window is evaluated. A trigger instance serves all keys; its state is partitioned."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from firesteel.api.state import ReducingStateDescriptor, State, StateDescriptor
from firesteel.common.constants import MAX_LONG_VALUE
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import to_millis
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow, TriggerResult, Window

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "Trigger",
]

T = TypeVar("T")
W = TypeVar("W")


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated and when its contents are dropped.

    A trigger is called for every record and for every timer that it registered. It must not keep data in attributes;
    use the partitioned state of the context.
    """

    class TriggerContext(ABC):
        """The context of a trigger; timers and state are those of the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The metric group of the trigger."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The current event time in milliseconds."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Calls ``on_processing_time`` once the wall clock reaches the time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Calls ``on_event_time`` once the watermark reaches the time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Deletes a processing-time timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Deletes an event-time timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """The trigger's state of this key and window."""

    class OnMergeContext(TriggerContext):
        """The context while windows merge; its window is the result."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merges the state of the merged windows into that of the result."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A processing-time timer fired."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer fired."""

    def can_merge(self) -> bool:
        """Whether the trigger works on merging windows; if so ``on_merge`` is implemented."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Windows have merged into this one: merge state and set timers again."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window goes: delete timers and state."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the watermark passes the end of the window, and again with each late record after that."""

    @staticmethod
    def create() -> EventTimeTrigger[Any]:
        """A new trigger."""
        return EventTimeTrigger()

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Fires at once if the watermark has passed, else sets a timer."""
        last = window.max_timestamp()
        if last <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(last)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        """Sets the timer of the merged window, unless records are to fire it at once."""
        last = window.max_timestamp()
        if last > ctx.get_current_watermark():
            ctx.register_event_time_timer(last)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the wall clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger[Any]:
        """A new trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Sets a timer."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        """Sets the timer of the merged window."""
        last = window.max_timestamp()
        if last > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(last)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(Trigger[T, TimeWindow]):
    """What both continuous triggers share: the next time to fire, kept in state so that windows can merge."""

    def __init__(self, interval: int):
        if interval <= 0:
            raise InvalidProgramError(
                f"The interval of {type(self).__name__} must be positive, got {interval} ms.",
                hint="Specify the evaluation interval of the window, for example Time.seconds(10).",
            )
        self.interval = interval
        self.state_desc = ReducingStateDescriptor("fire-time", min)

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        """Continues with the earliest next firing time of the merged windows."""
        ctx.merge_partitioned_state(self.state_desc)
        next_time = self._fire_time(ctx).get()
        if next_time is not None:
            self._register_timer(next_time, ctx)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer and the state."""
        state = self._fire_time(ctx)
        next_time = state.get()
        if next_time is not None:
            self._delete_timer(next_time, ctx)
            state.clear()

    def _on_interval(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires if the interval has ended, and begins the next one."""
        state = self._fire_time(ctx)
        if state.get() == time:
            state.clear()
            self._register_next(time, window, ctx)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    @abstractmethod
    def _register_timer(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    @abstractmethod
    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    @abstractmethod
    def _register_next(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> None: ...

    def _fire_time(self, ctx: Trigger.TriggerContext) -> Any:
        return ctx.get_partitioned_state(self.state_desc)

    def _next_fire_time(self, time: int, window: TimeWindow) -> int:
        return min(time + self.interval, window.max_timestamp())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_ContinuousTrigger[T]):
    """Fires every interval of event time, and at the end of the window."""

    @staticmethod
    def of(interval: Any) -> ContinuousEventTimeTrigger[Any]:
        """A trigger with a Time or Duration as interval."""
        return ContinuousEventTimeTrigger(to_millis(interval))

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Fires at once if the watermark has passed, else sets timers for the end and the next interval."""
        last = window.max_timestamp()
        if last <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(last)
        if self._fire_time(ctx).get() is None:
            self._register_next(timestamp - timestamp % self.interval, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires at the end of the window and at each interval, for which it sets the next timer."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        return self._on_interval(time, window, ctx)

    def _register_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)

    def _register_next(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        next_time = self._next_fire_time(time, window)
        if ctx.get_current_watermark() == MAX_LONG_VALUE == window.max_timestamp():
            # event time is over and the window has no end: there would be 2^63 intervals left to fire
            next_time = MAX_LONG_VALUE
        if next_time > time:
            self._fire_time(ctx).add(next_time)
            ctx.register_event_time_timer(next_time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger[T]):
    """Fires every interval of the wall clock."""

    @staticmethod
    def of(interval: Any) -> ContinuousProcessingTimeTrigger[Any]:
        """A trigger with a Time or Duration as interval."""
        return ContinuousProcessingTimeTrigger(to_millis(interval))

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Sets a timer for the next interval if there is none."""
        if self._fire_time(ctx).get() is None:
            now = ctx.get_current_processing_time()
            self._register_next(now - now % self.interval, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires at each interval, and sets the next timer."""
        return self._on_interval(time, window, ctx)

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def _register_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete_timer(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)

    def _register_next(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        next_time = self._next_fire_time(time, window)
        if next_time != time:  # the window ended, by the wall clock: nothing follows
            self._fire_time(ctx).add(next_time)
            ctx.register_processing_time_timer(next_time)


class PurgingTrigger(Trigger[T, Window]):
    """Empties the window whenever another trigger fires."""

    def __init__(self, nested_trigger: Trigger[T, Any]):
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[T, Any]) -> PurgingTrigger[T]:
        """A purging version of a trigger."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: T, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Calls the nested trigger; purges if it fires."""
        return self._purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Calls the nested trigger; purges if it fires."""
        return self._purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Calls the nested trigger; purges if it fires."""
        return self._purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Clears the nested trigger."""
        self.nested_trigger.clear(window, ctx)

    def can_merge(self) -> bool:
        """Whether the nested trigger can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Merges the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    @staticmethod
    def _purging(result: TriggerResult) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


class CountTrigger(Trigger[T, CountWindow]):
    """Fires after every ``window_size`` records of a window."""

    def __init__(self, window_size: int):
        if window_size <= 0:
            raise InvalidProgramError(
                f"The number of records after which CountTrigger fires must be positive, got {window_size}."
            )
        self.window_size = window_size
        self._count = ReducingStateDescriptor("count", operator.add)

    @staticmethod
    def of(window_size: int) -> CountTrigger[Any]:
        """A trigger that fires after that many records."""
        return CountTrigger(window_size)

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: CountWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Counts; fires and starts over at the window size."""
        count: Any = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() >= self.window_size:
            count.clear()
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: CountWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: CountWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Does nothing."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: CountWindow, ctx: Trigger.OnMergeContext) -> None:
        """Adds up the counts."""
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: CountWindow, ctx: Trigger.TriggerContext) -> None:
        """Clears the count."""
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


class NeverTrigger(Trigger[T, GlobalWindow]):
    """Never fires; the default trigger of the global window."""

    def on_element(
        self,
        element: T,
        timestamp: int,
        window: GlobalWindow,
        ctx: Trigger.TriggerContext,
    ) -> TriggerResult:
        """Waits."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Waits."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Waits."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: Trigger.OnMergeContext) -> None:
        """Nothing to merge."""

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        """Nothing to clear."""
