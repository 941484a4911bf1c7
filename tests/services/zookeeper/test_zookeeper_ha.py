"""High availability with a real ZooKeeper: conformance, sessions that end, a server that is gone for a while."""

from __future__ import annotations

import os
import signal
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import KazooTimeoutError

from firesteel.cluster.ha.job_store import Retention
from firesteel.cluster.ha.services import FencedError, HighAvailabilityError
from firesteel.cluster.ha.zookeeper import ZooKeeperHighAvailability
from firesteel.process import fault_points
from firesteel.testing import eventually
from firesteel.testing.services.zookeeper_server import ZooKeeperServer
from tests.support.ha.conformance import Cluster, HighAvailabilityConformance, Member, content
from tests.support.ha.leader import LeaderProcess, job, job_id, result

pytestmark = pytest.mark.usefixtures("zookeeper")

PATIENT_S = 20.0
SHORT_S = 2.0


class ZooKeeperCluster(Cluster):
    def __init__(self, server: ZooKeeperServer, directory: Path):
        super().__init__()
        self.server = server
        self.root = f"/firesteel/{uuid.uuid4().hex}"
        self.directory = directory
        self.timeout = PATIENT_S

    def make_services(self) -> ZooKeeperHighAvailability:
        return ZooKeeperHighAvailability(
            self.server.address, self.root, str(self.directory), self.timeout, retention=Retention(5)
        )

    def silence(self, member: Member) -> None:
        """Somebody else ends its session."""
        session = member.services._client.client_id  # type: ignore[attr-defined]

        def is_ended() -> bool:
            other = KazooClient(self.server.address, client_id=session, timeout=PATIENT_S)
            try:
                other.start(60)
            except KazooTimeoutError:  # the session was taken back in this very moment
                return False
            try:
                # who comes with a session that has ended gets another one
                return other.client_id[0] != session[0]
            finally:
                other.stop()
                other.close()

        # The member comes back to its session while it lasts, and may be quicker than its end.
        eventually(is_ended, timeout=60)


class TestZooKeeperHighAvailability(HighAvailabilityConformance):
    def make_cluster(self, request: pytest.FixtureRequest) -> ZooKeeperCluster:
        return ZooKeeperCluster(request.getfixturevalue("zookeeper"), request.getfixturevalue("tmp_path"))


@pytest.fixture
def cluster(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[ZooKeeperCluster]:
    cluster = ZooKeeperCluster(zookeeper, tmp_path)
    yield cluster
    cluster.close()


@contextmanager
def _leader_of_a_job(cluster: ZooKeeperCluster) -> Iterator[LeaderProcess]:
    """A leader that has put job 1 with a checkpoint, in a process of its own, with a session that ends soon."""

    def led() -> LeaderProcess | None:
        arguments = (cluster.server.address, cluster.root, str(cluster.directory), str(SHORT_S))
        leader = LeaderProcess("zookeeper", *arguments)
        try:
            leader.term()
            # so soon that it may have ended, where the machine stalls
            if leader.ask("put", 1) is None and leader.ask("add_checkpoint", job_id(1), 1, "/chk-1") is None:
                return leader
        except BaseException:
            leader.close()
            raise
        leader.close()
        return None

    leader = eventually(lambda: led() or False, timeout=120)
    try:
        yield leader
    finally:
        leader.close()


def test_a_leader_that_was_killed_is_replaced_when_its_session_has_ended(cluster: ZooKeeperCluster) -> None:
    with _leader_of_a_job(cluster):
        waiting = cluster.waiting(cluster.join())
    assert list(waiting.result(60).store.job_ids()) == [job_id(1)]


def test_a_leader_that_was_stopped_and_goes_on_is_fenced(cluster: ZooKeeperCluster) -> None:
    with _leader_of_a_job(cluster) as leader:
        os.kill(leader.pid, signal.SIGSTOP)
        _, after = cluster.leading()
        os.kill(leader.pid, signal.SIGCONT)
        assert leader.ask("is_valid") is False
        assert leader.ask("add_checkpoint", job_id(1), 2, "/chk-2") == "FencedError"
        assert leader.ask("lost") is True
    assert list(after.store.checkpoints(job_id(1))) == [(1, "/chk-1")]


def test_a_leader_goes_on_when_the_connection_is_there_again_in_time(cluster: ZooKeeperCluster) -> None:
    member, leadership = cluster.leading()
    leadership.store.put(job(1))
    client = member.services._client  # type: ignore[attr-defined]
    cluster.server.pause()
    try:
        client._connection._socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: not leadership.is_valid())
        with ThreadPoolExecutor(1) as thread:
            # waits for the connection
            added = thread.submit(leadership.store.add_checkpoint, job_id(1), 1, "/chk-1")
            cluster.server.resume()
            added.result(60)
    finally:
        cluster.server.resume()
    eventually(leadership.is_valid)
    assert member.lost == []
    assert list(leadership.store.checkpoints(job_id(1))) == [(1, "/chk-1")]


