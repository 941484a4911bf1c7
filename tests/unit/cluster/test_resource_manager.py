"""Who gets slots, and when: the ledger alone, then with jobs that wait in threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.cluster.dispatcher.resource_manager import ResourceManager
from firesteel.common import Configuration
from firesteel.common.errors import NotEnoughSlotsError, TaskFailure
from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotsAvailable, SlotsQueued
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.queued_host import QueuedHost
from firesteel.jobmaster.slots.ledger import SlotLedger, SlotPlace
from firesteel.runtime.model.messages import RegisterSlot
from firesteel.testing import eventually

# -- the ledger ----------------------------------------------------------------------------------------


def test_a_small_job_does_not_overtake_a_big_one() -> None:
    ledger = SlotLedger(4)
    assert ledger.request("runs", 2)
    assert not ledger.request("big", 4)
    assert not ledger.request("small", 1)
    assert ledger.place("big") == SlotPlace(ahead=0, free=2, total=4)
    assert ledger.place("small") == SlotPlace(ahead=1, free=2, total=4)
    ledger.release("runs")
    assert (ledger.holds("big"), ledger.holds("small")) == (4, 0)
    ledger.release("big")
    assert ledger.holds("small") == 1


def test_a_job_that_restarts_keeps_its_slots() -> None:
    ledger = SlotLedger(4)
    assert ledger.request("restarts", 3)
    assert not ledger.request("waits", 2)
    assert ledger.request("restarts", 3)
    assert ledger.holds("waits") == 0
    ledger.release("restarts")
    assert ledger.holds("waits") == 2


def test_a_job_that_restarts_with_fewer_slots_gives_the_others_back() -> None:
    ledger = SlotLedger(4)
    assert ledger.request("shrinks", 4)
    assert not ledger.request("waits", 2)
    assert ledger.request("shrinks", 2)
    assert (ledger.holds("shrinks"), ledger.holds("waits"), ledger.free) == (2, 2, 0)


def test_a_job_that_makes_do_with_fewer_gets_the_others_first() -> None:
    """A batch: its tasks take whatever Spark has, so what it wants is counted before what comes later gets any."""
    ledger = SlotLedger(4)
    assert ledger.request("runs", 3)
    assert ledger.request("batch", 1, 4)
    assert ledger.holds("batch") == 1
    assert not ledger.request("waits", 2)
    ledger.release("runs")
    assert (ledger.holds("batch"), ledger.holds("waits")) == (4, 0)
    ledger.release("batch")
    assert ledger.holds("waits") == 2


def test_slots_that_are_lost_are_not_given_out_again() -> None:
    """Two jobs lose their slots at once: the first that came starts again in what is left, the other waits."""
    ledger = SlotLedger(4)
    assert ledger.request("first", 2)
    assert ledger.request("second", 2)
    ledger.total = 2
    assert not ledger.request("second", 2), "the first has not let go of its slots"
    assert ledger.request("first", 2)
    assert ledger.holds("second") == 0
    assert ledger.free == 0
    ledger.total = 4
    assert ledger.holds("second") == 2


def test_whoever_keeps_a_place_lets_nobody_past() -> None:
    """An adaptive job looks at what is there before it asks."""
    ledger = SlotLedger(4)
    ledger.request("runs", 3)
    ledger.join("adaptive")
    assert ledger.left_for("adaptive") == 1
    assert not ledger.request("later", 1)
    assert ledger.left_for("later") == 0
    assert ledger.request("adaptive", 1)
    assert ledger.left_for("adaptive") == 1
    ledger.release("runs")
    assert ledger.holds("later") == 1
    assert ledger.left_for("adaptive") == 3


def test_a_job_that_gives_up_waiting_makes_way() -> None:
    ledger = SlotLedger(2)
    ledger.request("runs", 1)
    assert not ledger.request("big", 2)
    assert not ledger.request("small", 1)
    ledger.withdraw("big")
    assert ledger.holds("small") == 1


def test_no_slot_is_given_out_twice_and_none_is_lost() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        ledger = SlotLedger(draw.randint(1, 6))
        alive: list[str] = []
        for step in range(60):
            action = draw.random()
            if action < 0.5:
                name = f"job-{step}"
                needed = draw.randint(1, ledger.total)
                ledger.request(name, needed, draw.randint(needed, ledger.total))
                alive.append(name)
            elif alive and action < 0.8:
                ledger.release(alive.pop(draw.randrange(len(alive))))
            elif alive:
                name = draw.choice(alive)
                if ledger.holds(name):
                    ledger.request(name, draw.randint(1, ledger.holds(name)))
            held = [claim.held for claim in ledger.claims()]
            assert sum(held) + ledger.free == ledger.total, seed
            waiting = [claim for claim in ledger.claims() if claim.is_waiting]
            if waiting:
                assert waiting[0].needed is not None
                assert waiting[0].needed > ledger.free, (seed, "the first that waits would fit")


# -- jobs that wait ------------------------------------------------------------------------------------


class FakeHost:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.post: Post | None = None

    def start(self, attempt: Attempt, post: Post) -> None:
        self.post = post
        self.told.append(("start", attempt.number, attempt.slots))

    def watch_slots(self, post: Post) -> None:
        self.told.append(("watch",))

    def slots_left(self) -> int | None:
        return None

    def send(self, attempt: int, slot: int, message: Any) -> None:
        self.told.append(("send", attempt, slot, message))

    def kill(self, attempt: int, reason: str) -> None:
        self.told.append(("kill", attempt))

    def close(self) -> None:
        self.told.append(("close",))


class Job:
    """A queued host and what it posts."""

    def __init__(self, resources: ResourceManager, name: str, **options: Any):
        self.inner = FakeHost()
        self.host = QueuedHost(self.inner, resources, name, **options)
        self.events: list[Any] = []
        execution = Execution(JobExecution.PIPELINED, "it is the default")
        self._graph = JobGraph(name, name, Configuration(), (), (), execution)

    def start(self, slots: int, number: int = 0) -> None:
        self.host.start(Attempt(number, slots, self._graph, b""), self.events.append)

    @property
    def starts(self) -> list[tuple[Any, ...]]:
        return [told for told in self.inner.told if told[0] == "start"]


class Cluster:
    """Jobs that share slots."""

    def __init__(self, total: int, *, is_fixed: bool = True):
        self.total = total
        self.resources = ResourceManager(lambda: self.total, is_fixed=is_fixed, look_s=0.02)
        self.jobs: list[Job] = []

    def job(self, name: str, **options: Any) -> Job:
        self.jobs.append(Job(self.resources, name, **options))
        return self.jobs[-1]


@pytest.fixture
def clusters() -> Iterator[Any]:
    made: list[Cluster] = []

    def make(total: int, *, is_fixed: bool = True) -> Cluster:
        made.append(Cluster(total, is_fixed=is_fixed))
        return made[-1]

    yield make
    for cluster in made:
        for job in cluster.jobs:
            job.host.close()


def _waiting_threads() -> int:
    return sum(thread.name == "firesteel-slot-queue" for thread in threading.enumerate())


def test_jobs_start_one_after_the_other(clusters: Any) -> None:
    cluster = clusters(4)
    first, second, third = (cluster.job(name) for name in ("first", "second", "third"))
    first.start(3)
    assert first.starts == [("start", 0, 3)]
    second.start(2)
    third.start(1)
    eventually(lambda: second.events == [SlotsQueued(0, 0, 1, 4)])
    eventually(lambda: third.events == [SlotsQueued(0, 1, 1, 4)])
    assert cluster.resources.overview().waiting == ("second", "third")
    first.host.close()
    eventually(lambda: bool(second.starts and third.starts))
    assert cluster.resources.overview().held == {"second": 2, "third": 1}
    assert third.events[-1].ahead == 0, "its time to wait for slots counts from here"
    eventually(lambda: _waiting_threads() == 0)


def test_hundred_jobs_start_in_the_order_in_which_they_came(clusters: Any) -> None:
    cluster = clusters(1)
    jobs = [cluster.job(f"job-{number}") for number in range(100)]
    for job in jobs:
        job.start(1)
    for number, job in enumerate(jobs):
        eventually(lambda job=job: bool(job.starts))
        assert not any(later.starts for later in jobs[number + 1 :])
        job.host.close()


def test_a_job_that_waits_can_be_killed_and_started_again(clusters: Any) -> None:
    cluster = clusters(2)
    holder, waiting = cluster.job("holder"), cluster.job("waiting")
    holder.start(2)
    waiting.start(1)
    eventually(lambda: bool(waiting.events))
    waiting.host.kill(0, "enough")
    eventually(lambda: waiting.events[-1] == AttemptEnded(0, None))
    assert cluster.resources.overview().waiting == ()
    waiting.start(1, number=1)
    holder.host.close()
    eventually(lambda: waiting.starts == [("start", 1, 1)])
    waiting.host.kill(1, "the inner host's business")
    assert waiting.inner.told[-1] == ("kill", 1)


def test_a_job_that_waits_can_be_closed(clusters: Any) -> None:
    cluster = clusters(2)
    holder, waiting = cluster.job("holder"), cluster.job("waiting")
    holder.start(2)
    waiting.start(1)
    waiting.host.close()
    assert _waiting_threads() == 0
    assert waiting.inner.told == [("close",)]
    assert cluster.resources.overview().held == {"holder": 2}


def test_slots_are_kept_between_attempts(clusters: Any) -> None:
    cluster = clusters(2)
    restarts, waiting = cluster.job("restarts"), cluster.job("waiting")
    restarts.start(2)
    waiting.start(1)
    restarts.start(2, number=1)
    assert restarts.starts == [("start", 0, 2), ("start", 1, 2)]
    assert not waiting.starts
    restarts.host.close()
    eventually(lambda: bool(waiting.starts))


def test_more_slots_than_an_embedded_spark_has_fail_at_once(clusters: Any) -> None:
    cluster = clusters(2)
    job = cluster.job("job")
    job.start(3)
    (ended,) = job.events
    assert isinstance(ended, AttemptEnded)
    assert isinstance(ended.failure, TaskFailure)
    error = ended.failure.cause
    assert isinstance(error, NotEnoughSlotsError)
    assert (error.needed, error.available) == (3, 2)
    assert error.is_final


def test_a_job_that_never_fits_is_in_nobodys_way(clusters: Any) -> None:
    cluster = clusters(2)
    for name in ("big", "small"):
        cluster.resources.join(name)  # as when jobs are submitted one after the other
    big, small = cluster.job("big"), cluster.job("small")
    small.start(1)
    eventually(lambda: bool(small.events))
    big.start(3)
    eventually(lambda: bool(small.starts))
    assert cluster.resources.overview().waiting == ()


def test_executors_that_are_still_to_come_are_waited_for(clusters: Any) -> None:
    cluster = clusters(0, is_fixed=False)
    job = cluster.job("job")
    job.start(3)
    eventually(lambda: job.events == [SlotsQueued(0, 0, 0, 0)])
    cluster.total = 3
    eventually(lambda: bool(job.starts))


def test_a_batch_starts_with_one_slot(clusters: Any) -> None:
    cluster = clusters(4)
    holder, batch = cluster.job("holder"), cluster.job("batch", is_elastic=True, task_manager="tm")
    holder.start(3)
    batch.start(8)
    assert batch.starts == [("start", 0, 8)]
    assert cluster.resources.overview().held == {"holder": 3, "batch": 1}
    batch.inner.post(MessageReceived(0, RegisterSlot(0, 0, "here", ("here", 0), 1)))
    assert batch.events[-1].message.task_manager == "tm"


def test_an_adaptive_job_hears_what_others_leave(clusters: Any) -> None:
    cluster = clusters(4)
    holder, adaptive = cluster.job("holder"), cluster.job("adaptive")
    holder.start(3)
    adaptive.host.watch_slots(adaptive.events.append)
    eventually(lambda: adaptive.events == [SlotsAvailable(1)])
    adaptive.start(1)
    assert adaptive.starts
    holder.host.close()
    eventually(lambda: adaptive.events[-1] == SlotsAvailable(4))


def test_what_cannot_be_counted_fails_the_attempt(clusters: Any) -> None:
    """Spark may be stopped while jobs wait."""
    cluster = clusters(1, is_fixed=False)
    holder, waiting = cluster.job("holder"), cluster.job("waiting")
    holder.start(1)
    waiting.start(1)

    def gone() -> int:
        raise RuntimeError("the SparkContext is stopped")

    cluster.resources._count_slots = gone
    eventually(lambda: any(isinstance(event, AttemptEnded) for event in waiting.events))
    assert "stopped" in waiting.events[-1].failure.message
