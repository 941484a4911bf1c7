"""ExecutionGraph: every subtask of a running job, its attempts and their states.

Nothing here does I/O or reads a clock: the caller passes the time (epoch milliseconds).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from enum import Enum

import msgspec

from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.graph.frozen_dict import FrozenDict
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.persistent_vector import PersistentVector
from firesteel.graph.slots import SlotAssignment, assign_slots

__all__ = [
    "ATTEMPTS_HISTORY_SIZE",
    "ExecutionAttempt",
    "ExecutionGraph",
    "ExecutionGraphSnapshot",
    "ExecutionJobVertex",
    "ExecutionSnapshot",
    "ExecutionState",
    "ExecutionVertex",
    "InvalidTransitionError",
    "SubtaskSnapshot",
    "aggregate_state",
]

ATTEMPTS_HISTORY_SIZE = 16
"""How many earlier attempts of a subtask are kept, each with its failure: Flink's default."""


class ExecutionState(Enum):
    """The life of one attempt of one subtask."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows."""
        return self in _TERMINAL


_TERMINAL = frozenset({ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED})
_NORMAL_ORDER = (
    ExecutionState.CREATED,
    ExecutionState.SCHEDULED,
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
    ExecutionState.FINISHED,
)


def _may_follow(current: ExecutionState, new: ExecutionState) -> bool:
    if current.is_terminal:
        return False
    if new is ExecutionState.FAILED:
        return True
    if new is ExecutionState.CANCELING:
        return current is not ExecutionState.CANCELING
    if new is ExecutionState.CANCELED:
        return current in (ExecutionState.CANCELING, ExecutionState.CREATED, ExecutionState.SCHEDULED)
    if current is ExecutionState.CANCELING:
        return False
    # Reports may be skipped (a task that ends at once) but never go back.
    return _NORMAL_ORDER.index(new) > _NORMAL_ORDER.index(current) and (
        new is not ExecutionState.FINISHED or current is not ExecutionState.CREATED
    )


class InvalidTransitionError(FiresteelError):
    """An invalid state transition of an attempt; contains the events so far."""

    def __init__(self, execution: ExecutionAttempt, new: ExecutionState):
        story = " -> ".join(f"{state.value}@{at}" for state, at in execution.state_timestamps.items())
        super().__init__(
            f"{execution.vertex.task_name} attempt {execution.attempt_number} cannot go from "
            f"{execution.state.value} to {new.value} (so far: {story})."
        )
        self.current = execution.state
        self.new = new


class ExecutionSnapshot(msgspec.Struct, frozen=True):
    """One attempt of one subtask at one moment."""

    vertex_id: str
    subtask_index: int
    attempt_number: int
    slot: int
    state: ExecutionState
    state_timestamps: Mapping[ExecutionState, int]
    failure: TaskFailure | None


class SubtaskSnapshot(msgspec.Struct, frozen=True):
    """The attempts of one subtask at one moment."""

    current: ExecutionSnapshot
    previous: tuple[ExecutionSnapshot, ...]
    """The attempts before, oldest first."""


class ExecutionGraphSnapshot(msgspec.Struct, frozen=True):
    """All subtasks of a job at one moment."""

    job_graph: JobGraph
    slots: SlotAssignment
    vertices: Mapping[str, PersistentVector[SubtaskSnapshot]]
    """The subtasks of each vertex, by its id."""


