"""Leader election in a shared directory: the leader renews a lease."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from firesteel.cluster.ha.blobs import JobBlobs
from firesteel.cluster.ha.filesystem_store import Leader, Observation, Terms
from firesteel.cluster.ha.job_store import PersistentJobStore, Retention
from firesteel.cluster.ha.lease import Lease, clock_with_sleep
from firesteel.cluster.ha.process_identity import this_process
from firesteel.cluster.ha.services import ElectionClosedError, FencedError, HighAvailabilityError, JobStore
from firesteel.process.concurrency import SYSTEM, Concurrency

__all__ = ["FileSystemHighAvailability", "FileSystemLeadership", "LeaseObserver"]

_log = logging.getLogger(__name__)
_MAX_POLL_INTERVAL_S = 0.2
"""Seconds: how soon a leader that was killed on this machine is missed."""


class LeaseObserver:
    """Decides from what a candidate sees, at times of its own clock, whether the leader is dead."""

    def __init__(self) -> None:
        self._seen: tuple[int, bytes] | None = None
        self._at = 0.0
        self._silent = 0.0

    def is_free(self, now: float, seen: Observation) -> bool:
        """Whether there is no leader; ``now`` is a time before ``seen`` was seen."""
        if seen.term == 0 or not seen.is_live:
            return True
        if seen.leader is not None and seen.leader.process.is_gone():
            return True
        duration = seen.leader.lease_duration if seen.leader is not None else 0.0
        if (seen.term, seen.lease) != self._seen:
            self._seen, self._silent = (seen.term, seen.lease), 0.0
        else:
            # a candidate that was stopped itself, perhaps with the whole machine, has not watched all that time
            self._silent += min(now - self._at, duration / 4)
        self._at = now
        return self._silent >= duration


class FileSystemLeadership:
    """This JobManager leads, until another one takes over its term."""

    def __init__(self, terms: Terms, term: int, lease: Lease, store: JobStore):
        self.term = term
        self.store = store
        self._terms = terms
        self._lease = lease

    def is_valid(self) -> bool:
        """Whether the lease has not run out."""
        return self._lease.is_valid()

    def resign(self) -> None:
        """Takes its own term away: this one can write no more, and another one need not wait."""
        self._lease.end()
        self._terms.seal(self.term)


class FileSystemHighAvailability:
    """Leader election and job store in ``directory``: one of a POSIX file system that all JobManagers share."""

    def __init__(
        self,
        directory: str,
        lease_duration_s: float,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        leader_clock: Callable[[], float] = clock_with_sleep,
        concurrency: Concurrency = SYSTEM,
    ):
        self._root = Path(directory)
        self._duration = lease_duration_s
        self._retention = retention or Retention()
        self._clock = clock
        self._leader_clock = leader_clock
        self._terms = Terms(self._root)
        self._concurrency = concurrency
        self._closing = concurrency.event()
        self._leadership: FileSystemLeadership | None = None

    def await_leadership(self, address: str, on_lost: Callable[[str], None]) -> FileSystemLeadership:
        """Blocks until this JobManager leads. A directory that cannot be read is an error only at the first look."""
        observer = LeaseObserver()
        poll = min(_MAX_POLL_INTERVAL_S, self._duration / 10)
        seen: Observation | None = None
        sees = True
        while not self._closing.is_set():
            now = self._clock()
            try:
                seen = self._terms.observe()
            except HighAvailabilityError as error:
                if seen is None:
                    raise
                if sees:
                    _log.warning("This JobManager cannot determine the leader: %s", error.message)
                sees = False
                self._closing.wait(poll)
                continue
            sees = True
            if observer.is_free(now, seen):
                leadership = self._lead(seen.term + 1, address, on_lost)
                if leadership is not None:
                    self._leadership = leadership
                    return leadership
            self._closing.wait(poll)
        raise ElectionClosedError("This JobManager was closed before it became the leader.")

    def leader_address(self) -> str | None:
        """Where the present leader is reached; None if there is none, or it is not ready."""
        seen = self._terms.observe()
        if seen.leader is None or not seen.is_complete or seen.leader.process.is_gone():
            return None
        return seen.leader.address

    def close(self) -> None:
        self._closing.set()
        if self._leadership is not None:
            self._leadership.resign()

    def _lead(self, term: int, address: str, on_lost: Callable[[str], None]) -> FileSystemLeadership | None:
        since = datetime.now(timezone.utc).isoformat(timespec="seconds")
        if not self._terms.claim(term, Leader(address, self._duration, this_process(), since)):
            return None
        numbers = itertools.count(1)
        lease = Lease(
            self._duration,
            lambda: self._terms.renew(term, str(next(numbers)).encode()),
            clock=self._leader_clock,
            concurrency=self._concurrency,
        )
        lease.start()
        try:
            records = self._terms.take_over(term, lease.lose)
            blobs = JobBlobs(str(self._root / "jobs"), term)
            store = PersistentJobStore(records, blobs, self._retention)
            lease.announce_to(on_lost)
        except FencedError as error:
            lease.end()
            _log.info("Another JobManager became the leader: %s", error.message)
            return None
        except BaseException:
            lease.end()
            # others may manage
            self._terms.seal(term)
            raise
        return FileSystemLeadership(self._terms, term, lease, store)
