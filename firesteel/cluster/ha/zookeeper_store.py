"""Record store in ZooKeeper, with fencing: only the current leader's writes are accepted.

Each write is a transaction that also checks two nodes: the leader's own, which ZooKeeper deletes when the leader's
session ends, and ``epoch``, whose version the next leader raises before it reads anything. ZooKeeper applies all of a
transaction or nothing, so a leader that was replaced writes nothing, at any time.

If the connection breaks, a write may or may not have happened. Within the session that can be found out: the record is
looked at once the connection is there again, and written again if it is not as it should be. If the session ends
before, leadership is lost, and the writer must not conclude that the record is not there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from firesteel.cluster.ha.lease import Lease
from firesteel.cluster.ha.records import KINDS
from firesteel.cluster.ha.services import FencedError, HighAvailabilityError
from firesteel.process import fault_points

__all__ = ["UNREACHABLE", "ZooKeeperRecords"]

UNREACHABLE = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, KazooTimeoutError)
"""What may have happened or not: ZooKeeper has not answered."""
_RETRY_INTERVAL_S = 0.05


class ZooKeeperRecords:
    """The records of one leader, in ``<root>/<kind>/<name>``."""

    def __init__(self, client: KazooClient, root: str, guards: Mapping[str, int], lease: Lease, timeout_s: float):
        self._client = client
        self._root = root
        self._guards = guards
        """Nodes whose versions every write checks."""
        self._lease = lease
        self._timeout = timeout_s
        self._known: set[str] = set()

    def load(self) -> Mapping[str, bytes]:
        names = []
        for kind in KINDS:
            self._client.ensure_path_async(f"{self._root}/{kind}").get(timeout=self._timeout)
            children = self._client.get_children_async(f"{self._root}/{kind}").get(timeout=self._timeout)
            names += [f"{kind}/{child}" for child in children]
        # all questions at once, then all answers
        asked = [(name, self._client.get_async(self._path(name))) for name in names]
        records = {name: answer.get(timeout=self._timeout)[0] for name, answer in asked}
        self._known = set(records)
        return records

    def put(self, name: str, data: bytes, delete: Iterable[str] = ()) -> None:
        """Writes or replaces one record; those that it makes superfluous go in the same transaction."""
        superfluous = [each for each in delete if each in self._known]
        while not self._commit(name, data, superfluous):
            if self._is_there(name, data):
                break
        self._known.add(name)
        self._known.difference_update(superfluous)
        fault_points.reach("ha.record.stored")

    def _commit(self, name: str, data: bytes, superfluous: Iterable[str]) -> bool:
        """Whether the transaction was applied; False if that is not known."""
        transaction = self._client.transaction()
        for node, version in self._guards.items():
            transaction.check(node, version)
        if name in self._known:
            transaction.set_data(self._path(name), data)
        else:
            transaction.create(self._path(name), data)
        for each in superfluous:
            transaction.delete(self._path(each))
        fault_points.reach("ha.record.written")
        try:
            results = transaction.commit_async().get(timeout=self._timeout)
        except UNREACHABLE:
            return False
        self._check(name, results)
        return True

    def _check(self, name: str, results: list[Any]) -> None:
        """Raises what kept a transaction from being applied, if anything did."""
        for number, result in enumerate(results):
            if not isinstance(result, KazooException) or isinstance(result, (RolledBackError, RuntimeInconsistency)):
                continue
            if number < len(self._guards) and isinstance(result, (NoNodeError, BadVersionError)):
                reason = "another JobManager is the leader, or the session of this leader has ended"
                self._lease.lose(reason)
                raise FencedError(f"{self._path(name)} cannot be written: {reason}.")
            raise HighAvailabilityError(f"{self._path(name)} cannot be written: {result!r}.")

    def _is_there(self, name: str, data: bytes) -> bool:
        """Whether a record is as it should be; FencedError if that cannot be found out within the session."""
        path = self._path(name)
        while not self._lease.is_over:
            try:
                self._client.sync_async(self._root).get(timeout=self._timeout)
                return bool(self._client.get_async(path).get(timeout=self._timeout)[0] == data)
            except NoNodeError:
                return False
            except UNREACHABLE:
                time.sleep(_RETRY_INTERVAL_S)
        raise FencedError(f"It is unknown whether {path} was written: the connection to ZooKeeper was lost.")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
