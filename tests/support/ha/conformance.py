"""What every kind of high availability must do, with leaders in threads of one process."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from firesteel.cluster.ha.services import (
    ElectionClosedError,
    FencedError,
    HighAvailabilityError,
    HighAvailabilityServices,
    JobStore,
    Leadership,
)
from firesteel.common.job_status import JobStatus
from firesteel.testing import eventually
from tests.support.ha.leader import job, job_id, result


class Member:
    """One JobManager."""

    def __init__(self, services: HighAvailabilityServices, name: str):
        self.services = services
        self.name = name
        self.lost: list[str] = []

    def lead(self) -> Leadership:
        return self.services.await_leadership(self.name, self.lost.append)


class Cluster(ABC):
    """JobManagers that share a place."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="firesteel-test")

    @abstractmethod
    def make_services(self) -> HighAvailabilityServices: ...

    @abstractmethod
    def silence(self, member: Member) -> None:
        """Makes a leader look dead to the others, without its knowing."""

    def join(self) -> Member:
        member = Member(self.make_services(), f"host:{len(self.members)}")
        self.members.append(member)
        return member

    def leading(self) -> tuple[Member, Leadership]:
        member = self.join()
        return member, self.waiting(member).result(60)

    def waiting(self, member: Member) -> Future[Leadership]:
        return self._threads.submit(member.lead)

    def close(self) -> None:
        for member in self.members:
            member.services.close()
        self._threads.shutdown(wait=True)


def content(store: JobStore) -> dict[str, Any]:
    """Everything a store has."""
    jobs = store.job_ids()
    return {
        "jobs": [store.load(each) for each in jobs],
        "checkpoints": {each: list(store.checkpoints(each)) for each in jobs},
        "results": list(store.results()),
    }


