"""What goes wrong in a run: exceptions of user code, and errors at the product's own fault points."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.errors import FiresteelError
from firesteel.common.fault_points import EPOCH_POINTS, POINTS

__all__ = [
    "BATCH_POINTS",
    "EPOCH_POINTS",
    "POINTS",
    "STORAGE",
    "TASKS",
    "Fault",
    "ProgramFault",
    "Trip",
    "step",
    "trip_of",
]

BATCH_POINTS = ("sink.commit", "sink.committed")
STORAGE = ("fail", "fail write", "full", "slow:0.01", "truncate write once", "truncate read once")
"""Faults of checkpoint storage (`firesteel.testing.faulty_storage`)."""
TASKS = ("retry", "kill", "fail")
"""What happens to a task of an epoch or a batch (`firesteel.testing.stages`)."""
_SLOW_EVERY = 16


class ProgramFault(FiresteelError):
    """An exception that a run injects into user code."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, once."""

    kind: str
    """``user``: an exception in a function. ``kill``: SIGKILL of the process that runs it. ``point``: an OSError at a
    fault point. ``task``: a task of an epoch or a batch breaks off. ``slow``: some calls of a function take long."""
    place: str
    """``<node id>`` or ``<node id>.<function>``; or the name of a fault point, or what happens to the task."""
    at: int = 1
    """The how manyth call in one subtask, or in the process; or the epoch; or how many ms a slow call takes."""
    restores: bool = False
    """An exception waits until there is a checkpoint to go back to."""

    @property
    def label(self) -> str:
        """What coverage counts the fault as."""
        return self.kind if self.is_in_function else f"{self.kind} {self.place}"

    @property
    def is_in_function(self) -> bool:
        """Whether it happens in a function of the program."""
        return self.kind in ("user", "kill", "slow")


class Trip:
    """Fails a call of a user function: the nth one of some subtask, once in all attempts.

    Who removes the token file fails; so it happens once, whichever process gets there first. With the action ``slow``
    every 16th call takes so many milliseconds instead. ``checkpoints`` is a directory: the call fails once there is a
    checkpoint in it.
    """

    def __init__(self, token: str, at: int, action: str = "raise", checkpoints: str | None = None):
        self.token = token
        self.at = at
        self.action = action
        self.checkpoints = checkpoints
        self._calls = 0

    def __repr__(self) -> str:
        return f"Trip({self.token!r}, {self.at}, {self.action!r}, {self.checkpoints!r})"

    def count(self) -> None:
        """Called once for each call of the function."""
        self._calls += 1
        if self.action == "slow":
            if self._calls % _SLOW_EVERY == 0:
                Path(self.token).unlink(missing_ok=True)
                time.sleep(self.at / 1000)
        elif self._calls >= self.at and self._is_time():
            try:
                Path(self.token).unlink()
            except FileNotFoundError:
                return
            if self.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ProgramFault(f"Injected at call {self._calls}.")

    def _is_time(self) -> bool:
        return self.checkpoints is None or next(Path(self.checkpoints).glob("*/chk-*/_metadata"), None) is not None


def trip_of(fault: Fault, token: Path, checkpoints: Path) -> Trip:
    """Returns what makes a function fail."""
    action = "raise" if fault.kind == "user" else fault.kind
    return Trip(str(token), fault.at, action, str(checkpoints) if fault.restores else None)


def step(trip: Trip | None) -> None:
    """Counts a call of a function that may be made to fail."""
    if trip is not None:
        trip.count()
