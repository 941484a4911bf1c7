"""A job for the simulated cluster, and how its results are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.testing.simulation.outside import Outside

__all__ = ["Workload", "build_graph"]


@dataclass(frozen=True)
class Workload(ABC):
    """A job, and what it must write."""

    name: str
    job_graph: JobGraph
    uses_wall_clock: bool = False
    """Whether its results depend on a wall clock that is not set."""
    can_rescale: bool = True
    """Whether its results are the same for all parallelisms."""
    busy_s: float = 60.0
    """How long there is something to read, about."""

    @abstractmethod
    def problems(self, outside: Outside, *, ended: bool) -> list[str]:
        """What is wrong with what was written by now."""

    @abstractmethod
    def is_complete(self, outside: Outside) -> bool:
        """Whether all output is there."""


class _Capturing:
    """An executor that keeps the graph instead of running it."""

    def __init__(self) -> None:
        self.job_graph: JobGraph | None = None

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        self.job_graph = job_graph
        return None  # type: ignore[return-value]


def build_graph(
    name: str, settings: Mapping[str, str], parallelism: int, define: Callable[[StreamExecutionEnvironment], Any]
) -> JobGraph:
    """The graph of a program, which ``define`` writes."""
    environment = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(dict(settings)))
    environment.set_parallelism(parallelism)
    capturing = environment._executor = _Capturing()
    define(environment)
    environment.execute_async(name)
    assert capturing.job_graph is not None
    return capturing.job_graph
