"""All that a leading JobManager answers."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.cluster.dispatcher import Dispatcher
from firesteel.cluster.logs import LogFiles
from firesteel.cluster.rest.handlers import checkpoints, jobs, metrics, rescaling, vertices
from firesteel.cluster.rest.request import Route
from firesteel.cluster.spark_cluster import SparkCluster

__all__ = ["all_routes"]


def all_routes(
    dispatcher: Dispatcher, spark: SparkCluster, logs: LogFiles, started_at: int, stop: Callable[[str], None]
) -> list[Route]:
    """The routes of every topic."""
    return [
        *jobs.routes(dispatcher),
        *vertices.routes(dispatcher),
        *checkpoints.routes(dispatcher),
        *metrics.routes(dispatcher),
        *rescaling.routes(dispatcher, spark.resources),
    ]
