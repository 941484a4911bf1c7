"""Converts Spark's exceptions to a StageError: the failed task's own report, or one readable line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from firesteel.execution.stages.errors import decode_messages, failure_of
from firesteel.execution.stages.stage_runner import StageError

__all__ = ["hint_for", "of_attempt", "reason_of", "stage_error"]

_ERROR = re.compile(r"[\w.$]*(?:Error|Exception|Failure)\b.*: \S|ExecutorLostFailure")
_LOST_TASK = re.compile(r"most recent failure: Lost task [^:]*: (?P<reason>.*)")
_CLASSES = re.compile(r"^(?:[a-z][\w$]*\.)+[\w$]+: ")
_CODE = re.compile(r"^\[[A-Z_.]+\] ")
_MAX_REASON = 500
_CRASHED = "Python worker exited unexpectedly"
_CRASHED_HINT = (
    "It was killed (out of memory?), or a function ended or crashed it; with spark.python.worker.faulthandler.enabled "
    "the log has its last traceback."
)
_MODULE_HINT = (
    "Spark's Python workers do not find a module that the program needs. Set spark.pyspark.python to an interpreter "
    "that has firesteel and what the program imports, or ship the module: SparkContext.addPyFile."
)


def stage_error(error: BaseException, attempt: int) -> StageError:
    """The failure report of a run that Spark gave up."""
    text = str(error)
    messages = decode_messages(text)
    if messages:
        failure = failure_of(messages)
        return StageError("A task has failed." if failure is None else failure.message, of_attempt(messages, attempt))
    reason = reason_of(text)
    if _CRASHED in reason:
        reason = f"A Python worker has died: {reason.partition('. ')[0].rstrip('.')}."
    return StageError(reason, hint=hint_for(reason))


def hint_for(reason: str) -> str | None:
    """What may be done about it.

    >>> hint_for("ValueError: no such thing")
    """
    if _CRASHED in reason:
        return _CRASHED_HINT
    return _MODULE_HINT if reason.startswith(("ModuleNotFoundError: ", "ImportError: ")) else None


def reason_of(text: str) -> str:
    """The innermost error in Spark's text: the Python worker's own if there is one.

    >>> reason_of('''An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
    ... : org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most \\
    ... recent failure: Lost task 0.0 in stage 1.0 (TID 3) (host executor driver): org.apache.spark.SparkException: \\
    ... Python worker exited unexpectedly (crashed)
    ... \\tat org.apache.spark...''')
    'Python worker exited unexpectedly (crashed)'
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    errors = [line for line in lines if _ERROR.match(line) and not line.startswith("at ")]
    of_python = [line for line in errors if not line.startswith(("org.", "java.", "py4j.", "scala.", "Executor"))]
    lost = [found["reason"] for line in lines if (found := _LOST_TASK.search(line)) is not None]
    reasons = of_python[-1:] or lost[:1] or errors[:1] or [line for line in lines if line] or [text]
    return _CODE.sub("", _CLASSES.sub("", reasons[0]))[:_MAX_REASON]


def of_attempt(messages: Sequence[Any], attempt: int) -> list[Any]:
    """Messages as of an attempt: a stage that finished in an earlier one has not been run again for it."""
    return [
        replace(message, attempt=attempt) if getattr(message, "attempt", attempt) != attempt else message
        for message in messages
    ]
