"""The seam between programs and what runs them: the executor, and what whoever runs a program says of it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph

__all__ = [
    "PipelineExecutor",
    "context_executor",
    "default_configuration",
    "execution_context",
    "resolve_executor",
    "spark_executor",
]

_SPARK_EXECUTOR = ("firesteel.spark.executor", "SparkPipelineExecutor")


class PipelineExecutor(Protocol):
    """Runs job graphs."""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts a job and returns at once; the client's handle also has ``collect_iterator(channel)``."""
        ...


# Not context variables: a program may make its environments in threads of its own, which would not inherit them.
_default_configuration = Configuration()
_executor: PipelineExecutor | None = None


@contextmanager
def execution_context(
    configuration: Configuration | None = None, executor: PipelineExecutor | None = None
) -> Iterator[None]:
    """While it lasts, environments start from the configuration, and the executor runs their jobs.

    It is for whoever runs a program: what the program itself sets comes on top of the configuration, as with Flink's
    command line. It holds for the whole process. Within another context it adds to that one's configuration, and
    replaces its executor if it has one itself.
    """
    global _default_configuration, _executor
    saved = _default_configuration, _executor
    _default_configuration = Configuration(_default_configuration).add_all(configuration or Configuration())
    _executor = executor or _executor
    try:
        yield
    finally:
        _default_configuration, _executor = saved


def default_configuration() -> Configuration:
    """What an environment starts from: nothing, or what whoever runs the program has set."""
    return Configuration(_default_configuration)


def context_executor() -> PipelineExecutor | None:
    """The executor of the context there is, if it has one."""
    return _executor


def resolve_executor(configuration: Configuration) -> PipelineExecutor:  # noqa: ARG001 - selects among several later
    """The executor of the context, else the one a configuration asks for: Spark, which is loaded only here."""
    if _executor is not None:
        return _executor
    return spark_executor()


def spark_executor() -> PipelineExecutor:
    """The executor that runs jobs on Spark."""
    module, name = _SPARK_EXECUTOR
    executor: PipelineExecutor = getattr(importlib.import_module(module), name)()
    return executor
