"""Fault points: places where a test makes a process fail, off unless an environment variable names them.

``FIRESTEEL_FAULT_POINTS`` holds ``point=action`` entries, separated by commas. An action is ``kill`` (SIGKILL of the
own process), ``raise`` (an OSError) or ``sleep:<seconds>``. An entry ``point=action@<file>`` happens once, in the
process that removes the file. With ``point=action#3`` or ``point=action#3@<file>`` it happens from the third time on
that this process gets there. A point may have several entries. A point without entries costs one comparison.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

__all__ = ["EPOCH_POINTS", "POINTS", "VARIABLE", "arm", "reach"]

VARIABLE = "FIRESTEEL_FAULT_POINTS"
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
"""All points of a job that takes checkpoints; those of checkpoints in the order of the protocol."""
EPOCH_POINTS = ("epoch.begin", "epoch.processed", "epoch.end")
"""Those that there are only in epochs."""

_armed: dict[str, list[str]] = {}
_reached: dict[tuple[str, str], int] = {}
"""How often this process got to points whose action waits for that."""


def arm(entries: str) -> None:
    """Sets the points of this process; an empty text disarms all."""
    _armed.clear()
    _reached.clear()
    for entry in filter(None, (part.strip() for part in entries.split(","))):
        point, _, action = entry.partition("=")
        _armed.setdefault(point, []).append(action)


def reach(point: str) -> None:
    """Executes the action of a test for this point, if there is one."""
    if _armed and point in _armed:
        for action in _armed[point]:
            _act(point, action)


def _act(point: str, action: str) -> None:
    what, _, once = action.partition("@")
    what, _, number = what.partition("#")
    if number:
        count = _reached[point, action] = _reached.get((point, action), 0) + 1
        if count < int(number):
            return
    action = what
    if once:
        try:
            Path(once).unlink()
        except FileNotFoundError:
            return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise OSError(f"fault injected at {point}")
    elif action.startswith("sleep:"):
        time.sleep(float(action.removeprefix("sleep:")))
    else:
        raise ValueError(f"unknown action {action!r} at fault point {point}")


arm(os.environ.get(VARIABLE, ""))
