"""REST handlers for vertices and their subtasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from firesteel.cluster.diagnostics.known_jobs import (
    KnownJobs,
    find_job,
    find_number,
    find_subtask,
    find_vertex,
    now_ms,
)
from firesteel.cluster.rest.handlers.jobs import io_metrics, shown_accumulators, state_counts
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.graph.execution_graph import ExecutionState, aggregate_state
from firesteel.jobmaster.checkpoints.statistics import percentile
from firesteel.jobmaster.view.vertices import LIVELY_STATES, SubtaskView, TaskIo, VertexView, span_of
from firesteel.rest import vertices as rest

__all__ = ["back_pressure_level", "routes"]

_TIMED_STATES = (
    *LIVELY_STATES,
    ExecutionState.FINISHED,
    ExecutionState.CANCELING,
    ExecutionState.CANCELED,
    ExecutionState.FAILED,
)
"""In the order of the fields of StateTimestamps."""


def routes(jobs: KnownJobs) -> list[Route]:
    handlers = _VertexHandlers(jobs)
    return [
        Route(rest.VERTEX, handlers.details),
        Route(rest.VERTEX_ACCUMULATORS, handlers.accumulators),
        Route(rest.SUBTASKS_ACCUMULATORS, handlers.subtasks_accumulators),
        Route(rest.SUBTASK_TIMES, handlers.times),
        Route(rest.VERTEX_TASK_MANAGERS, handlers.task_managers),
        Route(rest.VERTEX_BACK_PRESSURE, handlers.back_pressure),
        Route(rest.SUBTASK, handlers.subtask),
        Route(rest.SUBTASK_ATTEMPT, handlers.attempt),
        Route(rest.SUBTASK_ATTEMPT_ACCUMULATORS, handlers.attempt_accumulators),
    ]


class _VertexHandlers:
    def __init__(self, jobs: KnownJobs):
        self._jobs = jobs

    def _vertex(self, request: RestRequest[Any]) -> VertexView:
        return find_vertex(find_job(self._jobs, request), request)

    def _attempt(self, request: RestRequest[Any]) -> SubtaskView:
        vertex = self._vertex(request)
        subtask = find_subtask(vertex, request)
        number = find_number(request, "attempt")
        attempt = vertex.attempt(subtask.index, number)
        if attempt is None:
            raise RestError(404, f"Subtask {subtask.index} of vertex {vertex.id} has no attempt {number}.")
        return attempt

    def details(self, request: RestRequest[Any]) -> rest.VertexDetails:
        vertex = self._vertex(request)
        now = now_ms()
        subtasks = vertex.subtasks()
        return rest.VertexDetails(
            vertex.id,
            vertex.name,
            vertex.parallelism,
            vertex.max_parallelism,
            now,
            [_attempt(subtask, now) for subtask in subtasks],
            _aggregated(subtasks, now),
        )

    def subtask(self, request: RestRequest[Any]) -> rest.SubtaskAttempt:
        return _attempt(find_subtask(self._vertex(request), request), now_ms())

    def attempt(self, request: RestRequest[Any]) -> rest.SubtaskAttempt:
        return _attempt(self._attempt(request), now_ms())

    def times(self, request: RestRequest[Any]) -> rest.SubtasksTimes:
        vertex = self._vertex(request)
        now = now_ms()
        return rest.SubtasksTimes(vertex.id, vertex.name, now, [_times(subtask, now) for subtask in vertex.subtasks()])

    def task_managers(self, request: RestRequest[Any]) -> rest.VertexTaskManagers:
        vertex = self._vertex(request)
        now = now_ms()
        groups: dict[str, list[SubtaskView]] = {}
        for subtask in vertex.subtasks():
            groups.setdefault(subtask.task_manager_id, []).append(subtask)
        return rest.VertexTaskManagers(
            vertex.id, vertex.name, now, [_task_manager(name, group, now) for name, group in groups.items()]
        )

    def back_pressure(self, request: RestRequest[Any]) -> rest.BackPressure:
        subtasks = [_back_pressure(subtask) for subtask in self._vertex(request).subtasks() if subtask.metrics()]
        if not subtasks:
            return rest.BackPressure("deprecated", "ok", "ok", now_ms(), [])
        level = back_pressure_level(max(subtask.ratio for subtask in subtasks))
        return rest.BackPressure("ok", level, level, now_ms(), subtasks)

    def accumulators(self, request: RestRequest[Any]) -> rest.VertexAccumulators:
        vertex = self._vertex(request)
        return rest.VertexAccumulators(vertex.id, shown_accumulators(vertex.accumulators()))

    def subtasks_accumulators(self, request: RestRequest[Any]) -> rest.SubtasksAccumulators:
        vertex = self._vertex(request)
        subtasks = [
            rest.SubtaskAccumulators(
                subtask.index, subtask.attempt, subtask.endpoint, shown_accumulators(subtask.accumulators())
            )
            for subtask in vertex.subtasks()
        ]
        return rest.SubtasksAccumulators(vertex.id, vertex.parallelism, subtasks)

    def attempt_accumulators(self, request: RestRequest[Any]) -> rest.AttemptAccumulators:
        attempt = self._attempt(request)
        execution_id = f"{attempt.execution.vertex_id}_{attempt.index}_{attempt.attempt}"
        accumulators = shown_accumulators(attempt.accumulators())
        return rest.AttemptAccumulators(attempt.index, attempt.attempt, execution_id, accumulators)


def _attempt(subtask: SubtaskView, now: int) -> rest.SubtaskAttempt:
    span = subtask.span(now)
    durations = subtask.status_durations(now)
    return rest.SubtaskAttempt(
        subtask=subtask.index,
        status=subtask.state.name,
        attempt=subtask.attempt,
        endpoint=subtask.endpoint,
        start_time=span.start,
        end_time=span.end,
        duration=span.duration,
        metrics=io_metrics(subtask.io()),
        taskmanager_id=subtask.task_manager_id,
        status_duration=rest.StateDurations(*(durations[state] for state in LIVELY_STATES)),
        compatible_start_time=span.start,
    )


def _times(subtask: SubtaskView, now: int) -> rest.SubtaskTimes:
    timestamps = subtask.timestamps()
    start = timestamps.get(ExecutionState.SCHEDULED, -1)
    end = timestamps[subtask.state] if subtask.state.is_terminal else now
    return rest.SubtaskTimes(
        subtask.index,
        subtask.endpoint,
        -1 if start < 0 else max(0, end - start),
        rest.StateTimestamps(*(timestamps.get(state, 0) for state in _TIMED_STATES)),
    )


def _task_manager(name: str, subtasks: Sequence[SubtaskView], now: int) -> rest.TaskManagerTasks:
    states = [subtask.state for subtask in subtasks]
    span = span_of((subtask.execution for subtask in subtasks), now)
    return rest.TaskManagerTasks(
        endpoint=subtasks[0].endpoint,
        status=aggregate_state(states).name,
        start_time=span.start,
        end_time=span.end,
        duration=span.duration,
        metrics=io_metrics(TaskIo.total(subtask.io() for subtask in subtasks)),
        status_counts=state_counts(states),
        taskmanager_id=name,
        aggregated=_aggregated(subtasks, now),
    )


def _aggregated(subtasks: Sequence[SubtaskView], now: int) -> rest.AggregatedTaskDetails:
    metrics = [io_metrics(subtask.io()) for subtask in subtasks]
    durations = [subtask.status_durations(now) for subtask in subtasks]
    return rest.AggregatedTaskDetails(
        {
            name: _statistics(int(value) for value in values)
            for name, values in (
                ("read-bytes", [each.read_bytes for each in metrics]),
                ("write-bytes", [each.write_bytes for each in metrics]),
                ("read-records", [each.read_records for each in metrics]),
                ("write-records", [each.write_records for each in metrics]),
                ("accumulated-backpressured-time", [each.accumulated_backpressured_time for each in metrics]),
                ("accumulated-idle-time", [each.accumulated_idle_time for each in metrics]),
                ("accumulated-busy-time", [each.accumulated_busy_time for each in metrics]),
            )
        },
        {state.name: _statistics(each[state] for each in durations) for state in LIVELY_STATES},
    )


def _statistics(values: Iterable[int]) -> rest.Statistics:
    ordered = sorted(values)
    if not ordered:
        return rest.Statistics(0, 0, 0, 0, 0, 0, 0, 0)
    total = sum(ordered)
    median, p25, p75, p95 = (int(percentile(ordered, part)) for part in (50, 25, 75, 95))
    return rest.Statistics(ordered[0], ordered[-1], total // len(ordered), total, median, p25, p75, p95)


def back_pressure_level(ratio: float) -> str:
    """Flink's name for how much a task has to wait for those after it: ``ok``, ``low`` or ``high``.

    >>> back_pressure_level(0.1), back_pressure_level(0.5), back_pressure_level(0.51)
    ('ok', 'low', 'high')
    """
    return "ok" if ratio <= 0.1 else "low" if ratio <= 0.5 else "high"


def _back_pressure(subtask: SubtaskView) -> rest.SubtaskBackPressure:
    waiting, idle, busy = (
        subtask.rate(name) / 1000
        for name in ("backPressuredTimeMsPerSecond", "idleTimeMsPerSecond", "busyTimeMsPerSecond")
    )
    level = back_pressure_level(waiting)
    return rest.SubtaskBackPressure(subtask.index, level, level, waiting, idle, busy)
