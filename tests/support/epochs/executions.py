"""Job graphs that are executed in another way than their configuration says."""

from __future__ import annotations

from dataclasses import replace

from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.job_graph import JobGraph

__all__ = ["executed_as"]


def executed_as(kind: JobExecution, job_graph: JobGraph) -> JobGraph:
    """The same job with another execution."""
    return replace(job_graph, execution=Execution(kind, "the test says so"))
