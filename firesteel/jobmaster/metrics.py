"""Metrics and accumulators of a job, aggregated from the reports of its slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.subtask_table import SubtaskTable, SubtaskValues
from firesteel.runtime.model.messages import Accumulators, MetricReport, MetricScope, SlotFailed, SlotStopped, TaskKey

__all__ = ["FailedAccumulator", "JobMetrics", "MetricsSnapshot", "merge_accumulators"]

Metrics: TypeAlias = Mapping[str, Any]
_ByOperator: TypeAlias = FrozenDict[str, FrozenDict[str, Any]]

_NOTHING: FrozenDict[str, Any] = FrozenDict()


@dataclass(frozen=True, slots=True)
class FailedAccumulator:
    """Stands for an accumulator whose parts cannot be added; the job's result is not affected otherwise."""

    name: str
    reason: str


class MetricsSnapshot(msgspec.Struct, frozen=True):
    """The latest value of every metric and accumulator at one moment."""

    _values: SubtaskValues[_ByOperator]
    """For each subtask its metrics by operator id, those of the task itself under an empty id."""
    _accumulators: SubtaskValues[Metrics]

    def values(self, vertex_id: str, operator_id: str, subtask: int) -> Metrics:
        try:
            operators = self._values[vertex_id][subtask]
        except LookupError:
            return _NOTHING
        return _NOTHING if operators is None else operators.get(operator_id, _NOTHING)

    def by_scope(self) -> dict[MetricScope, Metrics]:
        return {
            (vertex_id, operator_id, subtask): metrics
            for vertex_id, subtasks in self._values.items()
            for subtask, operators in enumerate(subtasks)
            for operator_id, metrics in (operators or {}).items()
        }

    def accumulators(self, vertex_id: str | None = None) -> dict[str, Any]:
        """The accumulators of the job, or of one vertex, as far as slots have reported them."""
        merged: dict[str, Any] = {}
        for accumulators in self._accumulators_of(vertex_id):
            merge_accumulators(merged, accumulators)
        return merged

    def task_accumulators(self, vertex_id: str, subtask: int) -> Metrics:
        """Those of one task."""
        try:
            return self._accumulators[vertex_id][subtask] or _NOTHING
        except LookupError:
            return _NOTHING

    def _accumulators_of(self, vertex_id: str | None) -> Iterator[Metrics]:
        for vertex, subtasks in self._accumulators.items():
            if vertex_id in (None, vertex):
                yield from (each for each in subtasks if each is not None)


class JobMetrics:
    """Takes what slots report, and keeps the latest value of every metric by vertex, operator and subtask."""

    def __init__(self) -> None:
        self._attempt = -1
        self._values: SubtaskTable[_ByOperator] = SubtaskTable()
        self._accumulators: SubtaskTable[Metrics] = SubtaskTable()
        self._snapshot = MetricsSnapshot(self._values.frozen(), self._accumulators.frozen())

    def begin_attempt(self) -> None:
        """Resets the accumulators of tasks; their metrics are shown until new ones arrive."""
        self._accumulators.clear()

    def report(self, report: MetricReport) -> None:
        """Takes a slot's report; the first one of a new attempt forgets the old attempt's values."""
        if report.attempt > self._attempt:
            self._attempt = report.attempt
            self._values.clear()
        elif report.attempt < self._attempt:
            return
        tasks: dict[TaskKey, dict[str, FrozenDict[str, Any]]] = {}
        for (vertex_id, operator_id, subtask), metrics in report.metrics.items():
            task = (vertex_id, subtask)
            operators = tasks.get(task)
            if operators is None:
                operators = tasks[task] = dict(self._values.get(vertex_id, subtask) or _NOTHING)
            known = operators.get(operator_id, _NOTHING)
            operators[operator_id] = FrozenDict(metrics) if known.keys() <= metrics.keys() else known.merge(metrics)
        for task, operators in tasks.items():
            self._values.put(*task, FrozenDict(operators))
        self._accumulate(report.accumulators)

    def ended(self, message: SlotStopped | SlotFailed) -> None:
        """Takes what the tasks of a slot of the present attempt have come to at its end."""
        self._accumulate(message.accumulators)

    def _accumulate(self, accumulators: Accumulators) -> None:
        for (vertex_id, subtask), values in accumulators.items():
            self._accumulators.put(vertex_id, subtask, FrozenDict(values))

    def snapshot(self) -> MetricsSnapshot:
        """The values of now; shares with the last snapshot what has not changed."""
        values, accumulators, last = self._values.frozen(), self._accumulators.frozen(), self._snapshot
        if values is not last._values or accumulators is not last._accumulators:
            self._snapshot = MetricsSnapshot(values, accumulators)
        return self._snapshot


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
