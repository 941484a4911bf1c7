"""Read-only view of the vertices and subtasks of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionSnapshot, ExecutionState, aggregate_state
from firesteel.graph.job_graph import JobVertex
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.slots.task_manager_id import task_endpoint, task_manager_id
from firesteel.runtime.model.messages import RegisterSlot

__all__ = ["LIVELY_STATES", "SubtaskView", "TaskIo", "TimeSpan", "VertexView", "span_of"]

LIVELY_STATES = (
    ExecutionState.CREATED,
    ExecutionState.SCHEDULED,
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
)
"""The states whose durations are shown, in order."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """When something ran, in epoch milliseconds; -1 for what has not come yet."""

    start: int
    end: int
    duration: int


@dataclass(slots=True)
class TaskIo:
    """What a task, or several, have read and written, and how their time went."""

    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0
    records_out: int = 0
    back_pressured_ms: int = 0
    idle_ms: int = 0
    busy_ms: float = 0.0
    is_complete: bool = True
    """False while a task that runs has not reported yet."""

    def add(self, other: TaskIo) -> None:
        """Adds what another task has done."""
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.back_pressured_ms += other.back_pressured_ms
        self.idle_ms += other.idle_ms
        self.busy_ms += other.busy_ms
        self.is_complete = self.is_complete and other.is_complete

    @classmethod
    def total(cls, parts: Iterable[TaskIo]) -> TaskIo:
        total = cls()
        for part in parts:
            total.add(part)
        return total


def _number(metrics: Mapping[str, Any], name: str) -> int:
    value = metrics.get(name, 0)
    return int(value) if isinstance(value, (int, float)) else 0


class SubtaskView:
    """One attempt of one subtask."""

    __slots__ = ("_job", "execution", "is_current")

    def __init__(self, job: JobSnapshot, execution: ExecutionSnapshot, *, is_current: bool):
        self._job = job
        self.execution = execution
        self.is_current = is_current

    @property
    def index(self) -> int:
        return self.execution.subtask_index

    @property
    def attempt(self) -> int:
        """The attempt's number, from 0."""
        return self.execution.attempt_number

    @property
    def state(self) -> ExecutionState:
        """The state the attempt is in."""
        return self.execution.state

    @property
    def registration(self) -> RegisterSlot | None:
        """The slot it runs in, as that has introduced itself."""
        created = self.execution.state_timestamps[ExecutionState.CREATED]
        return self._job.slot_at(self.execution.slot, created)

    @property
    def endpoint(self) -> str:
        """Host and port of its process."""
        return task_endpoint(self.registration)

    @property
    def task_manager_id(self) -> str:
        return task_manager_id(self.registration)

    def timestamps(self) -> dict[ExecutionState, int]:
        """When it entered each state that it has been in."""
        timestamps = dict(self.execution.state_timestamps)
        if not timestamps[ExecutionState.CREATED]:
            # executions of the first attempt are made with the graph, before there is a clock
            created = self._job.status_timestamps.get(JobStatus.CREATED, 0)
            timestamps[ExecutionState.CREATED] = timestamps.get(ExecutionState.SCHEDULED, created)
        return timestamps

    def span(self, now: int) -> TimeSpan:
        """From its deployment to its end."""
        timestamps = self.execution.state_timestamps
        state = self.execution.state
        start = timestamps.get(ExecutionState.DEPLOYING, -1)
        end = timestamps.get(state, -1) if state.is_terminal else -1
        return TimeSpan(start, end, -1 if start < 0 else max(0, (now if end < 0 else end) - start))

    def status_durations(self, now: int) -> dict[ExecutionState, int]:
        """How long it was in each of the states up to RUNNING; -1 for those it never was in."""
        timestamps = self.timestamps()
        durations = {}
        for state in LIVELY_STATES:
            start = timestamps.get(state)
            if not start:
                durations[state] = -1
                continue
            end = now if state is self.execution.state else _end_of(state, timestamps)
            durations[state] = max(0, end - start)
        return durations

    def metrics(self) -> Mapping[str, Any]:
        """What the task itself has measured; nothing of attempts before the current one."""
        if not self.is_current:
            return {}
        return self._job.metrics.values(self.execution.vertex_id, "", self.index)

    def accumulators(self) -> Mapping[str, Any]:
        """What its functions have counted; nothing of attempts before the current one."""
        if not self.is_current:
            return {}
        return self._job.metrics.task_accumulators(self.execution.vertex_id, self.index)

    def rate(self, name: str) -> float:
        """A metric of the task as a number; 0 if it has not been reported."""
        value = self.metrics().get(name, 0)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def io(self) -> TaskIo:
        """What it has read and written."""
        metrics = self.metrics()
        if not metrics:
            return TaskIo(is_complete=self.execution.state.is_terminal)
        return TaskIo(
            _number(metrics, "numBytesIn"),
            _number(metrics, "numBytesOut"),
            _number(metrics, "numRecordsIn"),
            _number(metrics, "numRecordsOut"),
            _number(metrics, "accumulatedBackPressuredTimeMs"),
            _number(metrics, "accumulatedIdleTimeMs"),
            float(_number(metrics, "accumulatedBusyTimeMs")),
        )


