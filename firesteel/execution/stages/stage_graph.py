"""Stage graph of a JobGraph: one stage per vertex, connected by blocking exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from firesteel.execution.stages.exchange_rows import partition_offsets
from firesteel.execution.stages.stage_runner import StageMessage
from firesteel.execution.stages.task_commands import StageTaskDescriptor
from firesteel.graph.deployment import Deployment
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.runtime.model.messages import TaskKey

__all__ = ["Consumer", "Stage", "in_stage_order", "stage_descriptors", "stages_of"]


@dataclass(frozen=True)
class Consumer:
    """A stage that reads some of the partitions that another one writes."""

    vertex_id: str
    offset: int
    """The partition of its subtask 0, among those of the producer."""
    parallelism: int

    @property
    def partitions(self) -> range:
        """Its partitions, one per subtask."""
        return range(self.offset, self.offset + self.parallelism)


@dataclass(frozen=True)
class Stage:
    """A vertex as a stage: who reads what it writes, and who writes what it reads."""

    vertex: JobVertex
    consumers: tuple[Consumer, ...]
    """Each once, in the order of the vertex's edges; their partitions follow one another."""
    producers: tuple[str, ...]
    """The ids of the vertices it reads, each once."""

    @property
    def id(self) -> str:
        """The vertex id."""
        return self.vertex.id

    @property
    def parallelism(self) -> int:
        """How many tasks the stage has."""
        return self.vertex.parallelism

    @property
    def partitions(self) -> int:
        """How many partitions its output has; 0 if it is terminal."""
        return sum(consumer.parallelism for consumer in self.consumers)

    @property
    def is_terminal(self) -> bool:
        """Whether it has no consumer: its tasks yield results."""
        return not self.consumers

    @property
    def is_source(self) -> bool:
        """Whether it reads no rows."""
        return not self.producers

    def consumer(self, vertex_id: str) -> Consumer:
        """One of its consumers."""
        return next(consumer for consumer in self.consumers if consumer.vertex_id == vertex_id)


def stages_of(job_graph: JobGraph) -> tuple[Stage, ...]:
    """All stages, in topological order."""
    return tuple(
        Stage(
            vertex,
            tuple(
                Consumer(vertex_id, offset, job_graph.vertex(vertex_id).parallelism)
                for vertex_id, offset in _offsets(job_graph, vertex).items()
            ),
            tuple(dict.fromkeys(edge.source_vertex for edge in vertex.input_edges)),
        )
        for vertex in job_graph.vertices
    )


def stage_descriptors(job_graph: JobGraph, attempt: int) -> dict[TaskKey, StageTaskDescriptor]:
    """What each task is and where its rows go, in topological order."""
    deployment = Deployment(job_graph, attempt)
    descriptors = {}
    for vertex in job_graph.vertices:
        offsets = _offsets(job_graph, vertex)
        inputs = tuple(edge.id for edge in vertex.input_edges)
        outputs = tuple(edge.id for edge in vertex.output_edges)
        output_offsets = tuple(offsets[edge.target_vertex] for edge in vertex.output_edges)
        for subtask in range(vertex.parallelism):
            descriptors[vertex.id, subtask] = StageTaskDescriptor(
                deployment.task(vertex, subtask), inputs, outputs, output_offsets, job_graph.inline_expressions
            )
    return descriptors


def in_stage_order(job_graph: JobGraph, reports: Sequence[Sequence[StageMessage]]) -> list[StageMessage]:
    """The messages of tasks, those of sources first and subtask by subtask, in whichever order the reports arrived.

    Each report has the messages of one task, in order; one of them names the task.
    """
    places = {vertex.id: place for place, vertex in enumerate(job_graph.vertices)}

    def place_of(report: Sequence[StageMessage]) -> tuple[int, int]:
        for message in report:
            vertex_id = getattr(message, "vertex_id", None)
            if vertex_id is not None:
                return places[vertex_id], getattr(message, "subtask", 0)
        return len(places), 0

    return list(chain(*sorted(reports, key=place_of)))


def _offsets(job_graph: JobGraph, vertex: JobVertex) -> dict[str, int]:
    return partition_offsets(
        [(edge.target_vertex, job_graph.vertex(edge.target_vertex).parallelism) for edge in vertex.output_edges]
    )
