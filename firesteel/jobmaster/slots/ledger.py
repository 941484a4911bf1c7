"""Slot ledger: allocates the slots of a cluster to jobs, first come, first served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SlotClaim", "SlotLedger", "SlotPlace"]


@dataclass(slots=True)
class SlotClaim:
    """The slots that one job holds and requests."""

    job_id: str
    held: int = 0
    needed: int | None = None
    """How many slots it needs to continue; None while that is unknown and the job only keeps its place."""
    wanted: int = 0
    """How many it would take."""
    is_waiting: bool = True


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """Where a job is in the queue: how many get slots before it, and how many slots there would be for it."""

    ahead: int
    free: int
    total: int


class SlotLedger:
    """Accounts for the slots of a Spark over all jobs. Has no thread and no lock.

    A job keeps its place, and its slots, from its first request until `release`: over restarts too, so that no waiting
    job can take them meanwhile. The queue is strict: no job passes the first waiting one. A job that runs with
    fewer slots than requested gets the others as they become free, before those that came later.

    >>> ledger = SlotLedger(total=4)
    >>> ledger.request("a", 3), ledger.request("b", 2), ledger.request("c", 1)
    (True, False, False)
    >>> ledger.place("c")
    SlotPlace(ahead=1, free=1, total=4)
    >>> ledger.release("a")
    >>> ledger.holds("b"), ledger.holds("c"), ledger.free
    (2, 1, 1)
    """

    def __init__(self, total: int):
        self._total = total
        self._claims: dict[str, SlotClaim] = {}

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, total: int) -> None:
        self._total = total
        self._settle()

    @property
    def free(self) -> int:
        """How many slots no job holds."""
        return max(0, self._total - sum(claim.held for claim in self._claims.values()))

    def claims(self) -> list[SlotClaim]:
        """The slots that jobs hold and request, in their order."""
        return list(self._claims.values())

    def holds(self, job_id: str) -> int:
        """How many slots a job holds, for it to run in; 0 while it waits."""
        claim = self._claims.get(job_id)
        return 0 if claim is None or claim.is_waiting else claim.held

    def join(self, job_id: str) -> None:
        """Queues a job before its number of slots is known: none that comes later gets any meanwhile."""
        self._claims.setdefault(job_id, SlotClaim(job_id))

    def request(self, job_id: str, needed: int, wanted: int | None = None) -> bool:
        """Requests ``needed`` slots for a job, or up to ``wanted`` ones; returns whether it has them."""
        claim = self._claims.setdefault(job_id, SlotClaim(job_id))
        claim.needed, claim.wanted, claim.is_waiting = needed, max(needed, wanted or 0), True
        self._settle()
        return not claim.is_waiting

    def withdraw(self, job_id: str) -> None:
        """A job no longer waits, but keeps what it holds and, if that is something, its place."""
        claim = self._claims.get(job_id)
        if claim is not None and claim.is_waiting:
            if claim.held:
                claim.is_waiting = False
            else:
                del self._claims[job_id]
            self._settle()

    def release(self, job_id: str) -> None:
        if self._claims.pop(job_id, None) is not None:
            self._settle()

    def left_for(self, job_id: str) -> int:
        """How many slots a job may have now, those it holds included."""
        claim = self._claims.get(job_id)
        if claim is None:
            return 0 if any(True for _ in self._waiting()) else self.free
        return 0 if self._is_behind(claim) else self._available_to(claim)

    def place(self, job_id: str) -> SlotPlace:
        """Where a job is in the queue."""
        claim = self._claims[job_id]
        ahead = 0
        for other in self._waiting():
            if other is claim:
                break
            ahead += 1
        return SlotPlace(ahead, self._available_to(claim), self._total)

    def _waiting(self) -> Iterator[SlotClaim]:
        return (claim for claim in self._claims.values() if claim.is_waiting)

    def _is_behind(self, claim: SlotClaim) -> bool:
        """Whether one that came before still waits."""
        return next(self._waiting(), claim) is not claim and claim.is_waiting

    def _available_to(self, claim: SlotClaim) -> int:
        """What others leave. One that came later and must start again does so in what is left: slots may be lost."""
        came_later = False
        taken = 0
        for other in self._claims.values():
            if other is claim:
                came_later = True
            elif not (came_later and other.is_waiting):
                taken += other.held
        return max(0, self._total - taken)

    def _settle(self) -> None:
        """Gives out what is free, in order."""
        for claim in list(self._claims.values()):
            if claim.is_waiting:
                available = self._available_to(claim)
                if claim.needed is None or available < claim.needed:
                    return
                claim.is_waiting = False
                claim.held = min(claim.wanted, available)
            elif claim.held < claim.wanted:
                claim.held = max(claim.held, min(claim.wanted, self._available_to(claim)))
