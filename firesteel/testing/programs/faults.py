"""What goes wrong in a run: exceptions of user code, and errors at the product's own fault points."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = ["BATCH_POINTS", "EPOCH_POINTS", "POINTS", "STORAGE", "TASKS", "Fault", "ProgramFault", "Trip", "step"]

POINTS = (
    "checkpoint.trigger",
    "checkpoint.sync",
    "checkpoint.write",
    "checkpoint.ack",
    "checkpoint.metadata",
    "checkpoint.stored",
    "checkpoint.delete",
    "sink.commit",
    "sink.committed",
    "storage.write",
    "storage.read",
    "storage.delete",
)
"""The fault points of a job that takes checkpoints (`firesteel.common.fault_points`)."""
EPOCH_POINTS = ("epoch.begin", "epoch.processed", "epoch.end")
BATCH_POINTS = ("sink.commit", "sink.committed")
STORAGE = ("fail", "fail write", "full", "slow:0.01", "truncate write once", "truncate read once")
"""Faults of checkpoint storage (`firesteel.testing.faulty_storage`)."""
TASKS = ("retry", "kill", "fail")
"""What happens to a task of an epoch or a batch (`firesteel.testing.stages`)."""


class ProgramFault(FiresteelError):
    """An exception that a run injects into user code."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, once."""

    kind: str
    """``user``: an exception in a function. ``kill``: SIGKILL of the process that runs it. ``point``: an OSError at a
    fault point. ``task``: a task of an epoch or a batch breaks off."""
    place: str
    """``<node id>`` or ``<node id>.<function>``; or the name of a fault point, or what happens to the task."""
    at: int = 1
    """The how manyth call in one subtask, or in the process; or the epoch."""

    @property
    def label(self) -> str:
        """What coverage counts the fault as."""
        return self.kind if self.kind in ("user", "kill") else f"{self.kind} {self.place}"


class Trip:
    """Fails a call of a user function: the nth one of some subtask, once in all attempts.

    Who removes the token file fails; so it happens once, whichever process gets there first.
    """

    def __init__(self, token: str, at: int, action: str = "raise"):
        self.token = token
        self.at = at
        self.action = action
        self._calls = 0

    def __repr__(self) -> str:
        return f"Trip({self.token!r}, {self.at}, {self.action!r})"

    def count(self) -> None:
        """Called once for each call of the function."""
        self._calls += 1
        if self._calls >= self.at:
            try:
                Path(self.token).unlink()
            except FileNotFoundError:
                return
            if self.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ProgramFault(f"Injected at call {self._calls}.")


def step(trip: Trip | None) -> None:
    """Counts a call of a function that may be made to fail."""
    if trip is not None:
        trip.count()
