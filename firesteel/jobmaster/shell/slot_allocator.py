"""Slot allocator: a thread-safe SlotLedger in which the threads of jobs wait for slots."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.jobmaster.slots.ledger import SlotClaim, SlotLedger, SlotPlace
from firesteel.process.concurrency import SYSTEM, Concurrency, Condition

__all__ = ["SlotAllocator"]

POLL_INTERVAL_S = 1.0
"""How often Spark is asked for its number of slots, which may change, while a job waits."""


class SlotAllocator:
    """Gives the slots of one Spark to jobs. All methods may be called from any thread.

    ``is_fixed``: the number of slots never changes, as that of an embedded Spark. ``grows_on_demand``: slots are added
    when jobs wait for them, as with Spark's dynamic allocation.
    """

    def __init__(
        self,
        count_slots: Callable[[], int],
        *,
        is_fixed: bool,
        grows_on_demand: bool = False,
        look_s: float = POLL_INTERVAL_S,
        concurrency: Concurrency = SYSTEM,
    ):
        self.is_fixed = is_fixed
        self.grows_on_demand = grows_on_demand
        self._look_s = look_s
        self._count_slots = count_slots
        self._monotonic = concurrency.monotonic
        self._changed = Condition(concurrency)
        self._ledger = SlotLedger(count_slots())
        self._looked_at = self._monotonic()

    @property
    def total(self) -> int:
        """How many slots there are; up to a second old."""
        self._look()
        return self._ledger.total

    @property
    def free(self) -> int:
        """How many slots no job holds."""
        self._look()
        with self._changed:
            return self._ledger.free

    def claims(self) -> list[SlotClaim]:
        """The slots that jobs hold and request, in their order."""
        with self._changed:
            return self._ledger.claims()

    def join(self, job_id: str) -> None:
        """A job takes its place in the queue."""
        with self._changed:
            self._ledger.join(job_id)

    def left_for(self, job_id: str) -> int:
        """How many slots a job may have now, those it holds included."""
        self._look()
        with self._changed:
            return self._ledger.left_for(job_id)

    def request(self, job_id: str, needed: int, wanted: int | None = None) -> bool:
        """Asks for slots; whether they are there at once. If not, `wait` for them, or `withdraw`."""
        self._look()
        with self._changed:
            granted = self._ledger.request(job_id, needed, wanted)
            self._changed.notify_all()
            return granted

    def wait(self, job_id: str, tell: Callable[[SlotPlace], None], is_stopped: Callable[[], bool]) -> bool:
        """Waits until a job that has asked for slots has them; False if it is stopped first (see `wake`).

        ``tell`` is called with its place at once, whenever that changes, and at the end.
        """
        told: SlotPlace | None = None
        while not is_stopped():
            self._look()
            with self._changed:
                if self._ledger.holds(job_id):
                    tell(SlotPlace(0, self._ledger.place(job_id).free, self._ledger.total))
                    return True
                place = self._ledger.place(job_id)
                if place != told:
                    told = place
                    tell(place)
                if not is_stopped():
                    self._changed.wait(self._look_s)
        return False

    def wake(self) -> None:
        """Has all that wait look whether they are stopped."""
        with self._changed:
            self._changed.notify_all()

    def withdraw(self, job_id: str) -> None:
        """A job no longer waits, but keeps what it holds."""
        with self._changed:
            self._ledger.withdraw(job_id)
            self._changed.notify_all()

    def release(self, job_id: str) -> None:
        """A job is over: its slots go to the next."""
        with self._changed:
            self._ledger.release(job_id)
            self._changed.notify_all()

    def _look(self) -> None:
        """Asks how many slots there are, if that may have changed; not inside the lock, as it may take its time."""
        now = self._monotonic()
        if self.is_fixed or now - self._looked_at < self._look_s / 2:
            return
        self._looked_at = now
        total = self._count_slots()
        with self._changed:
            if total != self._ledger.total:
                self._ledger.total = total
                self._changed.notify_all()
