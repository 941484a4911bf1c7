"""Read-only view of one job, for REST, Prometheus and the command line.

A view reads the snapshot that the JobMaster published last. It never waits, and all that it returns is of one moment.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionGraphSnapshot
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.plan import job_plan
from firesteel.jobmaster.checkpoints.statistics import CheckpointStatistics
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.model.failure import ExceptionHistoryEntry
from firesteel.jobmaster.view.vertices import VertexView

__all__ = ["JobView"]

_plans: dict[int, dict[str, Any]] = {}
"""Plans by the identity of their graphs, for as long as these live."""


@dataclass(frozen=True)
class JobView:
    """The state of a job at one moment.

    A job that could not be prepared, or is not yet, has no ``snapshot``: it has no vertices, and an empty plan.
    """

    job_id: str
    name: str
    submitted_at: int
    status: JobStatus
    status_timestamps: Mapping[JobStatus, int] = field(default_factory=dict)
    """When it entered each status last, as far as its JobMaster does not know that."""
    snapshot: JobSnapshot | None = None
    failure: TaskFailure | None = None
    """Why it failed, if it has no JobMaster."""
    mishaps: Sequence[ExceptionHistoryEntry] = ()
    """What kept it from running that is no failure of its own, oldest first."""
    pending_end: str | None = None
    """How it has ended, if that is not recorded yet, so that it does not count."""

    # -- times ----------------------------------------------------------------------------------------

    def timestamp(self, status: JobStatus) -> int:
        """When the job entered a status last; 0 if it never did."""
        if self.snapshot is not None and (known := self.snapshot.status_timestamps.get(status)) is not None:
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
    def execution_graph(self) -> ExecutionGraphSnapshot | None:
        """Every subtask; None for a job that has no graph."""
        return None if self.snapshot is None else self.snapshot.execution_graph

    @property
    def job_graph(self) -> JobGraph | None:
        """The job at its present parallelism."""
        return None if self.snapshot is None else self.snapshot.job_graph

    @property
    def configuration(self) -> Configuration:
        graph = self.job_graph
        return Configuration() if graph is None else graph.configuration

    @property
    def is_adaptive(self) -> bool:
        """Whether the job makes do with the slots there are."""
        return self.snapshot is not None and self.snapshot.is_adaptive

    @property
    def job_type(self) -> str:
        """``STREAMING`` or ``BATCH``."""
        graph = self.job_graph
        return "STREAMING" if graph is None else graph.job_type.value

    def vertices(self) -> list[VertexView]:
        """All vertices, upstream ones first."""
        snapshot = self.snapshot
        if snapshot is None:
            return []
        return [VertexView(snapshot, vertex) for vertex in snapshot.job_graph.vertices]

    def vertex(self, vertex_id: str) -> VertexView | None:
        """One vertex; None if the job has none of that id."""
        snapshot = self.snapshot
        if snapshot is None or vertex_id not in snapshot.execution_graph.vertices:
            return None
        return VertexView(snapshot, snapshot.job_graph.vertex(vertex_id))

    def wanted_vertices(self) -> tuple[JobVertex, ...]:
        """The vertices at the parallelism they were asked to run with."""
        return () if self.snapshot is None else self.snapshot.wanted_job_graph.vertices

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
        entries = () if self.snapshot is None else self.snapshot.exception_history
        if not entries and self.failure is not None:
            at = self.timestamp(self.status) or self.submitted_at
            entries = (ExceptionHistoryEntry(-1, at, self.failure),)
        return sorted([*self.mishaps, *entries], key=lambda entry: entry.at, reverse=True)

    def accumulators(self) -> dict[str, Any]:
        """The accumulators' present values, or those the job ended with."""
        return {} if self.snapshot is None else self.snapshot.metrics.accumulators()

    def checkpoint_statistics(self) -> CheckpointStatistics:
        """Counts, summaries and history of the checkpoints."""
        return CheckpointStatistics() if self.snapshot is None else self.snapshot.checkpoints
