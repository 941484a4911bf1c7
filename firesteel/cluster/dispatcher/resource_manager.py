"""The ResourceManager: allocates the slots of a cluster among all its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.jobmaster.shell.slot_allocator import SlotAllocator

__all__ = ["ResourceManager", "SlotsOverview"]


@dataclass(frozen=True)
class SlotsOverview:
    """How many slots a cluster has, who holds them, and who waits for some."""

    total: int
    free: int
    held: dict[str, int]
    """By job."""
    waiting: tuple[str, ...]
    """Jobs in their order."""


class ResourceManager(SlotAllocator):
    """Gives slots to jobs strictly in the order in which they came.

    A job holds its slots until it has ended. One that does not fit waits, and so do all behind it: no job is overtaken
    for ever by smaller ones. How long a job waits at the head of the queue is its own business (its JobMaster gives up
    after slot.request.timeout); how long it waits behind others does not count. On an embedded Spark a job that needs
    more slots than there are in all fails at once, as none will ever come.
    """

    @classmethod
    def of_spark(cls, context: Any) -> ResourceManager:
        """The ResourceManager for a SparkContext, with as many slots as it can run tasks at once."""
        from firesteel.spark.session.slots import available_slots, has_fixed_slots, is_allocated_dynamically

        return cls(
            lambda: available_slots(context),
            is_fixed=has_fixed_slots(context),
            grows_on_demand=is_allocated_dynamically(context),
        )

    def overview(self) -> SlotsOverview:
        """A snapshot for display."""
        total, free = self.total, self.free
        claims = self.claims()
        held = {claim.job_id: claim.held for claim in claims if claim.held}
        return SlotsOverview(total, free, held, tuple(claim.job_id for claim in claims if claim.is_waiting))
