"""What goes wrong in a chaos run, and when: all of it drawn from a seed beforehand."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from firesteel.process.fault_points import EPOCH_POINTS, POINTS
from tests.support.chaos.agent import Places
from tests.support.chaos.stream import LANES

__all__ = [
    "EPOCHS",
    "KILL_EXECUTOR",
    "PARALLELISM",
    "PIPELINED",
    "RETRIED",
    "SWITCH",
    "Fault",
    "Plan",
    "all_kinds",
    "make_plan",
    "points_of",
]

PIPELINED = "pipelined"
EPOCHS = "epochs"

SIMPLE_KINDS = (
    "exception in user code",
    "kill a worker",
    "kill the driver",
    "stop a worker",
    "cut a data connection",
    "storage fails",
    "storage is slow",
    "storage returns a truncated file",
    "checkpoint storage is full",
    "local disk is full",
)
KILL_EXECUTOR = "kill an executor"
RETRIED = "a task is retried by Spark"
"""In epochs, where Spark is told to run a task again that has failed."""
SWITCH = "switch to pipelined and back"
"""The driver is killed, and killed again as soon as the job has given output as a pipelined one."""
ONLY_PIPELINED = ("cut a data connection", "kill a worker")
ONLY_EPOCHS = ("kill a worker in an epoch", "kill a worker between epochs", SWITCH)
NOT_RETRIED = ("encoder",)
"""Places of user code of which a task is without an agent that could say that it was run again."""
DECLINED = "snapshot"
"""An exception there fails no task: the checkpoint is declined."""
OVERLAP = 0.2
"""How often the next fault does not wait until the job has recovered from the one before."""
MAX_PAUSE_S = 1.5
PARALLELISM = 2
"""At first; a driver that is started again may have another."""


@dataclass(frozen=True)
class Fault:
    """One fault; ``pause_s`` is how long after the recovery from the one before, ``overlaps`` if not after it."""

    kind: str
    pause_s: float
    overlaps: bool
    choice: float
    """For what is not known beforehand, such as which of the workers: a number from 0 to 1."""
    detail: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        details = ", ".join(f"{key} {value}" for key, value in self.detail.items())
        return f"{self.kind} ({details})" if details else self.kind


@dataclass(frozen=True)
class Plan:
    """A run: its faults, and the settings it runs with."""

    seed: int
    faults: tuple[Fault, ...]
    backend: str
    mode: str
    cluster: bool
    settings: dict[str, str]
    execution: str = PIPELINED
    retries: bool = False
    """Whether Spark runs tasks again that have failed."""


def points_of(execution: str) -> tuple[str, ...]:
    """The fault points that are reached."""
    return (*POINTS, *EPOCH_POINTS) if execution == EPOCHS else POINTS


def all_kinds(cluster: bool, execution: str = PIPELINED, retries: bool = False) -> list[str]:
    """Every kind of fault: those of the list, a crash and an error at each fault point."""
    kinds = [*SIMPLE_KINDS, *([KILL_EXECUTOR] * 3 if cluster else [])]
    if execution == EPOCHS:
        kinds = [*(kind for kind in kinds if kind not in ONLY_PIPELINED), *ONLY_EPOCHS, *([RETRIED] * retries)]
    kinds += [f"crash at {point}" for point in points_of(execution)]
    kinds += [f"error at {point}" for point in points_of(execution)]
    return kinds


def make_plan(
    seed: int,
    count: int,
    *,
    backend: str | None = None,
    mode: str | None = None,
    cluster: bool = False,
    kinds: list[str] | None = None,
    execution: str = PIPELINED,
    retries: bool = False,
) -> Plan:
    """Draws a plan. No kind comes again before every other has been there."""
    drawn = random.Random(seed)
    drawn_backend = drawn.choice(("hashmap", "rocksdb"))
    drawn_mode = drawn.choice(("aligned", "unaligned", "timeout"))
    settings = {
        "execution.checkpointing.tolerable-failed-checkpoints": drawn.choice(("0", "2", "1000")),
        "execution.checkpointing.max-concurrent-checkpoints": drawn.choice(("1", "1", "2")),
        "execution.checkpointing.num-retained": drawn.choice(("1", "2", "3")),
        "execution.checkpointing.data-inline-threshold": drawn.choice(("0 b", "1 kb")),
        "execution.state-recovery.from-local": drawn.choice(("true", "false")),
        "execution.checkpointing.incremental": drawn.choice(("true", "true", "false")),
    }
    if (mode or drawn_mode) != "aligned":
        settings["execution.checkpointing.max-concurrent-checkpoints"] = "1"  # unaligned ones cannot overlap
    wanted: list[str] = []
    while len(wanted) < count:
        more = list(kinds or all_kinds(cluster, execution, retries))
        drawn.shuffle(more)
        wanted += more
    faults = tuple(
        _draw_fault(drawn, kind, not index, PARALLELISM if cluster else LANES, execution)
        for index, kind in enumerate(wanted[:count])
    )
    return Plan(seed, faults, backend or drawn_backend, mode or drawn_mode, cluster, settings, execution, retries)


def _draw_fault(drawn: random.Random, kind: str, first: bool, most_slots: int, execution: str) -> Fault:
    pause = drawn.uniform(0, MAX_PAUSE_S)
    # that Spark retries is only so where nothing else is wrong
    overlaps = not first and drawn.random() < OVERLAP and kind != RETRIED
    detail: dict[str, Any] = {}
    if kind == "exception in user code":
        detail["in"] = drawn.choice(Places.NAMES)
    elif kind == "kill the driver":
        detail["restarted"] = drawn.choice(("at once", "when all of it is gone"))
        detail["parallelism"] = drawn.choice((1, PARALLELISM, PARALLELISM, most_slots))
    elif kind == SWITCH:
        detail["parallelism"] = drawn.choice((1, PARALLELISM, most_slots))
        detail["and back at"] = drawn.choice((1, PARALLELISM, most_slots))
    elif kind == RETRIED:
        detail["after"] = drawn.choice(("an exception", "a kill"))
        unfit = NOT_RETRIED if detail["after"] == "a kill" else (*NOT_RETRIED, DECLINED)
        detail["in"] = drawn.choice([name for name in Places.NAMES if name not in unfit])
    elif kind == "stop a worker":
        detail["then"] = drawn.choice(("continued", "killed") if execution == PIPELINED else ("continued", "noticed"))
    elif kind in ("storage fails", "storage is slow", "checkpoint storage is full", "local disk is full"):
        detail["seconds"] = round(drawn.uniform(0.5, 2.0), 2)
        if kind == "storage fails":
            detail["operation"] = drawn.choice(("write", "delete", "all"))
    elif kind == "storage returns a truncated file":
        detail["to"] = drawn.choice(("a worker", "a worker", "the driver"))
    return Fault(kind, round(pause, 3), overlaps, drawn.random(), detail)
