"""Which tasks take part in the checkpoints of an attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from firesteel.graph.channels import connections
from firesteel.graph.job_graph import JobGraph

__all__ = ["CheckpointPlan", "PlannedOperator", "PlannedTask", "TaskKey"]

TaskKey: TypeAlias = tuple[str, int]
"""Vertex id and subtask."""


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
    producers: frozenset[TaskKey] = frozenset()
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
        """The plan of a job."""
        producers: dict[TaskKey, set[TaskKey]] = defaultdict(set)
        for edge in job_graph.edges:
            writers, readers = job_graph.vertex(edge.source_vertex), job_graph.vertex(edge.target_vertex)
            for writer, reader in connections(edge.partitioner, writers.parallelism, readers.parallelism):
                producers[readers.id, reader].add((writers.id, writer))
        tasks: list[PlannedTask] = []
        for vertex in job_graph.vertices:
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
                    frozenset(producers[vertex.id, subtask]),
                    f"'{vertex.name}' ({subtask + 1}/{vertex.parallelism})",
                )
                for subtask in range(vertex.parallelism)
            )
        return cls(tuple(tasks))

    @cached_property
    def keys(self) -> frozenset[TaskKey]:
        """All tasks."""
        return frozenset(task.key for task in self.tasks)

    def name_of(self, task: TaskKey) -> str:
        """A task's name."""
        names = (each.name for each in self.tasks if each.key == task)
        return next(names, "") or f"{task[0]} ({task[1]})"

    @cached_property
    def operators(self) -> tuple[PlannedOperator, ...]:
        """Every operator once, in topological order."""
        return tuple(dict.fromkeys(operator for task in self.tasks for operator in task.operators))

    def tasks_to_trigger(self, finished: Collection[TaskKey]) -> tuple[TaskKey, ...]:
        """The tasks nobody sends a barrier to: those that run, and whose producers, if any, have all finished."""
        return tuple(
            task.key
            for task in self.tasks
            if task.key not in finished and all(producer in finished for producer in task.producers)
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
