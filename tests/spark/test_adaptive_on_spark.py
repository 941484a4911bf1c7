"""The adaptive scheduler on the embedded Spark, whose slots several jobs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common import JobStatus
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from tests.support.jobs.endless import collecting, endless, running, status

SLOTS = 4
ADAPTIVE = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "200 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "500 ms",
    "execution.checkpointing.interval": "500 ms",
}
Env = Callable[..., StreamExecutionEnvironment]


class Parallelism(MapFunction):
    """The parallelism at which a record was seen."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value: Any) -> int:
        return self.parallelism


def test_a_job_that_wants_more_slots_than_spark_has_runs_with_those(spark_env: Env) -> None:
    env = spark_env(SLOTS + 2, ADAPTIVE)
    assert set(env.from_sequence(1, 100).map(Parallelism()).execute_and_collect()) == {SLOTS}


def test_a_job_takes_what_others_leave_and_what_they_give_back(spark_env: Env) -> None:
    other, _ = collecting(endless(spark_env(SLOTS - 1)).map(lambda number: number), "other")
    running(other)
    job, parallelisms = collecting(endless(spark_env(SLOTS, ADAPTIVE)).map(Parallelism()), "adaptive")
    assert next(parallelisms) == 1
    other.cancel().result(120)
    assert next(each for each in parallelisms if each != 1) == SLOTS
    job.cancel().result(120)
    assert status(job) is JobStatus.CANCELED
