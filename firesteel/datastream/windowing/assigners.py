"""Window assigners: which windows a record belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, NoReturn, TypeVar

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.serializer import TypeSerializer
from firesteel.common.time import to_millis
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from firesteel.datastream.function_base import RuntimeContext
from firesteel.datastream.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from firesteel.datastream.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

__all__ = [
    "CountSlidingWindowAssigner",
    "CountTumblingWindowAssigner",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "GlobalWindows",
    "MergingWindowAssigner",
    "ProcessingTimeSessionWindows",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "WindowAssigner",
]

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each record into zero or more windows."""

    class WindowAssignerContext(ABC):
        """What an assigner can ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The context of the subtask, with the state of the record's key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger used unless another is given."""

    def get_window_serializer(self) -> TypeSerializer[W] | None:
        """How windows become bytes; None lets them be pickled."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows follow event time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may merge, such as sessions."""

    class MergeCallback(ABC, Generic[W2]):
        """Told which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """These windows become that one."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Finds the windows that have to merge and tells the callback."""


class SessionWindowTimeGapExtractor(ABC):
    """Tells the session gap of a record."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds."""


class _TimeWindows(WindowAssigner[T, TimeWindow]):
    """What all assigners of time windows share."""

    _event_time = False

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        """Fires at the end of the window, in the assigner's own kind of time."""
        return EventTimeTrigger() if self._event_time else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Start and end as two longs."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """Whether windows follow event time."""
        return self._event_time

    def _time(self, timestamp: int | None, context: WindowAssigner.WindowAssignerContext) -> int:
        if not self._event_time:
            return context.get_current_processing_time()
        if timestamp is None or timestamp <= MIN_LONG_VALUE:
            self._no_timestamp()
        return timestamp

    def _no_timestamp(self) -> NoReturn:
        raise FiresteelError(
            f"A record without a timestamp cannot go into {type(self).__name__}, which need event time.",
            hint="Call assign_timestamps_and_watermarks(...) with a timestamp assigner before the window, or "
            "use processing-time windows.",
        )


class _TumblingTimeWindows(_TimeWindows[T]):
    def __init__(self, size: int, offset: int = 0):
        _check_positive(self, size=size)
        if abs(offset) >= size:
            raise InvalidProgramError(
                f"{type(self).__name__} need an offset smaller than their size, got offset {offset} ms "
                f"and size {size} ms.",
                hint="Windows repeat every size: subtract multiples of the size from the offset.",
            )
        self.size = size
        self.offset = offset

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[TimeWindow]:
        """The one window the time falls into."""
        time = self._time(timestamp, context)
        start = time - (time - self.offset) % self.size
        return [TimeWindow(start, start + self.size)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.offset})"


class TumblingProcessingTimeWindows(_TumblingTimeWindows[T]):
    """Windows of one size, one after the other, by the wall clock."""

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingProcessingTimeWindows[Any]:
        """Windows of a size, starting at multiples of it, shifted by an offset (Time or Duration)."""
        return TumblingProcessingTimeWindows(to_millis(size), _offset_millis(offset))


class TumblingEventTimeWindows(_TumblingTimeWindows[T]):
    """Windows of one size, one after the other, by the records' timestamps."""

    _event_time = True

    @staticmethod
    def of(size: Any, offset: Any = None) -> TumblingEventTimeWindows[Any]:
        """Windows of a size, starting at multiples of it, shifted by an offset (Time or Duration)."""
        return TumblingEventTimeWindows(to_millis(size), _offset_millis(offset))


