"""The slot inventory: how many tasks Spark can run at once, and waiting until that is enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark import SparkContext

from firesteel.common.errors import NotEnoughSlotsError

__all__ = ["SlotInventory", "available_slots", "wait_for_slots"]

_POLL_S = 0.1


class SlotInventory:
    """Which of Spark's slots the jobs of this process hold: Spark itself counts those that are taken, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, int] = {}

    def hold(self, owner: object, slots: int) -> None:
        """A job has asked Spark for so many slots, or has none any more."""
        with self._lock:
            self._held[id(owner)] = slots
            if not slots:
                del self._held[id(owner)]

    def left_for(self, owner: object, total: int) -> int:
        """How many of the slots there are a job may have, those it holds included.

        >>> inventory, one, other = SlotInventory(), object(), object()
        >>> inventory.hold(one, 3)
        >>> inventory.left_for(other, 4), inventory.left_for(one, 4)
        (1, 4)
        """
        with self._lock:
            return max(0, total - sum(slots for job, slots in self._held.items() if job != id(owner)))


def available_slots(context: SparkContext) -> int:
    """How many tasks Spark can run at once: executors × cores / cores per task."""
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return int(scala.maxNumConcurrentTasks(profile))


def wait_for_slots(
    context: SparkContext, needed: int, offer: Callable[[int], None], stopped: Callable[[], bool]
) -> None:
    """Returns once there are enough slots, or it is stopped; tells how many there are whenever that changes.

    Executors of a cluster may still be registering. An embedded Spark has all the slots it will ever have, so that
    too few are an error at once.
    """
    fixed = context.master.startswith("local") and not context.master.startswith("local-cluster")
    offered: int | None = None
    while (available := available_slots(context)) < needed and not stopped():
        if fixed:
            raise NotEnoughSlotsError(
                needed,
                available,
                0,
                hint=f"Lower the parallelism to {available}, or give Spark more cores: spark.master=local[{needed}].",
            )
        if available != offered:
            offer(available)
            offered = available
        time.sleep(_POLL_S)
    offer(available)
