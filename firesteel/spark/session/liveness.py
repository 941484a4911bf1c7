"""Liveness of the SparkContext, and whether an error was caused by its end."""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from firesteel.common.errors import FiresteelError, HostError

__all__ = ["host_error", "spark_lives"]


def spark_lives(context: SparkContext) -> bool:
    """Whether a SparkContext has not been stopped, and its JVM has not ended. Asks the JVM, if there is one."""
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is not None and process.poll() is not None:
        return False
    try:
        return context._jsc is not None and not context._jsc.sc().isStopped()
    except Exception:  # noqa: BLE001 - Py4J raises several kinds when the JVM does not answer
        return False


def host_error(context: SparkContext, error: BaseException) -> HostError | None:
    """The error as a failure of Spark itself; None if it concerns the job.

    What the JVM raises (Py4JJavaError) concerns the job as long as Spark is there. What the connection to it raises,
    or what ends a thread, never does.
    """
    if isinstance(error, HostError):
        return error
    if isinstance(error, FiresteelError):
        return None
    is_gone = not spark_lives(context)
    is_of_connection = isinstance(error, (OSError, EOFError, Py4JError)) and not isinstance(error, Py4JJavaError)
    if isinstance(error, Exception) and not is_gone and not is_of_connection:
        return None
    text = "Spark's JVM has ended, or was stopped" if is_gone else "Spark could not be reached"
    return HostError(f"{text}: {type(error).__name__}: {_first_line(error)}", is_gone=is_gone)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