def _end_of(state: ExecutionState, timestamps: Mapping[ExecutionState, int]) -> int:
    """When a state ended: the next one, in the order in which they were entered, began."""
    entered = list(timestamps)
    return timestamps[entered[min(entered.index(state) + 1, len(entered) - 1)]]


def span_of(executions: Iterable[ExecutionSnapshot], now: int) -> TimeSpan:
    """From the first deployment to the last end."""
    start, end, all_ended = -1, 0, True
    for execution in executions:
        timestamps, state = execution.state_timestamps, execution.state
        deployed = timestamps.get(ExecutionState.DEPLOYING, -1)
        if deployed >= 0:
            start = deployed if start < 0 else min(start, deployed)
        all_ended = all_ended and state.is_terminal
        end = max(end, timestamps.get(state, 0))
    if start < 0:
        return TimeSpan(-1, -1, -1)
    return TimeSpan(start, end, max(0, end - start)) if all_ended else TimeSpan(start, -1, max(0, now - start))


class VertexView:
    """One vertex and its subtasks."""

    __slots__ = ("_job", "_subtasks", "job_vertex")

    def __init__(self, job: JobSnapshot, job_vertex: JobVertex):
        self._job = job
        self._subtasks = job.execution_graph.vertices[job_vertex.id]
        self.job_vertex = job_vertex

    @property
    def id(self) -> str:
        return self.job_vertex.id

    @property
    def name(self) -> str:
        """The names of its operators."""
        return self.job_vertex.name

    @property
    def parallelism(self) -> int:
        return self.job_vertex.parallelism

    @property
    def max_parallelism(self) -> int:
        """How many subtasks it can have."""
        return self.job_vertex.max_parallelism

    @property
    def is_source(self) -> bool:
        """Whether it reads no other vertex."""
        return self.job_vertex.is_source

    @property
    def slot_sharing_group_id(self) -> str:
        """The id of the group it shares slots with."""
        return self._job.execution_graph.slots.group_of(self.id).id

    def accumulators(self) -> dict[str, Any]:
        """What its functions have counted, in all subtasks."""
        return self._job.metrics.accumulators(self.id)

    def executions(self) -> list[ExecutionSnapshot]:
        """The current attempt of every subtask."""
        return [subtask.current for subtask in self._subtasks]

    def state_counts(self) -> Counter[ExecutionState]:
        """How many subtasks are in each state."""
        return Counter(execution.state for execution in self.executions())

    @property
    def state(self) -> ExecutionState:
        """One state for all subtasks."""
        return aggregate_state([execution.state for execution in self.executions()])

    def span(self, now: int) -> TimeSpan:
        """From the first deployment of a subtask to the end of all."""
        return span_of(self.executions(), now)

    def subtasks(self) -> list[SubtaskView]:
        """The current attempt of every subtask."""
        return [SubtaskView(self._job, subtask.current, is_current=True) for subtask in self._subtasks]

    def subtask(self, index: int) -> SubtaskView | None:
        """The current attempt of one subtask; None if there is none of that number."""
        if not 0 <= index < len(self._subtasks):
            return None
        return SubtaskView(self._job, self._subtasks[index].current, is_current=True)

    def attempt(self, index: int, number: int) -> SubtaskView | None:
        if not 0 <= index < len(self._subtasks):
            return None
        subtask = self._subtasks[index]
        for execution in (subtask.current, *subtask.previous):
            if execution.attempt_number == number:
                return SubtaskView(self._job, execution, is_current=execution is subtask.current)
        return None

    def io(self) -> TaskIo:
        """What all subtasks have read and written."""
        return TaskIo.total(subtask.io() for subtask in self.subtasks())
