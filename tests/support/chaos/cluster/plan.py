"""What goes wrong with a cluster of two JobManagers, and when: drawn from a seed beforehand."""

from __future__ import annotations

import random
from typing import Any

from firesteel.process.fault_points import POINTS
from tests.support.chaos.cluster.cluster import DIRECTORY, STANDALONE
from tests.support.chaos.plan import MAX_PAUSE_S, OVERLAP, Fault

__all__ = ["AMID", "cluster_kinds", "draw_faults"]

PROCESSES = (
    "kill the leader",
    "kill the standby",
    "kill the leader's JVM",
    "kill the standby's JVM",
    "stop the leader",
    "stop the standby",
    "stop the leader's JVM",
    "kill a slot",
    "stop a slot",
    "exception in user code",
)
SPARK = ("kill an executor", "stop an executor", "kill a Spark worker")
"""Of a standalone cluster."""
STORAGE = (
    "storage is slow",
    "storage hangs",
    "storage refuses",
    "storage is full",
    "storage is unmounted",
)
STORE = ("the HA directory refuses", "the HA directory is full", "the HA directory is unmounted")
ZOOKEEPER = ("ZooKeeper is killed", "ZooKeeper is stopped")
SURROUNDINGS = ("the clock is set", "the network is cut")
AMID = ("", "", "", "RESTARTING", "INITIALIZING", "CREATED", "FAILING", "CANCELLING")
"""In which status of some job a fault strikes, if it can be had; any for the empty one."""


def cluster_kinds(spark: str, store: str) -> list[str]:
    """All kinds of faults of a cluster."""
    kinds = [*PROCESSES, *STORAGE, *SURROUNDINGS, *(STORE if store == DIRECTORY else ZOOKEEPER)]
    kinds += SPARK if spark == STANDALONE else ()
    return kinds + [f"crash at {point}" for point in POINTS] + [f"error at {point}" for point in POINTS[::3]]


def draw_faults(seed: int, count: int, kinds: list[str]) -> list[Fault]:
    """Draws faults of these kinds, in their order."""
    drawn = random.Random(f"faults {seed}")
    return [_draw(drawn, kind, first=not index) for index, kind in enumerate(kinds[:count])]


def _draw(drawn: random.Random, kind: str, *, first: bool) -> Fault:
    pause = drawn.uniform(0, MAX_PAUSE_S)
    overlaps = not first and drawn.random() < OVERLAP
    detail: dict[str, Any] = {}
    if kind.startswith("stop "):
        detail["seconds"] = round(drawn.choice((2.0, 5.0, 12.0, 12.0, 20.0, 60.0)), 1)
    elif kind == "the clock is set":
        detail["seconds"] = round(drawn.uniform(2.0, 8.0), 1)
        detail["by"] = drawn.choice((-3600, 3600, -86_400, 600, -30, 10))
    elif kind == "the network is cut":
        detail["seconds"] = round(drawn.choice((0.5, 2.0, 5.0, 10.0, 15.0)), 1)
    elif kind in (*STORAGE, *STORE, *ZOOKEEPER):
        detail["seconds"] = round(drawn.uniform(1.0, 10.0), 1)
    amid = drawn.choice(AMID)
    # what is to be reached is reached by jobs that run
    if amid and not kind.startswith(("crash at ", "error at ", "exception ")):
        detail["amid"] = amid
    return Fault(kind, round(pause, 3), overlaps, drawn.random(), detail)
