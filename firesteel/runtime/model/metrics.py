"""Counters and gauges of one operator or task, read by the JobMaster's metric reports."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup", "MetricRegistry"]


class Counter:
    """A number that goes up or down."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        """Adds n."""
        self.count += n

    def dec(self, n: int = 1) -> None:
        """Subtracts n."""
        self.count -= n

    def get_count(self) -> int:
        """The present number."""
        return self.count


class Gauge:
    """A value computed when it is read."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


class Meter:
    """How many events per second, over a span of time."""

    __slots__ = ("_clock", "_marks", "_span", "count")

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self._span = time_span_in_seconds
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque([(clock(), 0)])

    def mark_event(self, value: int = 1) -> None:
        """Counts events that happen now."""
        self.count += value

    def get_count(self) -> int:
        """All events so far."""
        return self.count

    def rate(self) -> float:
        """Events per second over the span."""
        now = self._clock()
        marks = self._marks
        marks.append((now, self.count))
        while len(marks) > 2 and now - marks[1][0] >= self._span:
            marks.popleft()
        elapsed = now - marks[0][0]
        return (self.count - marks[0][1]) / elapsed if elapsed > 0 else 0.0


class Distribution:
    """Sum, count, minimum and maximum of the values it is given."""

    __slots__ = ("count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum: float = 0
        self.min: float | None = None
        self.max: float | None = None

    def update(self, value: float) -> None:
        """Takes a value."""
        self.count += 1
        self.sum += value
        self.min = value if self.min is None else min(self.min, value)
        self.max = value if self.max is None else max(self.max, value)

    def summary(self) -> dict[str, float | None]:
        """Count, sum, minimum, maximum and mean."""
        mean = self.sum / self.count if self.count else None
        return {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": mean}


Metric = Counter | Gauge | Meter | Distribution


class MetricRegistry:
    """The metrics of one scope by name."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}

    def counter(self, name: str) -> Counter:
        """The counter of that name, made at the first call."""
        metric = self.metrics.get(name)
        if not isinstance(metric, Counter):
            metric = self.metrics[name] = Counter()
        return metric

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        """Registers a gauge, replacing one of the same name."""
        gauge = self.metrics[name] = Gauge(read)
        return gauge

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter of that name, made at the first call."""
        metric = self.metrics.get(name)
        if not isinstance(metric, Meter):
            metric = self.metrics[name] = Meter(time_span_in_seconds)
        return metric

    def distribution(self, name: str) -> Distribution:
        """The distribution of that name, made at the first call."""
        metric = self.metrics.get(name)
        if not isinstance(metric, Distribution):
            metric = self.metrics[name] = Distribution()
        return metric

    def snapshot(self) -> dict[str, Any]:
        """Every metric's present value by its name in reports: a meter gives its rate, a distribution several values.

        >>> registry = MetricRegistry()
        >>> MetricGroup(registry, "user.").add_group("parser").counter("broken").inc()
        >>> registry.snapshot()
        {'parser.broken': 1}
        """
        values: dict[str, Any] = {}
        for name, metric in self.metrics.items():
            name = name.removeprefix("user.")
            if isinstance(metric, Counter):
                values[name] = metric.count
            elif isinstance(metric, Gauge):
                values[name] = _read(metric)
            elif isinstance(metric, Meter):
                values[name] = metric.rate()
            else:
                values.update({f"{name}_{part}": value for part, value in metric.summary().items()})
        return values


def _read(gauge: Gauge) -> Any:
    """A gauge's value in a form that can be sent; None if it raises, for a metric must not fail a job."""
    try:
        value = gauge.read()
        return value if value is None or isinstance(value, (int, float, str)) else str(value)
    except Exception:  # noqa: BLE001 - user code may raise anything
        return None


class MetricGroup:
    """User metrics, named by the path of groups they are in."""

    def __init__(self, registry: MetricRegistry, prefix: str = "") -> None:
        self._registry = registry
        self._prefix = prefix

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside this one."""
        path = f"{name}.{extra}" if extra is not None else name
        return MetricGroup(self._registry, f"{self._prefix}{path}.")

    def counter(self, name: str) -> Counter:
        """A counter; its sum over all subtasks is also an accumulator of the job's result."""
        return self._registry.counter(self._prefix + name)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """A value asked for with each report."""
        self._registry.gauge(self._prefix + name, obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A rate of events."""
        return self._registry.meter(self._prefix + name, time_span_in_seconds)

    def distribution(self, name: str) -> Distribution:
        """Sum, count, minimum and maximum of values."""
        return self._registry.distribution(self._prefix + name)