def test_a_write_whose_answer_was_lost_is_not_done_twice(
    cluster: ZooKeeperCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks between the transaction and its answer: whether it was applied is looked up."""
    member, leadership = cluster.leading()
    store = leadership.store
    store.put(job(1))
    client = member.services._client  # type: ignore[attr-defined]
    transaction = client.transaction
    losses = 0

    def losing() -> object:
        made = transaction()
        commit = made.commit_async

        def commit_and_lose() -> object:
            nonlocal losses
            losses += 1
            answered = commit()
            answered.get(timeout=60)
            lost = client.handler.async_result()
            lost.set_exception(ConnectionLoss())
            return lost

        made.commit_async = commit_and_lose
        return made

    monkeypatch.setattr(client, "transaction", losing)
    store.add_checkpoint(job_id(1), 1, "/chk-1")
    store.put(job(2))
    store.end(result(1))
    assert losses == 3
    monkeypatch.undo()
    expected = content(store)
    leadership.resign()
    _, after = cluster.leading()
    assert content(after.store) == expected
    assert expected["jobs"] == [job(2)]
    assert expected["results"] == [result(1)]


def test_a_leader_that_cannot_reach_the_server_for_too_long_is_lost(cluster: ZooKeeperCluster) -> None:
    _, before = cluster.leading()
    before.store.put(job(1))
    before.resign()
    cluster.timeout = SHORT_S / 2  # nobody else waits
    member, leadership = cluster.leading()
    cluster.server.pause()
    try:
        eventually(lambda: len(member.lost) == 1, timeout=60)
        assert not leadership.is_valid()
        with pytest.raises(FencedError):
            leadership.store.add_checkpoint(job_id(1), 1, "/chk-1")
    finally:
        cluster.server.resume()
    cluster.timeout = PATIENT_S
    _, after = cluster.leading()
    assert list(after.store.job_ids()) == [job_id(1)]


@pytest.mark.parametrize("point", ["ha.blobs.written", "ha.record.written"])
def test_a_write_that_stops_and_goes_on_after_another_one_leads_is_refused(
    cluster: ZooKeeperCluster, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    first, old = cluster.leading()
    reached, successors = [], []

    def be_replaced(at: str) -> None:
        if at == point and not reached:
            reached.append(at)
            cluster.silence(first)
            successors.append(cluster.leading()[1])

    monkeypatch.setattr(fault_points, "reach", be_replaced)
    with pytest.raises(FencedError):
        old.store.put(job(1))
    assert reached
    assert not successors[0].store.job_ids()


def test_a_server_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firesteel.cluster.ha.zookeeper._CONNECT_TIMEOUT_S", 0.2)
    with pytest.raises(HighAvailabilityError, match=r"127\.0\.0\.1:1") as raised:
        ZooKeeperHighAvailability("127.0.0.1:1", "/x", str(tmp_path), SHORT_S)
    assert raised.value.hint
