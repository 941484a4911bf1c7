"""REST routes of a leading JobManager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firesteel.cluster.diagnostics.logs import LogFiles
from firesteel.cluster.diagnostics.prometheus import PrometheusMetrics
from firesteel.cluster.diagnostics.task_managers import TaskManagerInventory
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.programs import ProgramRunner, ProgramStore
from firesteel.cluster.rest.handlers import (
    checkpoints,
    cluster,
    diagnostics,
    exceptions,
    job_logs,
    jobmanager,
    jobs,
    login,
    metrics,
    programs,
    rescaling,
    savepoints,
    sql_routes,
    submission,
    task_managers,
    vertices,
)
from firesteel.cluster.rest.request import Route
from firesteel.cluster.spark_cluster import SparkCluster
from firesteel.cluster.sql_gateway import LazyGateway
from firesteel.config import cluster_options
from firesteel.rest.token import TOKEN_FILE_NAME, read_token

__all__ = ["all_routes"]


def all_routes(
    dispatcher: Dispatcher,
    spark: SparkCluster,
    logs: LogFiles,
    directory: Path,
    stop: Callable[[], None],
    gateway: LazyGateway,
) -> list[Route]:
    """The routes of all handlers; ``directory`` is the cluster's, and ``stop`` ends the JobManager."""
    configuration, resources = dispatcher.configuration, spark.resources
    slot_memory = configuration.get(cluster_options.SLOT_MEMORY)
    managers = TaskManagerInventory(
        spark.executors,
        resources,
        dispatcher.jobs,
        java_pid=spark.java_pid,
        slot_memory=None if slot_memory is None else slot_memory.bytes,
    )
    prometheus = PrometheusMetrics(dispatcher, jobmanager.JobManagerMetrics(dispatcher, resources, managers).values)
    has_prometheus = configuration.get(cluster_options.PROMETHEUS_ENABLED)
    uploads = configuration.get(cluster_options.WEB_UPLOAD_DIRECTORY) or directory / "programs"
    token_file = configuration.get(cluster_options.REST_TOKEN_FILE) or str(directory / TOKEN_FILE_NAME)
    return [
        *submission.routes(dispatcher, is_cancel_enabled=configuration.get(cluster_options.WEB_CANCEL_ENABLED)),
        *savepoints.routes(dispatcher),
        *programs.routes(
            ProgramStore(uploads),
            ProgramRunner(configuration, token_file),
            is_enabled=configuration.get(cluster_options.WEB_SUBMIT_ENABLED),
        ),
        *jobs.routes(dispatcher),
        *vertices.routes(dispatcher),
        *checkpoints.routes(dispatcher),
        *exceptions.routes(dispatcher),
        *job_logs.routes(dispatcher, logs.job_logs),
        *metrics.routes(dispatcher, prometheus.text if has_prometheus else None),
        *diagnostics.routes(dispatcher, configuration),
        *rescaling.routes(dispatcher),
        *cluster.routes(dispatcher, resources, managers, configuration, stop),
        *login.routes(lambda: read_token(token_file)),
        *task_managers.routes(managers, logs),
        *jobmanager.routes(dispatcher, resources, managers, configuration, logs),
        *sql_routes.routes(gateway.handlers),
    ]
