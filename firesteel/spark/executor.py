"""Executes job graphs on Spark with long-lived tasks."""

from __future__ import annotations

from weakref import WeakSet

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.job_preparation import prepare_job
from firesteel.jobmaster.runner import JobMasterRunner
from firesteel.spark.host import SparkHost
from firesteel.spark.session import get_spark_context, is_single_host

__all__ = ["SparkPipelineExecutor"]

_jobs: WeakSet[JobMasterRunner] = WeakSet()
"""This process's jobs, for as long as anybody holds them."""


class SparkPipelineExecutor:
    """Runs each job attempt as one barrier stage of the active or an embedded Spark."""

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job and returns its client."""
        # before anything is started: what the program gets wrong is said at once
        job = prepare_job(job_graph, single_host=is_single_host(configuration))
        try:
            in_use = any(not other.result_future().done() for other in _jobs)
            context = get_spark_context(configuration, assign_slots(job.job_graph).total, in_use)
            runner = JobMasterRunner(job, SparkHost(context))
        except BaseException:
            job.discard()
            raise
        _jobs.add(runner)
        runner.start()
        return JobClient(runner)
