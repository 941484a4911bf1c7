"""Jobs that end on purpose during a chaos run, so that faults can strike while they are CANCELLING or FAILING."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.rest.client import RestClient
from firesteel.rest.submission import CANCEL_JOB
from firesteel.rest.token import TOKEN_FILE_NAME, read_token
from tests.support.chaos.cluster.cluster import ChaosCluster
from tests.support.jobs.endless import endless
from tests.support.services.job_managers import submit

__all__ = ["CANCELLING", "FAILING", "DoomedJobs"]

CANCELLING, FAILING = "CANCELLING", "FAILING"
ENDED = ("CANCELED", "FAILED", "FINISHED")
CLOSE_S = 3.0
"""How long a doomed job is CANCELLING or FAILING."""
READY_S = 20.0
AGAIN_S = 5.0


class DoomedJobs:
    """Starts such jobs, and sees to it that they end.

    Neither status is kept beyond a change of the leader, as in Flink: the next one runs the job again. So a job is
    cancelled until it has ended.
    """

    def __init__(self, cluster: ChaosCluster, root: Path, say: Callable[[str], None]):
        self._cluster = cluster
        self._root = root
        self._say = say
        self._ids: list[str] = []
        self._asked_at = 0.0

    def begin(self, status: str, wait_for: Callable[[Callable[[], Any], str, float], Any]) -> None:
        """Starts a job and has it end; returns at once when it was told to. Without a leader nothing happens."""
        fail = self._root / f"fail-{len(self._ids)}"
        leader = self._cluster.leader()
        if leader is None:
            return
        settings = {"restart-strategy.type": "none", "task.cancellation.timeout": "30 s"}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        endless(env.set_parallelism(1), 50).map(Doomed(str(fail))).filter(lambda _: False).print()
        try:
            job_id = submit(leader, env, f"to be {status}")
        except (FiresteelError, OSError) as error:
            self._say(f"  no job to be {status}: {error}")
            return
        self._ids.append(job_id)
        end = time.monotonic() + READY_S
        wait_for(
            lambda: self._cluster.states().get(job_id) == "RUNNING" or time.monotonic() > end, f"{job_id}", 3 * READY_S
        )
        if status == FAILING:
            fail.touch()
        else:
            self.cancel(job_id)

    def cancel(self, job_id: str) -> None:
        """Cancels a job, if somebody leads."""
        leader = self._cluster.leader()
        if leader is None:
            return
        with suppress(FiresteelError, OSError):
            token = read_token(str(leader.directory / TOKEN_FILE_NAME))
            with RestClient(leader.url(), token=token) as client:
                client.call(CANCEL_JOB, path={"jobid": job_id})

    def without(self, states: dict[str, str]) -> dict[str, str]:
        """Returns the states of all other jobs."""
        return {job_id: state for job_id, state in states.items() if job_id not in self._ids}

    def have_ended(self) -> bool:
        """Whether all have; cancels those that have not, now and then."""
        states = self._cluster.states()
        left = [job_id for job_id in self._ids if states.get(job_id, "CANCELED") not in ENDED]
        if states and not left:
            return True
        if time.monotonic() > self._asked_at + AGAIN_S:
            self._asked_at = time.monotonic()
            for job_id in left:
                self.cancel(job_id)
        return False


class Doomed(MapFunction):
    """Fails when there is a file, and takes its time to close."""

    def __init__(self, fail: str):
        self._fail = fail

    def map(self, value: int) -> int:
        if Path(self._fail).exists():
            raise ValueError("this job is to fail")
        return value

    def close(self) -> None:
        time.sleep(CLOSE_S)
