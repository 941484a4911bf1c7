"""The seam between programs and what runs them."""

from __future__ import annotations

import importlib
from typing import Protocol

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.graph.job_graph import JobGraph

__all__ = ["PipelineExecutor", "resolve_executor"]

_SPARK_EXECUTOR = ("firesteel.spark.executor", "SparkPipelineExecutor")


class PipelineExecutor(Protocol):
    """Runs job graphs."""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts a job and returns at once; the client's handle also has ``collect_iterator(channel)``."""
        ...


def resolve_executor(configuration: Configuration) -> PipelineExecutor:  # noqa: ARG001 - selects among several later
    """The executor a configuration asks for: Spark, which is loaded only here."""
    module, name = _SPARK_EXECUTOR
    executor: PipelineExecutor = getattr(importlib.import_module(module), name)()
    return executor