class HighAvailabilityConformance(ABC):
    @pytest.fixture
    def cluster(self, request: pytest.FixtureRequest) -> Iterator[Cluster]:
        cluster = self.make_cluster(request)
        yield cluster
        cluster.close()

    @abstractmethod
    def make_cluster(self, request: pytest.FixtureRequest) -> Cluster: ...

    def test_the_first_one_leads(self, cluster: Cluster) -> None:
        member, leadership = cluster.leading()
        assert leadership.term >= 1
        assert leadership.is_valid()
        assert member.services.leader_address() == member.name
        assert content(leadership.store) == {"jobs": [], "checkpoints": {}, "results": []}

    def test_nobody_leads_before_there_is_anybody(self, cluster: Cluster) -> None:
        assert cluster.join().services.leader_address() is None

    def test_the_next_one_leads_when_the_first_resigns(self, cluster: Cluster) -> None:
        first, leadership = cluster.leading()
        second = cluster.join()
        waiting = cluster.waiting(second)
        assert second.services.leader_address() == first.name
        leadership.resign()
        after = waiting.result(60)
        assert after.term > leadership.term
        assert first.services.leader_address() == second.name
        assert not leadership.is_valid()
        assert first.lost == []
        with pytest.raises(FencedError):
            leadership.store.put(job(1))

    def test_what_was_kept_is_there_for_the_next_one(self, cluster: Cluster) -> None:
        first, leadership = cluster.leading()
        store = leadership.store
        for number in (3, 1, 2):
            store.put(job(number))
        store.add_checkpoint(job_id(1), 1, "s3://bucket/1")
        store.add_checkpoint(job_id(1), 2, "s3://bucket/2")
        store.end(result(2, JobStatus.FAILED))
        expected = content(store)
        assert [each.job_id for each in expected["jobs"]] == [job_id(3), job_id(1)]
        assert expected["checkpoints"][job_id(1)] == [(1, "s3://bucket/1"), (2, "s3://bucket/2")]
        assert expected["results"] == [result(2, JobStatus.FAILED)]
        assert expected["jobs"][1] == job(1)
        cluster.silence(first)
        _, after = cluster.leading()
        assert content(after.store) == expected
        after.store.put(job(0))
        assert list(after.store.job_ids()) == [job_id(3), job_id(1), job_id(0)]

    @pytest.mark.parametrize("write", ["put", "add_checkpoint", "end"])
    def test_a_leader_that_was_replaced_writes_nothing(self, cluster: Cluster, write: str) -> None:
        first, old = cluster.leading()
        old.store.put(job(1))
        old.store.add_checkpoint(job_id(1), 1, "/checkpoints/1")
        cluster.silence(first)
        _, new = cluster.leading()
        expected = content(new.store)
        writes = {
            "put": lambda: old.store.put(job(2)),
            "add_checkpoint": lambda: old.store.add_checkpoint(job_id(1), 2, "/checkpoints/2"),
            "end": lambda: old.store.end(result(1)),
        }
        with pytest.raises(FencedError):
            writes[write]()
        assert len(first.lost) == 1, "it is told before the write raises"
        assert not old.is_valid()
        assert content(new.store) == expected
        new.store.add_checkpoint(job_id(1), 3, "/checkpoints/3")
        new.resign()
        _, third = cluster.leading()
        assert third.store.checkpoints(job_id(1)) == [(1, "/checkpoints/1"), (3, "/checkpoints/3")]

    def test_a_leader_that_was_replaced_is_told_without_asking(self, cluster: Cluster) -> None:
        first, _ = cluster.leading()
        cluster.silence(first)
        cluster.leading()
        self.wake(cluster, first)
        eventually(lambda: len(first.lost) == 1)

    def wake(self, cluster: Cluster, member: Member) -> None:
        """A leader that was silent goes on."""

    def test_the_newest_checkpoints_are_known_in_the_order_of_their_numbers(self, cluster: Cluster) -> None:
        _, leadership = cluster.leading()
        store = leadership.store
        store.put(job(1))
        for number in (*range(1, 15), 11):
            store.add_checkpoint(job_id(1), number, f"/chk-{number}")
        assert store.checkpoints(job_id(1)) == [(number, f"/chk-{number}") for number in range(5, 15)]

    def test_a_checkpoint_that_was_given_up_is_not_known_any_more(self, cluster: Cluster) -> None:
        first, leadership = cluster.leading()
        store = leadership.store
        store.put(job(1))
        store.add_checkpoint(job_id(1), 1, "/chk-1")
        store.add_checkpoint(job_id(1), 2, "/chk-2")
        store.remove_checkpoint(job_id(1), 2)
        store.remove_checkpoint(job_id(1), 5)
        store.remove_checkpoint(job_id(7), 1)
        assert list(store.checkpoints(job_id(1))) == [(1, "/chk-1")]
        cluster.silence(first)
        _, after = cluster.leading()
        assert list(after.store.checkpoints(job_id(1))) == [(1, "/chk-1")]
        with pytest.raises(FencedError):
            store.remove_checkpoint(job_id(1), 1)

    def test_a_job_that_is_put_again_keeps_its_place(self, cluster: Cluster) -> None:
        _, leadership = cluster.leading()
        store = leadership.store
        store.put(job(1))
        store.put(job(2))
        store.add_checkpoint(job_id(1), 1, "/chk-1")
        store.put(job(1))
        assert list(store.job_ids()) == [job_id(1), job_id(2)]
        assert store.load(job_id(1)) == job(1)
        assert list(store.checkpoints(job_id(1))) == [(1, "/chk-1")]

    def test_a_job_that_has_ended_is_not_kept_again(self, cluster: Cluster) -> None:
        _, leadership = cluster.leading()
        store = leadership.store
        store.put(job(1))
        store.end(result(1))
        for again in (lambda: store.put(job(1)), lambda: store.end(result(1)), lambda: store.load(job_id(1))):
            with pytest.raises(HighAvailabilityError):
                again()
        with pytest.raises(HighAvailabilityError):
            store.add_checkpoint(job_id(1), 1, "/chk-1")
        assert list(store.results()) == [result(1)]

    def test_a_job_whose_end_is_long_ago_can_be_submitted_anew(self, cluster: Cluster) -> None:
        first, leadership = cluster.leading()
        store = leadership.store
        for number in (1, 2):
            store.put(job(number))
            store.add_checkpoint(job_id(number), 1, "/chk-1")
        store.end(replace(result(1), ended_at=0))
        store.put(job(1))
        expected = content(store)
        assert [each.job_id for each in expected["jobs"]] == [job_id(2), job_id(1)]
        assert expected["checkpoints"][job_id(1)] == []
        assert expected["results"] == []
        cluster.silence(first)
        _, after = cluster.leading()
        assert content(after.store) == expected
        after.store.end(result(1))
        assert list(after.store.results()) == [result(1)]

    def test_the_oldest_results_are_forgotten(self, cluster: Cluster) -> None:
        first, leadership = cluster.leading()
        for number in range(7):
            leadership.store.put(job(number))
            leadership.store.end(result(number))
        kept = [result(number) for number in range(2, 7)]
        assert list(leadership.store.results()) == kept
        cluster.silence(first)
        _, after = cluster.leading()
        assert list(after.store.results()) == kept
        assert not after.store.job_ids()

    def test_whoever_waits_can_be_closed(self, cluster: Cluster) -> None:
        cluster.leading()
        second = cluster.join()
        waiting = cluster.waiting(second)
        second.services.close()
        with pytest.raises(ElectionClosedError):
            waiting.result(60)

    def test_of_many_candidates_one_leads_at_a_time(self, cluster: Cluster) -> None:
        leaders: list[int] = []
        terms: list[int] = []
        lock = threading.Lock()

        def take_a_turn(member: Member) -> None:
            leadership = member.lead()
            with lock:
                leaders.append(1)
                assert len(leaders) == 1, "two lead at once"
                terms.append(leadership.term)
            leadership.store.put(job(len(terms)))
            with lock:
                leaders.pop()
            leadership.resign()

        members = [cluster.join() for _ in range(6)]
        turns = [cluster._threads.submit(take_a_turn, member) for member in members]
        for turn in turns:
            turn.result(60)
        assert terms == sorted(set(terms))
        _, last = cluster.leading()
        assert list(last.store.job_ids()) == [job_id(number) for number in range(1, 7)]

    def test_a_history_of_leaders_loses_nothing(self, cluster: Cluster) -> None:
        """What leaders were told is kept, and nothing else, whoever does what in which order."""
        dice = random.Random(20_260)
        jobs: dict[str, list[tuple[int, str]]] = {}
        ended: list[str] = []
        member, leadership = cluster.leading()
        for step in range(40):
            store = leadership.store
            choice = dice.random()
            if choice < 0.1:
                cluster.silence(member) if dice.random() < 0.5 else leadership.resign()
                old = leadership
                member, leadership = cluster.leading()
                with pytest.raises(FencedError):
                    old.store.put(job(1000 + step))
            elif choice < 0.4:
                store.put(job(step))
                jobs[job_id(step)] = []
            elif choice < 0.8 and jobs:
                name = dice.choice(list(jobs))
                store.add_checkpoint(name, step, f"/{step}")
                jobs[name] = [*jobs[name], (step, f"/{step}")][-10:]
            elif jobs:
                name = dice.choice(list(jobs))
                del jobs[name]
                store.end(result(int(name, 16)))
                ended = [*ended, name][-5:]
            found = content(leadership.store)
            assert [each.job_id for each in found["jobs"]] == list(jobs)
            assert found["checkpoints"] == jobs
            assert [each.job_id for each in found["results"]] == ended
