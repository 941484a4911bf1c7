"""Watermark strategies: timestamp assigners and watermark generators."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, NoReturn, Protocol

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.common.time import Duration, to_millis

__all__ = [
    "AscendingTimestampsWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarksGenerator",
    "TimestampAssigner",
    "WatermarkAlignmentParams",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]


class TimestampAssigner(ABC):
    """Gives a record its event timestamp."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The record's timestamp in milliseconds since 1970.

        ``record_timestamp`` is the one it had before: the smallest 64-bit integer if it had none.
        """


class _FunctionTimestampAssigner(TimestampAssigner):
    def __init__(self, function: Callable[..., int]):
        self._function = function
        if _takes_two(function):
            # called for every record: the function itself, without a method around it
            self.extract_timestamp = function  # type: ignore[method-assign]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self._function(value)


class WatermarkOutput(Protocol):
    """The output of a watermark generator."""

    def emit_watermark(self, timestamp: int) -> None:
        """Emits a watermark: no more records at or before this timestamp are expected."""
        ...

    def mark_idle(self) -> None:
        """Marks this output as idle, so that downstream operators do not wait for it."""
        ...

    def mark_active(self) -> None:
        """The stream counts again."""
        ...


class WatermarkGenerator(ABC):
    """Decides when to emit which watermark: with a record, at intervals, or both."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for each record."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every ``pipeline.auto-watermark-interval``."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Watermarks with a fixed delay behind the latest timestamp."""

    def __init__(self, max_out_of_orderness_ms: int):
        if max_out_of_orderness_ms < 0:
            raise ValueError(f"The out-of-orderness cannot be negative: {max_out_of_orderness_ms} ms")
        self._delay = max_out_of_orderness_ms + 1
        # so that the first watermark, before any record, is the smallest there is and not below it
        self._max_timestamp = MIN_LONG_VALUE + self._delay

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Updates the latest timestamp."""
        if event_timestamp > self._max_timestamp:
            self._max_timestamp = event_timestamp

    def on_batch(self, timestamps: Sequence[int]) -> None:
        """The same as on_event for each of the timestamps."""
        if timestamps:
            latest = max(timestamps)
            if latest > self._max_timestamp:
                self._max_timestamp = latest

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emits one millisecond less than the earliest timestamp that may still come."""
        output.emit_watermark(self._max_timestamp - self._delay)


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Watermarks for monotonously ascending timestamps."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Emits nothing."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Does nothing."""

    def on_batch(self, timestamps: Sequence[int]) -> None:
        """Does nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class WatermarkAlignmentParams:
    """Watermark alignment: the maximum drift of the sources of a group; times in milliseconds."""

    max_allowed_watermark_drift: int
    watermark_group: str
    update_interval: int = 1000


@dataclass(frozen=True)
class _BoundedOutOfOrdernessSupplier:
    max_out_of_orderness_ms: int

    def __call__(self) -> WatermarkGenerator:
        return BoundedOutOfOrdernessWatermarks(self.max_out_of_orderness_ms)


@dataclass(frozen=True)
class WatermarkStrategy:
    """Defines how timestamps are assigned and watermarks generated; every ``with_`` method returns a new strategy.

    PyFlink's ``with_timestamp_assigner`` changes the strategy it is called on, and its ``with_idleness`` drops the
    assigner; here neither does.
    """

    generator_supplier: Callable[[], WatermarkGenerator]
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignmentParams | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Watermarks for monotonously ascending timestamps."""
        return WatermarkStrategy(AscendingTimestampsWatermarks)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """Watermarks for records that are out of order by at most the given time."""
        millis = to_millis(max_out_of_orderness)
        if millis < 0:
            raise ValueError(f"max_out_of_orderness cannot be negative: {millis} ms")
        return WatermarkStrategy(_BoundedOutOfOrdernessSupplier(millis))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks, for programs in processing time."""
        return WatermarkStrategy(NoWatermarksGenerator)

    @staticmethod
    def for_generator(generator_supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """User-defined watermarks: the supplier creates a generator for each split or subtask.

        PyFlink has no such method; it is Flink's ``WatermarkStrategy.forGenerator``.
        """
        if isinstance(generator_supplier, WatermarkGenerator) or not callable(generator_supplier):
            raise TypeError(
                "for_generator takes a function that makes a new WatermarkGenerator"
                f" (the class itself will do), got {generator_supplier!r}"
            )
        return WatermarkStrategy(generator_supplier)

    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner | Callable[..., int]) -> WatermarkStrategy:
        """The same strategy with an assigner: a TimestampAssigner or a function.

        A function is called with the value and, if it requires two arguments, with the timestamp it had.
        """
        return replace(self, timestamp_assigner=_as_assigner(timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """The same strategy; a split without records for the given time is marked idle."""
        millis = to_millis(idle_timeout)
        if millis <= 0:
            raise ValueError(f"idle_timeout must be greater than zero: {millis} ms")
        return replace(self, idle_timeout_ms=millis)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration,
        update_interval: Duration | None = None,
    ) -> WatermarkStrategy:
        """The same strategy; a source too far ahead of the slowest of its group pauses.

        ``update_interval`` is how often the sources compare their watermarks: every second if left out.
        """
        drift = to_millis(max_allowed_watermark_drift)
        interval = 1000 if update_interval is None else to_millis(update_interval)
        if drift < 0 or interval <= 0:
            raise ValueError(f"Watermark alignment cannot work with a drift of {drift} ms every {interval} ms")
        return replace(self, alignment=WatermarkAlignmentParams(drift, watermark_group, interval))

    def create_watermark_generator(self) -> WatermarkGenerator:
        """A new generator."""
        generator = self.generator_supplier()
        if not (hasattr(generator, "on_event") and hasattr(generator, "on_periodic_emit")):
            raise TypeError(f"The generator supplier returned {generator!r}, which is not a WatermarkGenerator")
        return generator


class AssignerWithPeriodicWatermarksWrapper:
    """For compatibility with programs that import it; PyFlink's class wraps a Java object."""

    def __init__(self, *_: Any) -> NoReturn:
        raise NotImplementedError(
            "AssignerWithPeriodicWatermarksWrapper wraps a Java object; "
            "use WatermarkStrategy.for_generator(...).with_timestamp_assigner(...)"
        )


def _as_assigner(assigner: Any) -> TimestampAssigner:
    if isinstance(assigner, type):
        raise TypeError(f"Expected a timestamp assigner, got the class {assigner.__name__}: make an instance of it")
    if isinstance(assigner, TimestampAssigner):
        return assigner
    if callable(getattr(assigner, "extract_timestamp", None)):
        # any object with the method will do: the runtime calls nothing else
        return assigner  # type: ignore[no-any-return]
    if callable(assigner):
        return _FunctionTimestampAssigner(assigner)
    raise TypeError(f"Expected a TimestampAssigner or a function of (value, timestamp), got {assigner!r}")


def _takes_two(function: Callable[..., int]) -> bool:
    if isinstance(function, (attrgetter, itemgetter, methodcaller)):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # builtins without a signature; those that fit, such as int and len, take one argument
        return False
    # A parameter with a default is the program's own: `lambda event, field=field: event[field]`.
    required = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    return len(required) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
