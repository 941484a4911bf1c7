"""Runs queries as Spark SQL, under the settings with which they mean what they mean in Flink."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.spark.dataframes.errors import passing_on_complaints
from firesteel.spark.executor import ship_program
from firesteel.spark.functions import ArrowFunction, arrow_function
from firesteel.spark.session.liveness import spark_lives
from firesteel.spark.session.session import get_spark_context

__all__ = ["SETTINGS", "active_session", "cancel", "collect", "get_session", "progress", "query"]

SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}
"""Integers wrap around, timestamps have no zone, and points in time are computed in UTC: zones are in the queries."""

_lock = threading.RLock()
"""The settings are those of a session, which threads share."""


def get_session(configuration: Configuration) -> SparkSession:
    """The session of the program, or a new one on the Spark on which its jobs run."""
    get_spark_context(configuration, 1, in_use=lambda: True)
    return SparkSession.builder.getOrCreate()


def active_session() -> SparkSession | None:
    """The session on which queries of this process run, if there is one."""
    context = SparkContext._active_spark_context
    return None if context is None or not spark_lives(context) else SparkSession.builder.getOrCreate()


@contextmanager
def _settings(session: SparkSession) -> Iterator[None]:
    """Sets what queries need, and afterwards what was set before."""
    with _lock:
        before = {key: session.conf.get(key, None) for key in SETTINGS}
        try:
            for key, value in SETTINGS.items():
                session.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, old)


def query(
    session: SparkSession,
    text: str,
    views: Mapping[str, Callable[[SparkSession], DataFrame]],
    functions: Mapping[str, ArrowFunction],
) -> DataFrame:
    """The DataFrame of a query over views, with functions; these exist only until it is analyzed."""
    with _settings(session), passing_on_complaints("The query cannot run as Spark SQL"):
        if functions and not session.sparkContext.master.startswith("local"):
            ship_program(session.sparkContext)
        try:
            for name, create in views.items():
                create(session).createOrReplaceTempView(name)
            for name, function in functions.items():
                session.udf.register(name, arrow_function(function))
            return session.sql(text)
        finally:
            for name in views:
                session.catalog.dropTempView(name)
            for name in functions:
                session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def collect(dataframe: DataFrame, tag: str, is_cancelled: Callable[[], bool]) -> Any:
    """The rows as a table of Arrow. The Spark jobs that compute them have a tag."""
    context = dataframe.sparkSession.sparkContext
    with _settings(dataframe.sparkSession), passing_on_complaints("The query failed"):
        context.addJobTag(tag)
        try:
            if is_cancelled():
                raise FiresteelError("The query was cancelled.")
            return dataframe.toArrow()
        finally:
            context.removeJobTag(tag)


def cancel(tag: str) -> None:
    """Cancels the Spark jobs that have a tag."""
    context = SparkContext._active_spark_context
    if context is not None and spark_lives(context):
        context.cancelJobsWithTag(tag)


def progress(tag: str) -> tuple[int, int] | None:
    """How many tasks of the running stages with a tag have ended, of how many; None if none runs."""
    context = SparkContext._active_spark_context
    if context is None or not spark_lives(context):
        return None
    tracker = context.statusTracker()
    jobs = [
        job for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag) if (job := tracker.getJobInfo(number))
    ]
    found = [stage for job in jobs for number in job.stageIds if (stage := tracker.getStageInfo(number))]
    return (sum(stage.numCompletedTasks for stage in found), sum(stage.numTasks for stage in found)) if found else None
