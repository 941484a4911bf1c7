"""Spark's slots: how many tasks it can run at once, their allocation, and the wait for executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark import SparkContext

from firesteel.common.errors import NotEnoughSlotsError
from firesteel.jobmaster.shell.slot_allocator import SlotAllocator

__all__ = ["allocator_of", "available_slots", "has_fixed_slots", "is_allocated_dynamically", "wait_for_slots"]

_POLL_S = 0.1
_lock = threading.Lock()
_allocator: tuple[SparkContext, SlotAllocator] | None = None


def allocator_of(context: SparkContext) -> SlotAllocator:
    """Who gives the slots of a SparkContext to the jobs of this process; always the same one."""
    global _allocator
    with _lock:
        if _allocator is None or _allocator[0] is not context:
            # a process has one SparkContext at a time
            _allocator = (
                context,
                SlotAllocator(
                    lambda: available_slots(context),
                    is_fixed=has_fixed_slots(context),
                    grows_on_demand=is_allocated_dynamically(context),
                ),
            )
        return _allocator[1]


def has_fixed_slots(context: SparkContext) -> bool:
    """Whether Spark is embedded: it has all the slots it will ever have. Executors of a cluster come and go."""
    master = context.master
    return bool(master.startswith("local")) and not master.startswith("local-cluster")


def available_slots(context: SparkContext) -> int:
    """How many tasks Spark can run at once: executors × cores / cores per task."""
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    found = int(scala.maxNumConcurrentTasks(profile))
    # with dynamic allocation Spark asks for executors only when tasks wait for them: assume one slot at least
    return max(1, found) if is_allocated_dynamically(context) else found


def is_allocated_dynamically(context: SparkContext) -> bool:
    """Whether Spark starts executors when tasks wait for them, and ends those that idle."""
    return str(context.getConf().get("spark.dynamicAllocation.enabled", "false")).lower() == "true"


def wait_for_slots(
    context: SparkContext, needed: int, offer: Callable[[int], None], stopped: Callable[[], bool]
) -> None:
    """Returns once there are enough slots, or it is stopped; reports how many there are whenever that changes.

    Executors of a cluster may still be registering. An embedded Spark has all the slots it will ever have, so that
    too few are an error at once.
    """
    fixed = has_fixed_slots(context)
    offered: int | None = None
    while (available := available_slots(context)) < needed and not stopped():
        if fixed:
            raise NotEnoughSlotsError(
                needed,
                available,
                0,
                hint=f"Lower the parallelism to {available}, or give Spark more cores: spark.master=local[{needed}].",
                is_final=True,
            )
        if available != offered:
            offer(available)
            offered = available
        time.sleep(_POLL_S)
    offer(available)
