"""What goes wrong in a run: exceptions of user code, and errors at the product's own fault points."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = ["Fault", "ProgramFault", "Trip", "step"]


class ProgramFault(FiresteelError):
    """An exception that a run injects into user code."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, once."""

    kind: str
    """``user``: an exception in a function. ``kill``: SIGKILL of the process that runs it. ``point``: an OSError at a
    fault point. ``storage``: what `firesteel.testing.faulty_storage` does. ``task``: a task of a stage breaks off."""
    place: str
    """``<node id>`` or ``<node id>.<function>``; or a fault point, a fault of storage, a kind of task fault."""
    at: int = 1
    """The how manyth call, in one subtask."""

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
