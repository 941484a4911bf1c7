"""The jobs that a program submits to a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.client.remote_executor import RemoteExecutor
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.rest.jobs import JOB_STATUS
from firesteel.rest.submission import SUBMIT_JOB

JOB_ID = "0123456789abcdef" * 2


class _Interrupted(BaseException):
    """What Ctrl-C raises."""


class _Client:
    """A cluster that accepts a job; the program is interrupted when it asks for its status."""

    url = "http://cluster"

    def call(self, endpoint: Any, *_: Any, **__: Any) -> SimpleNamespace:
        if endpoint is SUBMIT_JOB:
            return SimpleNamespace(job_url=f"/jobs/{JOB_ID}")
        assert endpoint is JOB_STATUS
        raise _Interrupted


def test_a_job_is_known_as_soon_as_the_cluster_has_it() -> None:
    executor = RemoteExecutor(_Client())  # type: ignore[arg-type]
    env = StreamExecutionEnvironment.get_execution_environment()
    env._executor = executor
    env.from_collection([1]).print()
    with pytest.raises(_Interrupted):
        env.execute("mine")
    assert [(job.job_name, str(job.job_id())) for job in executor.jobs] == [("mine", JOB_ID)]
    executor.close()
