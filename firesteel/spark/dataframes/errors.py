"""Extracts Spark's error messages without their stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from firesteel.common.errors import FiresteelError
from firesteel.spark.session.failures import hint_for, reason_of

__all__ = ["DataFrameError", "passing_on_complaints"]

_EXCEPTION = re.compile(
    r"^(?:Caused by: )?(?:[\w$]+\.)+(?P<class>[\w$]+(?:Exception|Error)): (?P<message>.*)", re.MULTILINE
)
_TRACEBACK = "Traceback (most recent call last):"
_MAX_TEXT = 600


class DataFrameError(FiresteelError):
    """A DataFrame that cannot be read, or made."""


@contextmanager
def passing_on_complaints(what: str) -> Iterator[None]:
    """Turns what Spark raises into a DataFrameError that begins with ``what``."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        complaint = _complaint(error)
        raise DataFrameError(f"{what}: {complaint}", hint=hint_for(complaint)) from error


def _complaint(error: PySparkException | Py4JJavaError) -> str:
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage() or cause)
    if _TRACEBACK in text:  # a Python worker's, whose end is the most specific
        return reason_of(text)
    match = _EXCEPTION.search(text)
    first = (match["message"] if match is not None else text).strip().split("\n\tat ", 1)[0]
    return first if len(first) <= _MAX_TEXT else f"{first[:_MAX_TEXT]}…"