class ExecutionAttempt:
    """One attempt to run one subtask."""

    __slots__ = ("_snapshot", "attempt_number", "failure", "slot", "state", "state_timestamps", "vertex")

    def __init__(self, vertex: ExecutionVertex, attempt_number: int, slot: int, timestamp: int):
        self.vertex = vertex
        self.attempt_number = attempt_number
        self.slot = slot
        self.state = ExecutionState.CREATED
        self.state_timestamps: dict[ExecutionState, int] = {ExecutionState.CREATED: timestamp}
        self.failure: TaskFailure | None = None
        self._snapshot: ExecutionSnapshot | None = None

    @property
    def attempt_id(self) -> tuple[str, int, int]:
        """Vertex id, subtask and attempt number: what messages about this attempt carry."""
        return (self.vertex.vertex_id, self.vertex.subtask_index, self.attempt_number)

    def can_transition_to(self, new: ExecutionState) -> bool:
        """Whether a state may follow the current one."""
        return _may_follow(self.state, new)

    def transition_to(self, new: ExecutionState, timestamp: int, failure: TaskFailure | None = None) -> bool:
        """Enters a state. False if it is in it already; raises InvalidTransitionError if it cannot follow."""
        if new is self.state:
            return False
        if not _may_follow(self.state, new):
            raise InvalidTransitionError(self, new)
        self.state = new
        self.state_timestamps[new] = timestamp
        if failure is not None:
            self.failure = failure
        self._snapshot = None
        self.vertex.has_changed()
        return True

    def snapshot(self) -> ExecutionSnapshot:
        """The attempt as it is now."""
        if self._snapshot is None:
            self._snapshot = ExecutionSnapshot(
                self.vertex.vertex_id,
                self.vertex.subtask_index,
                self.attempt_number,
                self.slot,
                self.state,
                FrozenDict(self.state_timestamps),
                self.failure,
            )
        return self._snapshot

    def __repr__(self) -> str:
        return f"<Execution {self.vertex.task_name} #{self.attempt_number} {self.state.value}>"


class ExecutionVertex:
    """One subtask: its current attempt and the last ones before it."""

    __slots__ = ("_changes", "current", "job_vertex", "previous", "slot", "subtask_index")

    def __init__(
        self, job_vertex: JobVertex, subtask_index: int, slot: int, timestamp: int, changes: dict[ExecutionVertex, None]
    ):
        self.job_vertex = job_vertex
        self.subtask_index = subtask_index
        self.slot = slot
        self._changes = changes
        self.previous: deque[ExecutionAttempt] = deque(maxlen=ATTEMPTS_HISTORY_SIZE)
        self.current = ExecutionAttempt(self, 0, slot, timestamp)

    @property
    def vertex_id(self) -> str:
        """The id of the vertex this is a subtask of."""
        return self.job_vertex.id

    @property
    def state(self) -> ExecutionState:
        """The state of the current attempt."""
        return self.current.state

    @property
    def task_name(self) -> str:
        """The subtask as Flink prints it: ``Map (1/2)``."""
        return f"{self.job_vertex.name} ({self.subtask_index + 1}/{self.job_vertex.parallelism})"

    def reset_for_new_execution(self, timestamp: int) -> ExecutionAttempt:
        """Starts the next attempt; the current one must have ended."""
        if not self.current.state.is_terminal:
            raise InvalidTransitionError(self.current, ExecutionState.CREATED)
        self.previous.append(self.current)
        self.current = ExecutionAttempt(self, self.current.attempt_number + 1, self.slot, timestamp)
        self.has_changed()
        return self.current

    def has_changed(self) -> None:
        """The last snapshot of the graph is out of date."""
        self._changes[self] = None

    def snapshot(self) -> SubtaskSnapshot:
        """The subtask as it is now."""
        return SubtaskSnapshot(self.current.snapshot(), tuple(execution.snapshot() for execution in self.previous))


class ExecutionJobVertex:
    """All subtasks of one vertex."""

    __slots__ = ("job_vertex", "task_vertices")

    def __init__(
        self, job_vertex: JobVertex, slots: SlotAssignment, timestamp: int, changes: dict[ExecutionVertex, None]
    ):
        self.job_vertex = job_vertex
        self.task_vertices = tuple(
            ExecutionVertex(job_vertex, subtask, slots.slot_of(job_vertex.id, subtask), timestamp, changes)
            for subtask in range(job_vertex.parallelism)
        )

    @property
    def state(self) -> ExecutionState:
        """One state for all subtasks, as the REST API shows it."""
        return aggregate_state([vertex.state for vertex in self.task_vertices])

    def state_counts(self) -> Counter[ExecutionState]:
        """How many subtasks are in each state."""
        return Counter(vertex.state for vertex in self.task_vertices)


