"""Whether Spark can still be used, and whose fault an error is."""

from __future__ import annotations

from py4j.protocol import Py4JNetworkError
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
    except Exception:  # noqa: BLE001 - Py4J raises several kinds when nobody answers
        return False


def host_error(context: SparkContext, error: BaseException) -> HostError | None:
    """The error as one that Spark itself is to blame for; None if Spark is there, so that it tells of the job."""
    if isinstance(error, HostError):
        return error
    if isinstance(error, FiresteelError):
        return None
    is_gone = not spark_lives(context)
    if not is_gone and not isinstance(error, Py4JNetworkError):
        return None
    text = "Spark's JVM has ended, or was stopped" if is_gone else "Spark does not answer"
    return HostError(f"{text}: {type(error).__name__}: {_first_line(error)}", is_gone=is_gone)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
