"""The slot inventory: how many tasks Spark can run at once, and waiting until that is enough."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark import SparkContext

from firesteel.common.errors import NotEnoughSlotsError

__all__ = ["available_slots", "wait_for_slots"]

_POLL_S = 0.1


def available_slots(context: SparkContext) -> int:
    """How many tasks Spark can run at once: executors × cores / cores per task."""
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return int(scala.maxNumConcurrentTasks(profile))


def wait_for_slots(context: SparkContext, needed: int, timeout_s: float, stopped: Callable[[], bool]) -> None:
    """Returns once there are enough slots; raises with both numbers when there are not in time.

    Executors of a cluster may still be registering. An embedded Spark has all the slots it will ever have.
    """
    started = time.monotonic()
    fixed = context.master.startswith("local") and not context.master.startswith("local-cluster")
    while (available := available_slots(context)) < needed:
        waited = time.monotonic() - started
        if fixed or waited >= timeout_s:
            raise NotEnoughSlotsError(
                needed,
                available,
                waited,
                hint=f"Lower the parallelism to {available}, or start Spark with more cores (spark.master="
                f"local[{needed}], more workers, or more cores per executor); slot.request.timeout says how long to "
                "wait for slots.",
            )
        if stopped():
            return
        time.sleep(_POLL_S)
