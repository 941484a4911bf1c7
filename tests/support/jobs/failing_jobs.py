"""Jobs in process that are to fail, and what is left of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.testing import eventually

__all__ = ["Build", "Env", "digits", "fail"]

Env = Callable[..., StreamExecutionEnvironment]
Build = Callable[[StreamExecutionEnvironment], Any]


def fail(env: StreamExecutionEnvironment, build: Build) -> TaskFailure:
    """Runs a job that must fail and leave no thread behind; why it failed."""
    build(env)
    with pytest.raises(JobExecutionError) as caught:
        env.execute("bad input")
    assert caught.value.job_name == "bad input"
    eventually(_no_thread_is_left)
    return caught.value.failure


def _no_thread_is_left() -> None:
    """The job's own thread may be about to end when its result is there."""
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("firesteel-")] == []


def digits(env: StreamExecutionEnvironment) -> DataStream:
    """0 to 9."""
    return env.from_collection(list(range(10)))
