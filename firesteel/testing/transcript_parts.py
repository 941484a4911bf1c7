"""The assigners, triggers, evictors and aggregations a transcript can name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.api.state import ReducingStateDescriptor
from firesteel.common.time import Time
from firesteel.common.windows import CountWindow, TimeWindow, TriggerResult
from firesteel.datastream import window as windows
from firesteel.datastream.functions import AggregateFunction, ProcessAllWindowFunction, ProcessWindowFunction

__all__ = ["ThresholdTrigger", "aggregation_of", "assigner_of", "describe_window", "evictor_of", "trigger_of"]


def assigner_of(description: dict[str, Any]) -> Any:
    """The window assigner of a transcript, like ``{type: TumblingEventTimeWindows, size: 10, offset: 3}``."""
    arguments = dict(description)
    kind = arguments.pop("type")
    cls = getattr(windows, kind)
    if kind == "GlobalWindows":
        return cls.create()
    if kind.startswith("Count"):
        return cls.of(*(arguments[name] for name in ("size", "slide") if name in arguments))
    if kind.startswith("Dynamic"):
        return cls.with_dynamic_gap(_ValueIsGap())
    if kind.endswith("SessionWindows"):
        return cls.with_gap(Time.milliseconds(arguments["gap"]))
    times = (arguments[name] for name in ("size", "slide", "offset") if name in arguments)
    return cls.of(*map(Time.milliseconds, times))


def trigger_of(description: Any) -> Any:
    """The trigger of a transcript: a class name, or ``{type: CountTrigger, count: 3}``."""
    arguments: dict[str, Any] = {"type": description} if isinstance(description, str) else dict(description)
    kind = arguments.pop("type")
    if kind == "ThresholdTrigger":
        return ThresholdTrigger(arguments["threshold"])
    cls = getattr(windows, kind)
    if kind == "PurgingTrigger":
        return cls.of(trigger_of(arguments["of"]))
    if kind == "CountTrigger":
        return cls.of(arguments["count"])
    if kind.startswith("Continuous"):
        return cls.of(Time.milliseconds(arguments["interval"]))
    return cls()


def evictor_of(description: dict[str, Any]) -> Any:
    """The evictor of a transcript, like ``{type: CountEvictor, count: 2, after: true}``."""
    after = description.get("after", False)
    if description["type"] == "CountEvictor":
        return windows.CountEvictor.of(description["count"], after)
    if description["type"] == "TimeEvictor":
        return windows.TimeEvictor.of(Time.milliseconds(description["time"]), after)
    return windows.DeltaEvictor.of(description["threshold"], lambda one, last: abs(one[1] - last[1]), after)


def aggregation_of(name: str, all_windows: bool) -> tuple[str | None, Any, Any]:
    """Kind, function and window function of an aggregation over ``(key, value)`` records."""
    if name == "list":
        return None, None, _function(all_windows, lambda elements: sorted(value for _, value in elements))
    if name in ("sum", "max"):
        operation: Any = max if name == "max" else lambda a, b: a + b
        reduce = lambda a, b: (a[0], operation(a[1], b[1]))
        return "reduce", reduce, _function(all_windows, lambda elements: _only(elements)[1])
    if name in ("count", "average"):
        return "aggregate", _SumAndCount(name == "average"), _function(all_windows, _only)
    raise ValueError(f"unknown aggregation {name!r}")


def describe_window(window: Any) -> Any:
    """A window as transcripts write it."""
    if isinstance(window, TimeWindow):
        return [window.start, window.end]
    return window.id if isinstance(window, CountWindow) else "global"


class ThresholdTrigger(windows.Trigger[Any, Any]):
    """Fires and purges once the values since the last time reach a threshold, and at the end of the window.

    A trigger as a user would write it, with state and a timer of its own.
    """

    def __init__(self, threshold: int):
        self._threshold = threshold
        self._sum = ReducingStateDescriptor("sum", lambda a, b: a + b)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        """Adds the value and looks whether it is enough."""
        ctx.register_event_time_timer(window.max_timestamp())
        total = ctx.get_partitioned_state(self._sum)
        total.add(element[1])
        if total.get() >= self._threshold:
            total.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        """Nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        """Fires what is left at the end of the window."""
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Sums can be added up."""
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        """Adds up the sums and waits for the new end."""
        ctx.merge_partitioned_state(self._sum)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Any) -> None:
        """Deletes the sum and the timer."""
        ctx.get_partitioned_state(self._sum).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class _ValueIsGap(windows.SessionWindowTimeGapExtractor):
    """A dynamic gap: the value of each record."""

    def extract(self, element: Any) -> int:
        return int(element[1])


class _SumAndCount(AggregateFunction):
    """The number of values, or their average."""

    def __init__(self, average: bool):
        self._average = average

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1] if self._average else accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class _Describe(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, result: Any):
        self._result = result

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, self._result(elements), context.window()


class _DescribeAll(ProcessAllWindowFunction[Any, Any, Any]):
    def __init__(self, result: Any):
        self._result = result

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield None, self._result(elements), context.window()


def _function(all_windows: bool, result: Any) -> Any:
    return _DescribeAll(result) if all_windows else _Describe(result)


def _only(elements: Iterable[Any]) -> Any:
    (element,) = elements
    return element
