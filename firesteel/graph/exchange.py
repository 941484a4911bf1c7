"""How a job is executed, and why: over long-lived tasks, in epochs, or as a batch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.common import exchange_options
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import JobType

__all__ = ["Execution", "JobExecution", "execution_of"]


class JobExecution(Enum):
    """The three ways to run a job graph."""

    PIPELINED = "pipelined"
    EPOCHS = "epochs"
    BATCH = "batch"


@dataclass(frozen=True)
class Execution:
    """How a job is executed, with the reason in words."""

    kind: JobExecution
    reason: str


def execution_of(job_graph: JobGraph) -> Execution:
    """Decides by the runtime mode and the option execution.exchange."""
    exchange = job_graph.configuration.get(exchange_options.EXCHANGE)
    if job_graph.job_type is JobType.BATCH:
        return Execution(JobExecution.BATCH, "the job runs as a batch")
    if exchange == "spark":
        return Execution(JobExecution.EPOCHS, "execution.exchange is spark")
    return Execution(JobExecution.PIPELINED, "it is the default for a streaming job")