class _SlidingTimeWindows(_TimeWindows[T]):
    def __init__(self, size: int, slide: int, offset: int = 0):
        _check_positive(self, size=size, slide=slide)
        if abs(offset) >= slide:
            raise InvalidProgramError(
                f"{type(self).__name__} need an offset smaller than their slide, got offset {offset} ms "
                f"and slide {slide} ms.",
                hint="Windows start every slide: subtract multiples of the slide from the offset.",
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[TimeWindow]:
        """All windows that contain the time, the latest first; none if it falls between two."""
        time = self._time(timestamp, context)
        size = self.size
        last_start = time - (time - self.offset) % self.slide
        return [TimeWindow(start, start + size) for start in range(last_start, time - size, -self.slide)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingProcessingTimeWindows(_SlidingTimeWindows[T]):
    """Windows of one size that start every slide, by the wall clock."""

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingProcessingTimeWindows[Any]:
        """Windows of a size that start every slide, shifted by an offset (Time or Duration)."""
        return SlidingProcessingTimeWindows(to_millis(size), to_millis(slide), _offset_millis(offset))


class SlidingEventTimeWindows(_SlidingTimeWindows[T]):
    """Windows of one size that start every slide, by the records' timestamps."""

    _event_time = True

    @staticmethod
    def of(size: Any, slide: Any, offset: Any = None) -> SlidingEventTimeWindows[Any]:
        """Windows of a size that start every slide, shifted by an offset (Time or Duration)."""
        return SlidingEventTimeWindows(to_millis(size), to_millis(slide), _offset_millis(offset))


class _SessionWindows(_TimeWindows[T], MergingWindowAssigner[T, TimeWindow]):
    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Sessions that overlap or touch become one."""
        TimeWindow.merge_windows(windows, callback)


class _StaticSessionWindows(_SessionWindows[T]):
    def __init__(self, session_gap: int):
        _check_positive(self, gap=session_gap)
        self.session_gap = session_gap

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[TimeWindow]:
        """A session of one record: from its time until the gap has passed."""
        time = self._time(timestamp, context)
        return [TimeWindow(time, time + self.session_gap)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicSessionWindows(_SessionWindows[T]):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]):
        extractor = session_window_time_gap_extractor
        extract = getattr(extractor, "extract", extractor)
        if not callable(extract):
            raise TypeError(
                "The gap extractor must be a SessionWindowTimeGapExtractor or a callable, "
                f"got {type(extractor).__name__}."
            )
        self.extractor = extractor

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """A session of one record: from its time until its own gap has passed."""
        time = self._time(timestamp, context)
        extract: Any = getattr(self.extractor, "extract", self.extractor)
        gap = extract(element)
        if gap <= 0:
            raise FiresteelError(
                f"The session gap of a record must be positive, got {gap} ms.",
                hint="Check what the gap extractor returns for this record.",
            )
        return [TimeWindow(time, time + gap)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class ProcessingTimeSessionWindows(_StaticSessionWindows[T]):
    """Sessions that end after a gap without records, by the wall clock."""

    @staticmethod
    def with_gap(size: Any) -> ProcessingTimeSessionWindows[Any]:
        """Sessions with one gap for all (Time or Duration)."""
        return ProcessingTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows[Any]:
        """Sessions with a gap that depends on the record."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_StaticSessionWindows[T]):
    """Sessions that end after a gap without records, by the records' timestamps."""

    _event_time = True

    @staticmethod
    def with_gap(size: Any) -> EventTimeSessionWindows[Any]:
        """Sessions with one gap for all (Time or Duration)."""
        return EventTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Sessions with a gap that depends on the record."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicSessionWindows[T]):
    """Sessions with a gap that depends on the record, by the wall clock."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows[Any]:
        """Sessions with a gap that depends on the record."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicSessionWindows[T]):
    """Sessions with a gap that depends on the record, by the records' timestamps."""

    _event_time = True

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Sessions with a gap that depends on the record."""
        return DynamicEventTimeSessionWindows(extractor)


class GlobalWindows(WindowAssigner[T, GlobalWindow]):
    """One window for everything; needs a trigger to ever give a result."""

    @staticmethod
    def create() -> GlobalWindows[Any]:
        """A new assigner."""
        return GlobalWindows()

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[GlobalWindow]:
        """The global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[T, GlobalWindow]:
        """Never fires."""
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """One byte."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class _CountWindows(WindowAssigner[T, CountWindow]):
    """What both count assigners share: they number a key's records with state of their own."""

    def __init__(self, window_size: int, state_name: str):
        _check_positive(self, size=window_size)
        self.window_size = window_size
        self._count_descriptor = ValueStateDescriptor(state_name)

    def _next_index(self, context: WindowAssigner.WindowAssignerContext) -> int:
        count = context.get_runtime_context().get_state(self._count_descriptor)
        index: int = count.value() or 0
        count.update(index + 1)
        return index

    def get_default_trigger(self, env: Any) -> Trigger[T, CountWindow]:
        """Fires once the window is full and drops its records, which nothing would need any more."""
        trigger: Any = PurgingTrigger.of(CountTrigger.of(self.window_size))
        return trigger  # type: ignore[no-any-return]

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """The id as one long."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """No."""
        return False


class CountTumblingWindowAssigner(_CountWindows[T]):
    """Every ``window_size`` records of a key are a window."""

    def __init__(self, window_size: int):
        super().__init__(window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner[Any]:
        """Windows of that many records."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[CountWindow]:
        """The window the key's next record belongs to."""
        return [CountWindow(self._next_index(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows[T]):
    """Windows of ``window_size`` records of a key, one starting every ``window_slide`` records."""

    def __init__(self, window_size: int, window_slide: int):
        super().__init__(window_size, "slide-count-assigner")
        _check_positive(self, slide=window_slide)
        self.window_slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner[Any]:
        """Windows of that many records, one every slide."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self,
        element: T,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> Collection[CountWindow]:
        """The windows the key's next record belongs to, the latest first."""
        index = self._next_index(context)
        last = index // self.window_slide
        first = max(0, (index - self.window_size) // self.window_slide + 1)
        return [CountWindow(window_id) for window_id in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


def _check_positive(assigner: WindowAssigner[Any, Any], **lengths: int) -> None:
    for name, length in lengths.items():
        if length <= 0:
            unit = "" if isinstance(assigner, _CountWindows) else " ms"
            raise InvalidProgramError(
                f"The {name} of {type(assigner).__name__} must be positive, got {length}{unit}.",
                hint="Time.seconds(5), Duration.of_minutes(1) or a number of records above zero would do.",
            )


def _offset_millis(offset: Any) -> int:
    return 0 if offset is None else to_millis(offset)
