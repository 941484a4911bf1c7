"""Executes job graphs on Spark with long-lived tasks."""

from __future__ import annotations

from weakref import WeakSet

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.job_serialization import serialize_job
from firesteel.jobmaster.runner import JobMasterRunner
from firesteel.spark.host import SparkHost
from firesteel.spark.session import get_spark_context

__all__ = ["SparkPipelineExecutor"]

_jobs: WeakSet[JobMasterRunner] = WeakSet()
"""This process's jobs, for as long as anybody holds them."""


class SparkPipelineExecutor:
    """Runs each job attempt as one barrier stage of the active or an embedded Spark."""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job and returns its client."""
        serialized = serialize_job(job_graph)  # before anything is started
        in_use = any(not job.result_future().done() for job in _jobs)
        context = get_spark_context(configuration, assign_slots(job_graph).total, in_use)
        runner = JobMasterRunner(job_graph, SparkHost(context), serialized)
        _jobs.add(runner)
        runner.start()
        return JobClient(runner)
