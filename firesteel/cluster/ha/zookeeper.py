"""Leader election with ZooKeeper."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from firesteel.cluster.ha.blobs import JobBlobs
from firesteel.cluster.ha.job_store import PersistentJobStore, Retention
from firesteel.cluster.ha.lease import Lease, clock_with_sleep
from firesteel.cluster.ha.records import encode
from firesteel.cluster.ha.services import ElectionClosedError, FencedError, HighAvailabilityError, JobStore
from firesteel.cluster.ha.zookeeper_store import UNREACHABLE, ZooKeeperRecords
from firesteel.filesystem.filesystem import join

__all__ = ["ZooKeeperHighAvailability", "ZooKeeperLeadership"]

_log = logging.getLogger(__name__)
_CONNECT_TIMEOUT_S = 15.0
_RETRY_INTERVAL_S = 0.1
_LATCH = "-latch-"
_SEQUENCE_DIGITS = 10
"""Digits that ZooKeeper appends."""


class _Term(msgspec.Struct, frozen=True):
    """The content of the node whose version is the term: who leads in it."""

    address: str = ""
    latch: str = ""


class ZooKeeperLeadership:
    """This JobManager leads, as long as its session lasts and the term is not raised."""

    def __init__(self, term: int, lease: Lease, store: JobStore, leave: Callable[[], None]):
        self.term = term
        self.store = store
        self._lease = lease
        self._leave = leave

    def is_valid(self) -> bool:
        """Whether ZooKeeper has confirmed within the session timeout that the session lasts, and is connected."""
        return self._lease.is_valid()

    def resign(self) -> None:
        """Deletes the node by which it leads: this one can write no more, and another one need not wait."""
        self._lease.end()
        self._leave()


class ZooKeeperHighAvailability:
    """Leader election and records beneath ``root`` in ZooKeeper; jobs themselves are files beneath ``directory``.

    1. A candidate makes a node in ``<root>/election`` that ZooKeeper numbers, and deletes with its session.
    2. It waits until no node with a lower number is left.
    3. It raises the version of ``<root>/epoch``, which is the term it leads in, and stores its identity there. Leaders
       before it can write no more.
    4. It reads the records.

    A leader whose connection breaks is not valid until it is there again. If that takes longer than the session
    timeout, or the session has expired, leadership is lost.
    """

    def __init__(
        self,
        quorum: str,
        root: str,
        directory: str,
        session_timeout_s: float,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = clock_with_sleep,
    ):
        self._root = root
        self._directory = directory
        self._timeout = session_timeout_s
        self._retention = retention or Retention()
        self._clock = clock
        self._prefix = f"{uuid.uuid4().hex}{_LATCH}"
        self._closing = threading.Event()
        self._news = threading.Event()
        self._leadership: ZooKeeperLeadership | None = None
        self._lease: Lease | None = None
        self._client = _connect(quorum, session_timeout_s)
        self._client.add_listener(self._on_state)

    def await_leadership(self, address: str, on_lost: Callable[[str], None]) -> ZooKeeperLeadership:
        while not self._closing.is_set():
            try:
                latch = self._await_turn()
                if latch is not None:
                    self._leadership = self._lead(latch, address, on_lost)
                    return self._leadership
            except FencedError as error:
                _log.info("Another JobManager became the leader: %s", error.message)
            except (*UNREACHABLE, BadVersionError, NoNodeError, NodeExistsError) as error:
                _log.warning("ZooKeeper does not respond, or the session has ended: %r", error)
                self._closing.wait(_RETRY_INTERVAL_S)
        raise ElectionClosedError("This JobManager was closed before it became the leader.")

    def leader_address(self) -> str | None:
        """Where the present leader is reached; None if there is none, or ZooKeeper cannot be asked."""
        try:
            term, _ = self._read_term()
            if not term.latch or self._ask("exists", f"{self._root}/election/{term.latch}") is None:
                return None
        except (*UNREACHABLE, KazooException):
            return None
        return term.address

    def close(self) -> None:
        """Gives up waiting and leading, and ends the session."""
        self._closing.set()
        self._news.set()
        if self._leadership is not None:
            self._leadership.resign()
        self._client.remove_listener(self._on_state)
        self._client.stop()
        self._client.close()

    # -- steps 1 and 2 ------------------------------------------------------------------------------

    def _await_turn(self) -> str | None:
        """The own node once it is the first; None if that is to be looked at again."""
        election = f"{self._root}/election"
        self._news.clear()
        self._ask("ensure_path", election)
        waiting: list[str] = sorted(self._ask("get_children", election), key=lambda name: name[-_SEQUENCE_DIGITS:])
        # by its name: whether an attempt to make one had succeeded is not always known
        own = next((name for name in waiting if name.startswith(self._prefix)), None)
        if own is None:
            self._ask("create", f"{election}/{self._prefix}", b"", ephemeral=True, sequence=True)
            return None
        place = waiting.index(own)
        if place == 0:
            return own
        if self._ask("exists", f"{election}/{waiting[place - 1]}", watch=self._wake) is not None:
            # not for ever: a watch is lost with the connection
            self._news.wait(self._timeout)
        return None

    def _wake(self, _event: object) -> None:
        self._news.set()

    # -- steps 3 and 4 ------------------------------------------------------------------------------

    def _lead(self, latch: str, address: str, on_lost: Callable[[str], None]) -> ZooKeeperLeadership:
        own = f"{self._root}/election/{latch}"
        lease = Lease(self._timeout, lambda: self._confirm(own), clock=self._clock)
        self._lease = lease
        lease.start()
        try:
            term = self._raise_term(own, _Term(address, latch))
            guards = {own: 0, f"{self._root}/epoch": term}
            records = ZooKeeperRecords(self._client, self._root, guards, lease, self._timeout)
            blobs = JobBlobs(join(self._directory, "jobs"), term)
            store = PersistentJobStore(records, blobs, self._retention)
            lease.announce_to(lambda reason: self._lose(own, reason, on_lost))
        except BaseException:
            lease.end()
            self._leave(own)
            raise
        return ZooKeeperLeadership(term, lease, store, lambda: self._leave(own))

    def _raise_term(self, own: str, content: _Term) -> int:
        _, version = self._read_term()
        transaction = self._client.transaction()
        transaction.check(own, 0)
        transaction.set_data(f"{self._root}/epoch", encode(content), version)
        _, stat = results = transaction.commit_async().get(timeout=self._timeout)
        if any(isinstance(result, Exception) for result in results):
            raise FencedError(f"The term could not be raised: {results}.")
        return int(stat.version)

    def _read_term(self) -> tuple[_Term, int]:
        path = f"{self._root}/epoch"
        with suppress(NodeExistsError):
            if self._ask("exists", path) is None:
                self._ask("create", path, encode(_Term()), makepath=True)
        data, stat = self._ask("get", path)
        return msgspec.json.decode(data, type=_Term), stat.version

    def _confirm(self, own: str) -> None:
        if self._ask("exists", own) is None:
            raise FencedError("The session with ZooKeeper in which this JobManager led has ended.")

    def _on_state(self, state: str) -> None:
        _log.info("ZooKeeper: %s", state)
        self._news.set()
        lease = self._lease
        if lease is None:
            return
        if state == KazooState.SUSPENDED:
            lease.suspend()
        elif state == KazooState.CONNECTED:
            lease.hurry()
        elif state == KazooState.LOST:
            # not here: this thread belongs to the client, and the callback may use the client
            threading.Thread(
                target=lease.lose, args=("the session with ZooKeeper has expired",), name="firesteel-lease", daemon=True
            ).start()

    def _lose(self, own: str, reason: str, on_lost: Callable[[str], None]) -> None:
        # sent whenever there is a connection again: as long as the session lasts, no other JobManager would lead
        self._client.delete_async(own)
        on_lost(reason)

    def _leave(self, own: str) -> None:
        try:
            self._ask("delete", own)
        except (*UNREACHABLE, KazooException) as error:
            _log.info("%s is deleted with the session: %r", own, error)

    def _ask(self, question: str, *arguments: Any, **options: Any) -> Any:
        """An answer of ZooKeeper; one of UNREACHABLE if there is none within the session timeout."""
        return getattr(self._client, f"{question}_async")(*arguments, **options).get(timeout=self._timeout)


def _connect(quorum: str, session_timeout_s: float) -> KazooClient:
    retry = {"max_tries": -1, "delay": _RETRY_INTERVAL_S, "backoff": 2, "max_delay": 1.0}
    try:
        client = KazooClient(hosts=quorum, timeout=session_timeout_s, connection_retry=retry)
    except ValueError as error:
        raise HighAvailabilityError(f"high-availability.zookeeper.quorum is {quorum!r}: {error}.") from error
    started = time.monotonic()
    try:
        client.start(_CONNECT_TIMEOUT_S)
    except KazooTimeoutError:
        client.stop()
        client.close()
        waited = time.monotonic() - started
        raise HighAvailabilityError(
            f"ZooKeeper at {quorum} did not respond within {waited:.0f} s.",
            hint="Check that ZooKeeper is running, and that high-availability.zookeeper.quorum is its address.",
        ) from None
    return client
