"""All that a leading JobManager answers."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.cluster.dispatcher import Dispatcher
from firesteel.cluster.logs import LogFiles
from firesteel.cluster.prometheus import PrometheusMetrics
from firesteel.cluster.rest.handlers import (
    checkpoints,
    cluster,
    diagnostics,
    exceptions,
    jobmanager,
    jobs,
    metrics,
    rescaling,
    task_managers,
    vertices,
)
from firesteel.cluster.rest.request import Route
from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.cluster.task_managers import TaskManagers
from firesteel.common import cluster_options

__all__ = ["all_routes"]


def all_routes(dispatcher: Dispatcher, spark: SparkCluster, logs: LogFiles, stop: Callable[[], None]) -> list[Route]:
    """The routes of every topic; ``stop`` tells the JobManager to end."""
    configuration, resources = dispatcher.configuration, spark.resources
    slot_memory = configuration.get(cluster_options.SLOT_MEMORY)
    managers = TaskManagers(
        spark.executors,
        resources,
        dispatcher.jobs,
        java_pid=spark.java_pid,
        slot_memory=None if slot_memory is None else slot_memory.bytes,
    )
    prometheus = PrometheusMetrics(dispatcher, jobmanager.JobManagerMetrics(dispatcher, resources, managers).values)
    has_prometheus = configuration.get(cluster_options.PROMETHEUS_ENABLED)
    return [
        *jobs.routes(dispatcher),
        *vertices.routes(dispatcher),
        *checkpoints.routes(dispatcher),
        *exceptions.routes(dispatcher),
        *metrics.routes(dispatcher, prometheus.text if has_prometheus else None),
        *diagnostics.routes(dispatcher, configuration),
        *rescaling.routes(dispatcher, resources),
        *cluster.routes(dispatcher, resources, managers, configuration, stop),
        *task_managers.routes(managers, logs),
        *jobmanager.routes(dispatcher, resources, managers, configuration, logs),
    ]
