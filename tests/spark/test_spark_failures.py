"""What is made of Spark's own account of a failure; needs no Spark to run."""

from __future__ import annotations

from firesteel.common.errors import TaskFailure
from firesteel.spark.pipelined.host import _spark_failure

STAGE = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: ResultStage 0 has failed the maximum "
    "allowable number of times: 1. Most recent failure reason: Stage failed because barrier task ResultTask(0, 0) "
    "finished unsuccessfully."
)


class Py4JJavaError(Exception):
    """Stands for py4j's, which cannot be made without a JVM."""


def _failure(*lines: str) -> TaskFailure:
    return _spark_failure(Py4JJavaError("\n".join(["An error occurred while calling z:x.collectAndServe.", *lines])))


def _message(*lines: str) -> str:
    failure = _failure(*lines)
    assert failure.error_type == "SparkException"
    assert failure.user_file is None
    assert STAGE[2:] in failure.traceback or len(lines) == 1
    return failure.message


def test_the_python_workers_own_error_is_the_reason() -> None:
    assert (
        _message(
            STAGE,
            "org.apache.spark.api.python.PythonException: Traceback (most recent call last):",
            '  File "worker.py", line 1, in main',
            "ModuleNotFoundError: No module named 'firesteel'",
            "\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)",
        )
        == "ModuleNotFoundError: No module named 'firesteel'"
    )


def test_however_long_the_traceback_is() -> None:
    frames = [f'  File "module_{n}.py", line {n}, in <module>' for n in range(500)]
    lines = (STAGE, "org.apache.spark.api.python.PythonException: Traceback (most recent call last):", *frames)
    failure = _failure(*lines, "ModuleNotFoundError: No module named 'helper'", " SQLSTATE: 38000")
    assert failure.message == "ModuleNotFoundError: No module named 'helper'"
    assert failure.hint is not None
    assert "spark.pyspark.python" in failure.hint


def test_a_crashed_worker_is_the_reason() -> None:
    reason = "Python worker exited unexpectedly (crashed)."
    lines = (STAGE, f"org.apache.spark.SparkException: {reason}", "\tat x", "Caused by: java.io.EOFException")
    assert _message(*lines) == reason


def test_a_cancelled_job_says_so() -> None:
    line = ": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group"
    assert _message(line) == "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group"


def test_other_errors_stay_as_they_are() -> None:
    assert _spark_failure(ValueError("no such thing")).error_type == "ValueError"
