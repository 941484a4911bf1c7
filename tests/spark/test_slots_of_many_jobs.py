"""Several jobs on the slots of one embedded Spark: they queue, and what their slots use is known and bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import JobStatus
from firesteel.common.errors import JobExecutionError
from firesteel.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.jobmaster.slots.task_manager_id import task_manager_id
from firesteel.spark.session.cluster_info import embedded_task_manager, executors
from firesteel.spark.session.slots import allocator_of
from firesteel.testing import eventually
from tests.support.jobs.endless import collecting, ended, endless, running, status

pytestmark = pytest.mark.spark

SLOTS = 4
Env = Callable[..., StreamExecutionEnvironment]


def test_jobs_of_one_program_queue_in_order(spark_env: Env, spark_context: Any) -> None:
    """What fits would otherwise overtake what does not; what does not would hang Spark's barrier stage."""
    holder, _ = collecting(endless(spark_env(3)), "holder")
    running(holder)
    big, numbers = collecting(spark_env(2).from_sequence(1, 10), "big")
    small, more = collecting(spark_env(1).from_sequence(1, 3), "small")
    batch_env = spark_env(2).set_runtime_mode(RuntimeExecutionMode.BATCH)
    batch, sums = collecting(batch_env.from_sequence(1, 4).map(lambda number: number), "batch")
    waiting = [client._handle.job_graph.job_id for client in (big, small, batch)]  # type: ignore[attr-defined]
    # their places are those in which they were submitted; that they wait there they find out later
    assert [claim.job_id for claim in allocator_of(spark_context).claims() if claim.is_waiting] == waiting

    def all_wait() -> None:
        assert {status(client) for client in (big, small, batch)} == {JobStatus.CREATED}
        vertices = small._handle.snapshot.execution_graph.vertices  # type: ignore[attr-defined]
        states = {subtask.current.state.name for subtasks in vertices.values() for subtask in subtasks}
        assert states == {"SCHEDULED"}

    eventually(all_wait)
    holder.cancel().result(120)
    assert sorted(numbers) == list(range(1, 11))
    assert sorted(more) == [1, 2, 3]
    assert sorted(sums) == [1, 2, 3, 4]
    for client in (big, small, batch):
        assert ended(client) is None
    eventually(lambda: allocator_of(spark_context).free == SLOTS)


def test_a_job_that_waits_can_be_cancelled(spark_env: Env, spark_context: Any) -> None:
    holder, _ = collecting(endless(spark_env(3)), "holder")
    running(holder)
    waiting, _ = collecting(spark_env(2).from_sequence(1, 10), "waiting")
    eventually(lambda: status(waiting) is JobStatus.CREATED)
    waiting.cancel().result(120)
    assert status(waiting) is JobStatus.CANCELED
    eventually(lambda: [claim.held for claim in allocator_of(spark_context).claims()] == [3])
    holder.cancel().result(120)


def test_slots_say_where_they_run_and_what_they_use(spark_env: Env, spark_context: Any) -> None:
    (executor,) = executors(spark_context)
    assert executor.task_manager == embedded_task_manager(spark_context)
    assert (executor.slots, executor.is_embedded) == (SLOTS, True)
    client, results = collecting(endless(spark_env(2, {"heartbeat.interval": "50 ms"})), "measured")
    next(results)

    def measured() -> None:
        slots = client._handle.snapshot.live_slots()  # type: ignore[attr-defined]
        assert [task_manager_id(slot.registration) for slot in slots] == [executor.task_manager] * 2
        assert all(slot.rss_bytes > 1 << 20 and slot.cpu_ms > 0 for slot in slots)

    eventually(measured)
    client.cancel().result(120)


class Hoarder(MapFunction):
    """Keeps more with every record."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def map(self, value: int) -> int:
        self.kept.append(b"x" * (1 << 20))
        return value


def test_a_slot_that_takes_more_than_its_budget_fails_the_job(spark_env: Env) -> None:
    env = spark_env(1, {"taskmanager.memory.slot.size": "400 mb"})
    _, results = collecting(endless(env, per_second=1000).map(Hoarder()).name("hoarder"), "too much")
    with pytest.raises(JobExecutionError) as caught:
        list(results)
    failure = caught.value.failure
    assert failure.error_type == "SlotMemoryExceeded"
    assert "more than its budget of 400 MB (taskmanager.memory.slot.size)" in failure.message
    assert "hoarder" in failure.message
    # the process is gone, and with it what it kept: the next job has one that is within the same budget
    again = spark_env(1, {"taskmanager.memory.slot.size": "400 mb"})
    assert sorted(again.from_sequence(1, 3).execute_and_collect()) == [1, 2, 3]


def test_many_jobs_leave_nothing_behind(spark_env: Env, spark_context: Any) -> None:
    before = set(threading.enumerate())
    clients = [collecting(spark_env(2).from_sequence(1, 3), f"job {number}") for number in range(6)]
    for client, results in clients:
        assert sorted(results) == [1, 2, 3]
        assert ended(client) is None

    def nothing_is_left() -> None:
        left = {thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("firesteel")}
        assert not left
        assert allocator_of(spark_context).claims() == []

    eventually(nothing_is_left)
