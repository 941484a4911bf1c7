"""Fault injection of a run: exceptions in user code, and errors at the product's own fault points."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.errors import FiresteelError
from firesteel.process.fault_points import EPOCH_POINTS, POINTS
from firesteel.testing.programs.running.in_flight import in_flight

__all__ = [
    "BATCH_POINTS",
    "EPOCH_POINTS",
    "POINTS",
    "STORAGE",
    "TASKS",
    "Fault",
    "ProgramFault",
    "Trip",
    "complete",
    "step",
]

BATCH_POINTS = ("sink.commit", "sink.committed")
STORAGE = ("fail", "fail write", "full", "slow:0.01", "truncate write once", "truncate read once")
"""Faults of checkpoint storage (`firesteel.testing.faulty_storage`)."""
TASKS = ("retry", "kill", "fail")
"""What happens to a task of an epoch or a batch (`firesteel.testing.stages`)."""


class ProgramFault(FiresteelError):
    """An exception that a run injects into user code."""


@dataclass(frozen=True)
class Fault:
    """One fault, which happens once unless its kind specifies otherwise."""

    kind: str
    """``user``: an exception in a function. ``kill``: SIGKILL of the process that runs it. ``point``: an OSError at a
    fault point. ``task``: a task of an epoch or a batch breaks off. ``slow``: some calls of a function take long.
    ``flight``: an exception whenever a checkpoint is complete that has something certain in flight."""
    place: str
    """``<node id>`` or ``<node id>.<function>``; or the name of a fault point, or what happens to the task."""
    at: int = 1
    """The how manyth call in one subtask, or in the process; or the epoch; or how many ms a slow call takes; or
    after how many checkpoints with something in flight it is over."""
    restores: bool = False
    """An exception waits until there is a checkpoint to go back to."""
    every: int = 16
    """Every how manyth call is slow."""
    holds: str = ""
    """What a checkpoint has in flight: one of `IN_FLIGHT`."""

    @property
    def label(self) -> str:
        """What coverage counts the fault as."""
        if self.kind == "flight":
            return f"{self.holds} in flight"
        return self.kind if self.is_in_function else f"{self.kind} {self.place}"

    @property
    def is_in_function(self) -> bool:
        """Whether it happens in a function of the program."""
        return self.kind in ("user", "kill", "slow", "flight")


class Trip:
    """Fails a call of a user function: the nth one of some subtask, once in all attempts.

    The process that removes the token file fails, so it happens once. If the fault is
    that it is slow, some calls take so many milliseconds instead. ``checkpoints`` is the directory where a fault looks
    that waits for a checkpoint. If it waits for one that has something in flight, no call fails, but the notification
    that the checkpoint is complete: as no later one is, the job goes back to it.
    """

    def __init__(self, fault: Fault, token: Path, checkpoints: Path = Path()):
        self._fault = fault
        self._token = token
        self._checkpoints = checkpoints
        self._calls = 0

    def count(self) -> None:
        """Called once for each call of the function."""
        self._calls += 1
        fault = self._fault
        if fault.kind == "slow":
            if self._calls % fault.every == 0:
                self._token.unlink(missing_ok=True)
                time.sleep(fault.at / 1000)
        elif self._calls >= fault.at and self._is_time():
            try:
                self._token.unlink()
            except FileNotFoundError:
                return
            if fault.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ProgramFault(f"Injected at call {self._calls}.")

    def _is_time(self) -> bool:
        return not self._fault.restores or next(self._checkpoints.glob("*/chk-*/_metadata"), None) is not None

    def complete(self, checkpoint_id: int) -> None:
        """Called once a checkpoint is complete."""
        fault = self._fault
        strikes = [self._token.with_name(f"{self._token.name}.{number}") for number in range(fault.at)]
        left = [strike for strike in strikes if not strike.exists()]
        for checkpoint in self._checkpoints.glob(f"*/chk-{checkpoint_id}") if left else ():
            if fault.holds in in_flight(checkpoint):
                left[0].touch()
                self._token.unlink(missing_ok=True)
                raise ProgramFault(f"Injected at checkpoint {checkpoint_id}, which has {fault.holds} in flight.")


def step(trip: Trip | None) -> None:
    """Counts a call of a function that may be made to fail."""
    if trip is not None:
        trip.count()


def complete(trip: Trip | None, checkpoint_id: int) -> None:
    """Notifies that a checkpoint is complete."""
    if trip is not None:
        trip.complete(checkpoint_id)
