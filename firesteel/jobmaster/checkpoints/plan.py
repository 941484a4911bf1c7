"""Checkpoint plan: which tasks take part in the checkpoints of an attempt."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from firesteel.graph.channels import connections
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.task_key import TaskKey

__all__ = ["CheckpointPlan", "PlannedOperator", "PlannedTask"]


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator whose state a checkpoint records."""

    operator_id: str
    name: str
    uid: str | None
    parallelism: int
    max_parallelism: int
    has_coordinator: bool = False
    """A source: its enumerator's state belongs to the checkpoint."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task, its operators, and the tasks it reads from."""

    vertex_id: str
    subtask: int
    operators: tuple[PlannedOperator, ...]
    producers: tuple[tuple[str, range], ...] = ()
    """Vertices and their subtasks, one entry per edge."""
    name: str = ""
    """As users know it: of the vertex, with the subtask."""

    @property
    def key(self) -> TaskKey:
        """Vertex id and subtask."""
        return self.vertex_id, self.subtask


@dataclass(frozen=True)
class CheckpointPlan:
    """All tasks of an attempt, in topological order."""

    tasks: tuple[PlannedTask, ...]

    @classmethod
    def of(cls, job_graph: JobGraph) -> CheckpointPlan:
        tasks: list[PlannedTask] = []
        for vertex in job_graph.vertices:
            inputs = [
                (
                    edge.source_vertex,
                    connections(edge.partitioner, job_graph.vertex(edge.source_vertex).parallelism, vertex.parallelism),
                )
                for edge in vertex.input_edges
            ]
            operators = tuple(
                PlannedOperator(
                    chained.node.operator_id,
                    chained.node.name,
                    chained.node.uid,
                    vertex.parallelism,
                    vertex.max_parallelism,
                    chained.node.is_source,
                )
                for chained in vertex.operators
            )
            tasks += (
                PlannedTask(
                    vertex.id,
                    subtask,
                    operators,
                    tuple((producer, channels.producers_of(subtask)) for producer, channels in inputs),
                    f"'{vertex.name}' ({subtask + 1}/{vertex.parallelism})",
                )
                for subtask in range(vertex.parallelism)
            )
        return cls(tuple(tasks))

    @cached_property
    def keys(self) -> frozenset[TaskKey]:
        return frozenset(task.key for task in self.tasks)

    def name_of(self, task: TaskKey) -> str:
        names = (each.name for each in self.tasks if each.key == task)
        return next(names, "") or f"{task[0]} ({task[1]})"

    @cached_property
    def operators(self) -> tuple[PlannedOperator, ...]:
        """Every operator once, in topological order."""
        return tuple(dict.fromkeys(operator for task in self.tasks for operator in task.operators))

    def tasks_to_trigger(self, finished: Collection[TaskKey]) -> tuple[TaskKey, ...]:
        """The tasks that receive no barrier: those that run, and whose producers, if any, have all finished."""
        return tuple(
            task.key
            for task in self.tasks
            if task.key not in finished
            and all((vertex_id, subtask) in finished for vertex_id, subtasks in task.producers for subtask in subtasks)
        )

    def coordinators(self, finished: Collection[TaskKey]) -> Iterator[str]:
        """The operators whose coordinator takes part: not those all of whose tasks have finished."""
        ids = (
            operator.operator_id
            for task in self.tasks
            if task.key not in finished
            for operator in task.operators
            if operator.has_coordinator
        )
        return iter(dict.fromkeys(ids))
