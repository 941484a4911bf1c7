"""AttemptHost: the interface between a JobMaster and Spark, or the in-process runner, that runs its attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.events import Event
from firesteel.runtime.model.messages import JobMasterMessage

__all__ = ["Attempt", "AttemptHost", "Post"]

Post = Callable[[Event], None]
"""Puts an event into the JobMaster's queue; may be called from any thread."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a host needs to know to start the slots of an attempt."""

    number: int
    slots: int
    job_graph: JobGraph
    serialized_job: bytes
    """The JobGraph, pickled once for all attempts and slots.

    With fewer ``slots`` than requested, each slot limits its parallelism by itself (`graph.rescaling`).
    """
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """Python files and archives that must be importable where the job is unpickled, by file name."""


class AttemptHost(Protocol):
    """Starts the processes of an attempt and reports about them with events."""

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts all slots; returns at once. Posts AttemptEnded exactly once, when no process is left."""
        ...

    def watch_slots(self, post: Post) -> None:
        """Posts SlotsAvailable at once and whenever the number of slots changes, until the host is closed."""
        ...

    def slots_left(self) -> int | None:
        """Returns how many slots the job may have now, including its own; None if there is no known limit."""
        ...

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        """Sends to a slot; a slot that is gone is reported with SlotLost, not here."""
        ...

    def kill(self, attempt: int, reason: str) -> None:
        """Ends the attempt's processes without asking them."""
        ...

    def close(self) -> Any:
        """Releases threads and sockets; no attempt is running any more."""
        ...
