"""PipelineExecutor: the interface between programs and the runtime that executes their jobs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.process.config_file import file_settings

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
    """Sets the default configuration and the executor of environments created within the context.

    For code that runs programs, such as the command line. Settings of the program override the configuration, as with
    Flink's command line. The context applies to the whole process. A nested context adds to the outer configuration,
    and replaces the executor if it has one.
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
    """The default configuration of environments: that of the configuration file, and of the execution context."""
    return Configuration.from_dict(file_settings()).add_all(_default_configuration)


def context_executor() -> PipelineExecutor | None:
    """The executor of the context there is, if it has one."""
    return _executor


def resolve_executor(configuration: Configuration) -> PipelineExecutor:  # noqa: ARG001 - selects among several later
    """The executor of the context, else the configured one: Spark, which is imported only here."""
    if _executor is not None:
        return _executor
    return spark_executor()


def spark_executor() -> PipelineExecutor:
    """The executor that runs jobs on Spark."""
    module, name = _SPARK_EXECUTOR
    executor: PipelineExecutor = getattr(importlib.import_module(module), name)()
    return executor
