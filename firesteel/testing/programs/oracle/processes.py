"""Keyed process functions with the oracle's states and timers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.oracle.flow import MIN_TIME, Flow
from firesteel.testing.programs.oracle.keyed import Timers
from firesteel.testing.programs.oracle.states import OracleContext

__all__ = ["ProcessOracle", "TimerService", "outputs_of"]

_NEVER = 0
"""What the processing-time clock shows: its timers do not fire."""


def outputs_of(results: Iterable[Any] | None, time: int | None, outputs: dict[str, Flow]) -> None:
    """Puts what a function yields where it goes."""
    for result in results or ():
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
            outputs[result[0].tag_id].emit(result[1], time)
        else:
            outputs[""].emit(result, time)


class TimerService:
    """The timers of the current key, as a function sees them."""

    def __init__(self, timers: Timers):
        self._timers = timers

    def current_watermark(self) -> int:
        """Returns the watermark."""
        return max(self._timers.watermark, MIN_TIME)

    def current_processing_time(self) -> int:
        """Returns a time that stands still."""
        return _NEVER

    def register_event_time_timer(self, timestamp: int) -> None:
        """Sets a timer."""
        self._timers.register(timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Deletes a timer."""
        self._timers.delete(timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Does nothing: only results that do not depend on the clock are computed."""

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Does nothing."""


class _Context:
    def __init__(self, timers: Timers, timestamp: int | None):
        self._timers = timers
        self._timestamp = timestamp

    def get_current_key(self) -> Any:
        return self._timers.key

    def timer_service(self) -> TimerService:
        return TimerService(self._timers)

    def timestamp(self) -> int | None:
        return self._timestamp


class ProcessOracle:
    """Calls a KeyedProcessFunction, or a KeyedCoProcessFunction, record by record."""

    def __init__(self, function: Any, tags: Sequence[str] = (), *, in_batch: bool = False):
        self.timers = Timers()
        self.outputs = {tag: Flow() for tag in ("", *tags)}
        self._function = deepcopy(function)
        self._function.open(OracleContext(self.timers, in_batch=in_batch))
        self._methods = (
            [self._function.process_element]
            if hasattr(function, "process_element")
            else [self._function.process_element1, self._function.process_element2]
        )

    def element(self, value: Any, time: int | None, side: int) -> None:
        """Processes a record."""
        outputs_of(self._methods[side](value, _Context(self.timers, time)), time, self.outputs)

    def timer(self, time: int, namespace: Any) -> None:
        """Fires a timer."""
        outputs_of(self._function.on_timer(time, _Context(self.timers, time)), time, self.outputs)