class ExecutionGraph:
    """All subtasks of a job; vertices in topological order."""

    def __init__(self, job_graph: JobGraph, timestamp: int = 0):
        self.job_graph = job_graph
        self.slots = assign_slots(job_graph)
        self._changes: dict[ExecutionVertex, None] = {}
        """Subtasks that have changed since the last snapshot."""
        self.job_vertices = {
            vertex.id: ExecutionJobVertex(vertex, self.slots, timestamp, self._changes) for vertex in job_graph.vertices
        }
        self._snapshot: ExecutionGraphSnapshot | None = None

    def vertices(self) -> Iterator[ExecutionVertex]:
        """All subtasks, upstream ones first."""
        for job_vertex in self.job_vertices.values():
            yield from job_vertex.task_vertices

    def vertex(self, vertex_id: str, subtask: int) -> ExecutionVertex:
        """One subtask."""
        return self.job_vertices[vertex_id].task_vertices[subtask]

    def execution(self, vertex_id: str, subtask: int, attempt_number: int) -> ExecutionAttempt | None:
        """The current attempt of a subtask if it is that one, else None: the caller's news is out of date."""
        current = self.vertex(vertex_id, subtask).current
        return current if current.attempt_number == attempt_number else None

    def state_counts(self) -> Counter[ExecutionState]:
        """How many subtasks are in each state."""
        return Counter(vertex.state for vertex in self.vertices())

    @property
    def all_finished(self) -> bool:
        """Whether every subtask has finished."""
        return all(vertex.state is ExecutionState.FINISHED for vertex in self.vertices())

    @property
    def all_terminal(self) -> bool:
        """Whether every subtask has ended, one way or another."""
        return all(vertex.state.is_terminal for vertex in self.vertices())

    @property
    def all_running(self) -> bool:
        """Whether every subtask runs or has finished already."""
        running = (ExecutionState.RUNNING, ExecutionState.FINISHED)
        return all(vertex.state in running for vertex in self.vertices())

    def reset(self, timestamp: int) -> None:
        """Starts a new attempt of every subtask; all must have ended."""
        for vertex in self.vertices():
            vertex.reset_for_new_execution(timestamp)

    def snapshot(self) -> ExecutionGraphSnapshot:
        """All subtasks as they are now; shares with the last snapshot what has not changed."""
        if self._snapshot is None:
            vertices = {
                vertex_id: PersistentVector.of(subtask.snapshot() for subtask in vertex.task_vertices)
                for vertex_id, vertex in self.job_vertices.items()
            }
        elif self._changes:
            vertices = dict(self._snapshot.vertices)
            for subtask in self._changes:
                row = vertices[subtask.vertex_id]
                vertices[subtask.vertex_id] = row.replaced(subtask.subtask_index, subtask.snapshot())
        else:
            return self._snapshot
        self._changes.clear()
        self._snapshot = ExecutionGraphSnapshot(self.job_graph, self.slots, FrozenDict(vertices))
        return self._snapshot


def aggregate_state(states: list[ExecutionState]) -> ExecutionState:
    """One state for a vertex from those of its subtasks, by Flink's order of precedence."""
    for state in (
        ExecutionState.FAILED,
        ExecutionState.CANCELING,
        ExecutionState.CANCELED,
        ExecutionState.INITIALIZING,
        ExecutionState.RUNNING,
    ):
        if state in states:
            return state
    finished = states.count(ExecutionState.FINISHED)
    if not finished:
        return ExecutionState.CREATED
    return ExecutionState.FINISHED if finished == len(states) else ExecutionState.RUNNING
