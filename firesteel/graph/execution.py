"""Execution mode of a job: decided once, when its configuration and its sources are known, with the reason in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from firesteel.common.errors import InvalidProgramError
from firesteel.config import exchange_options, pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.spi import execution_traits
from firesteel.spi.execution_traits import ExecutionTraits
from firesteel.spi.source import Boundedness

if TYPE_CHECKING:
    from firesteel.graph.stream_graph import StreamNode

__all__ = ["Execution", "JobExecution", "JobType", "boundedness_of", "decide_execution"]


class JobExecution(Enum):
    """The three ways to run a job graph."""

    PIPELINED = "pipelined"
    EPOCHS = "epochs"
    BATCH = "batch"


_TRAITS = {
    JobExecution.PIPELINED: execution_traits.PIPELINED,
    JobExecution.EPOCHS: execution_traits.EPOCHS,
    JobExecution.BATCH: execution_traits.BATCH,
}


class JobType(Enum):
    """How Flink's REST API calls a job that may run for ever, and one that ends by itself."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"


@dataclass(frozen=True)
class Execution:
    """How a job is executed, with the reason in words."""

    kind: JobExecution
    reason: str

    @property
    def traits(self) -> ExecutionTraits:
        """What holds for the tasks of the job."""
        return _TRAITS[self.kind]

    @property
    def job_type(self) -> JobType:
        """The same in the words of Flink's REST API."""
        return JobType.BATCH if self.kind is JobExecution.BATCH else JobType.STREAMING


def decide_execution(nodes: Collection[StreamNode], configuration: Configuration) -> Execution:
    """Decides by the runtime mode, the sources and the option execution.exchange.

    A batch job has Spark's shuffle between its stages. A streaming job is pipelined unless execution.exchange is
    spark: then it runs in epochs. InvalidProgramError if the settings contradict each other or the sources.
    """
    sources = [node for node in nodes if node.is_source]
    unbounded = [node for node in sources if boundedness_of([node]) is not Boundedness.BOUNDED]
    mode = configuration.get(pipeline_options.RUNTIME_MODE)
    exchange = configuration.get(exchange_options.EXCHANGE)
    if mode == "BATCH" or (mode == "AUTOMATIC" and not unbounded):
        _check_bounded(unbounded)
        execution = Execution(JobExecution.BATCH, _why_batch(mode, sources))
        if exchange == "pipelined":
            raise InvalidProgramError(
                f"The job runs as a batch ({execution.reason}), which uses Spark's shuffle between its stages, but "
                "execution.exchange is pipelined.",
                hint="Set execution.runtime-mode to STREAMING, or do not set execution.exchange.",
            )
        return execution
    if exchange == "spark":
        return Execution(JobExecution.EPOCHS, "execution.exchange is spark")
    return Execution(JobExecution.PIPELINED, _why_pipelined(mode, unbounded, configuration))


def boundedness_of(nodes: Iterable[StreamNode]) -> Boundedness:
    """BOUNDED if every source among the nodes is."""
    for node in nodes:
        source = node.spec.get_source()
        if source is not None and source.get_boundedness() is not Boundedness.BOUNDED:
            return Boundedness.CONTINUOUS_UNBOUNDED
    return Boundedness.BOUNDED


def _check_bounded(unbounded: Collection[StreamNode]) -> None:
    if not unbounded:
        return
    places = [f"'{node.name}' defined at {node.defined_at or 'an unknown place'}" for node in unbounded]
    subject = "a source does" if len(places) == 1 else f"{len(places)} sources do"
    raise InvalidProgramError(
        f"Runtime mode BATCH needs sources that end, but {subject} not: {', '.join(places)}.",
        hint="Bound the source, or set 'execution.runtime-mode' to STREAMING or AUTOMATIC. A stream that should "
        "hold no slots while it is idle runs with 'execution.exchange' set to spark.",
    )


def _why_batch(mode: str, sources: Iterable[StreamNode]) -> str:
    if mode == "BATCH":
        return "execution.runtime-mode is BATCH"
    return f"execution.runtime-mode is AUTOMATIC and all sources are bounded: {_names(sources)}"


def _why_pipelined(mode: str, unbounded: Iterable[StreamNode], configuration: Configuration) -> str:
    if configuration.get(exchange_options.EXCHANGE) == "pipelined":
        return "execution.exchange is pipelined"
    if mode == "AUTOMATIC":
        return f"execution.runtime-mode is AUTOMATIC and not all sources are bounded: {_names(unbounded)}"
    if configuration.contains(pipeline_options.RUNTIME_MODE):
        return "execution.runtime-mode is STREAMING"
    return "it is the default"


def _names(sources: Iterable[StreamNode]) -> str:
    return ", ".join(f"'{node.name}'" for node in sources)
