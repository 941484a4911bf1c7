"""Counters and gauges of one operator or task, read by the JobMaster's metric reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Counter", "Gauge", "MetricRegistry"]


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
    """A value read when somebody asks."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


class MetricRegistry:
    """The metrics of one scope by name."""

    def __init__(self) -> None:
        self.metrics: dict[str, Counter | Gauge] = {}

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

    def snapshot(self) -> dict[str, Any]:
        """Every metric's present value."""
        return {
            name: metric.count if isinstance(metric, Counter) else metric.read()
            for name, metric in self.metrics.items()
        }
