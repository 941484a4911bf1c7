"""The read side of one job, for whoever shows it: REST, Prometheus, the command line.

A view reads the live JobMaster from any thread. It never waits and never writes; what it gives out may be older than
the next look at it by the time it is read, but is never half of a thing.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.plan import job_plan
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.view.vertices import VertexView

__all__ = ["JobView", "consistently"]

T = TypeVar("T")

_ATTEMPTS = 1000
_plans: dict[int, dict[str, Any]] = {}
"""Plans by the identity of their graphs, for as long as these live."""


def consistently(read: Callable[[], T]) -> T:
    """What a read gives that was not disturbed by the JobMaster's thread writing at the same time."""
    for _ in range(_ATTEMPTS):
        try:
            return read()
        except RuntimeError:
            time.sleep(0)  # a dict changed its size meanwhile: a moment later it does not
    return read()


@dataclass(frozen=True)
class JobView:
    """What is known of a job.

    A job that could not be prepared, or is not yet, has no ``master``: it has no vertices, and an empty plan.
    """

    job_id: str
    name: str
    submitted_at: int
    status: JobStatus
    status_timestamps: Mapping[JobStatus, int] = field(default_factory=dict)
    """When it entered each status last, as far as its master does not know that."""
    master: JobMaster | None = None
    failure: TaskFailure | None = None
    """Why it failed, where no master can say."""
    mishaps: Sequence[ExceptionHistoryEntry] = ()
    """What kept it from running that is no failure of its own, oldest first."""
    pending_end: str | None = None
    """How it has ended, if that is not recorded yet, so that it does not count."""

    # -- times ----------------------------------------------------------------------------------------

    def timestamp(self, status: JobStatus) -> int:
        """When the job entered a status last; 0 if it never did."""
        if self.master is not None and (known := self.master.status_timestamps.get(status)) is not None:
            return known
        known = self.status_timestamps.get(status)
        if known is not None:
            return known
        return self.submitted_at if status is JobStatus.INITIALIZING else 0

    @property
    def start_time(self) -> int:
        """When the job was submitted."""
        return self.timestamp(JobStatus.INITIALIZING)

    @property
    def end_time(self) -> int:
        """When the job ended; -1 while it may go on."""
        return self.timestamp(self.status) if self.status.is_globally_terminal_state() else -1

    def duration(self, now: int) -> int:
        """How long it has run, or ran, in milliseconds."""
        end = self.end_time
        return max(0, (now if end < 0 else end) - self.start_time)

    # -- the graph ------------------------------------------------------------------------------------

    @property
    def execution_graph(self) -> ExecutionGraph | None:
        """Every subtask; None for a job that has no graph."""
        return None if self.master is None else self.master.execution_graph

    @property
    def job_graph(self) -> JobGraph | None:
        """The job at its present parallelism."""
        return None if self.master is None else self.master.execution_graph.job_graph

    @property
    def configuration(self) -> Configuration:
        """The job's own configuration."""
        graph = self.job_graph
        return Configuration() if graph is None else graph.configuration

    @property
    def is_adaptive(self) -> bool:
        """Whether the job makes do with the slots there are."""
        return self.master is not None and self.master.slots.is_adaptive

    @property
    def job_type(self) -> str:
        """``STREAMING`` or ``BATCH``."""
        graph = self.job_graph
        return "STREAMING" if graph is None else graph.job_type.value

    def vertices(self) -> list[VertexView]:
        """All vertices, upstream ones first."""
        master = self.master
        if master is None:
            return []
        # a job that is rescaled gets a new graph: all vertices are to be of the same
        graph = master.execution_graph
        return [VertexView(master, graph, vertex) for vertex in graph.job_vertices.values()]

    def vertex(self, vertex_id: str) -> VertexView | None:
        """One vertex; None if the job has none of that id."""
        master = self.master
        if master is None:
            return None
        graph = master.execution_graph
        vertex = graph.job_vertices.get(vertex_id)
        return None if vertex is None else VertexView(master, graph, vertex)

    def wanted_vertices(self) -> tuple[JobVertex, ...]:
        """The vertices at the parallelism they were asked to run with."""
        return () if self.master is None else self.master.wanted_job_graph.vertices

    def plan(self) -> dict[str, Any]:
        """The object inside ``/jobs/:jobid/plan``; not to be changed."""
        graph = self.job_graph
        if graph is None:
            return {"jid": self.job_id, "name": self.name, "type": self.job_type, "nodes": []}
        plan = _plans.get(id(graph))
        if plan is None:
            plan = _plans[id(graph)] = job_plan(graph)
            weakref.finalize(graph, _plans.pop, id(graph), None)
        return plan

    # -- what happened --------------------------------------------------------------------------------

    def exceptions(self) -> list[ExceptionHistoryEntry]:
        """The failures that ended an attempt, or the job before it had one; newest first."""
        entries = [] if self.master is None else self.master.exception_history.entries()
        if not entries and self.failure is not None:
            at = self.timestamp(self.status) or self.submitted_at
            entries = [ExceptionHistoryEntry(-1, at, self.failure)]
        return sorted([*self.mishaps, *entries], key=lambda entry: entry.at, reverse=True)

    def accumulators(self) -> dict[str, Any]:
        """The accumulators' present values, or those the job ended with."""
        return {} if self.master is None else consistently(self.master.metrics.accumulators)

    def checkpoint_statistics(self) -> dict[str, Any] | None:
        """Counts, summaries and history of the checkpoints, as Flink's REST API gives them."""
        master = self.master
        return None if master is None else consistently(master.checkpoints.coordinator.stats.snapshot)
