"""What the slots measured and accumulated, put together for the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.runtime.model.messages import MetricReport, MetricScope, SlotFailed, SlotStopped, TaskKey

__all__ = ["FailedAccumulator", "JobMetrics", "merge_accumulators"]


@dataclass(frozen=True, slots=True)
class FailedAccumulator:
    """Stands for an accumulator whose parts cannot be added; the job's result is not affected otherwise."""

    name: str
    reason: str


class JobMetrics:
    """The latest value of every metric, by vertex, operator and subtask."""

    def __init__(self) -> None:
        self._attempt = -1
        self._values: dict[MetricScope, dict[str, Any]] = {}
        self._accumulators: dict[TaskKey, Mapping[str, Any]] = {}

    def begin_attempt(self) -> None:
        """Tasks accumulate anew; their metrics are shown until there are others."""
        self._accumulators.clear()

    def report(self, report: MetricReport) -> None:
        """Takes a slot's report; the first one of a new attempt forgets the old attempt's values."""
        if report.attempt > self._attempt:
            self._attempt = report.attempt
            self._values.clear()
        elif report.attempt < self._attempt:
            return
        for scope, metrics in report.metrics.items():
            self._values.setdefault(scope, {}).update(metrics)
        self._accumulators.update(report.accumulators)

    def ended(self, message: SlotStopped | SlotFailed) -> None:
        """Takes what the tasks of a slot of the present attempt have come to at its end."""
        self._accumulators.update(message.accumulators)

    def scopes(self) -> list[MetricScope]:
        """Every scope heard of, in order."""
        return sorted(self._values)

    def values(self, vertex_id: str, operator_id: str, subtask: int) -> Mapping[str, Any]:
        """The metrics of one scope."""
        return self._values.get((vertex_id, operator_id, subtask), {})

    def by_subtask(self, vertex_id: str, operator_id: str, name: str) -> dict[int, Any]:
        """One metric for each subtask that reported it."""
        return {
            subtask: metrics[name]
            for (vertex, operator, subtask), metrics in sorted(self._values.items())
            if vertex == vertex_id and operator == operator_id and name in metrics
        }

    def total(self, vertex_id: str, operator_id: str, name: str) -> float:
        """A numeric metric summed over the subtasks."""
        values = self.by_subtask(vertex_id, operator_id, name).values()
        return sum(value for value in values if isinstance(value, (int, float)))

    def snapshot(self) -> dict[MetricScope, dict[str, Any]]:
        """A copy of everything."""
        # a client may ask while the JobMaster's thread takes a report
        return {scope: dict(metrics) for scope, metrics in list(self._values.items())}

    def accumulators(self, vertex_id: str | None = None) -> dict[str, Any]:
        """The accumulators of the job, or of one vertex, as far as slots have reported them."""
        merged: dict[str, Any] = {}
        for (vertex, _subtask), accumulators in list(self._accumulators.items()):
            if vertex_id in (None, vertex):
                merge_accumulators(merged, accumulators)
        return merged

    def task_accumulators(self, vertex_id: str, subtask: int) -> Mapping[str, Any]:
        """Those of one task."""
        return self._accumulators.get((vertex_id, subtask), {})


def merge_accumulators(merged: dict[str, Any], addition: Mapping[str, Any]) -> None:
    """Adds a task's accumulators to those of others: numbers and lists with ``+``, dicts key by key.

    >>> merged = {"lines": 1, "histogram": {"a": 1}}
    >>> merge_accumulators(merged, {"lines": 2, "histogram": {"a": 1, "b": 5}, "new": [1]})
    >>> merged
    {'lines': 3, 'histogram': {'a': 2, 'b': 5}, 'new': [1]}
    """
    for name, value in addition.items():
        if name not in merged:
            merged[name] = value
            continue
        try:
            merged[name] = _add(merged[name], value)
        except TypeError as error:
            merged[name] = FailedAccumulator(name, str(error))


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, FailedAccumulator):
        return left
    if isinstance(left, dict) and isinstance(right, dict):
        return {
            **left,
            **{key: _add(left[key], value) if key in left else value for key, value in right.items()},
        }
    if isinstance(left, set) and isinstance(right, set):
        return left | right
    return left + right
