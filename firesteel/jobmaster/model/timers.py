"""The JobMaster's deadlines: set and cancelled by instruction, checked when they fire."""

from __future__ import annotations

from enum import Enum

from firesteel.jobmaster.model.instructions import CancelTimer, SetTimer

__all__ = ["Timer", "Timers"]


class Timer(str, Enum):
    """What the JobMaster waits for."""

    SLOT_REQUEST = "slot-request-timeout"
    HEARTBEAT = "heartbeat-timeout"
    FAILURE_GRACE = "failure-grace"
    SHUTDOWN = "shutdown-timeout"
    CANCELLATION = "cancellation-timeout"
    KILL = "kill-timeout"
    RESTART = "restart-delay"
    LEFTOVERS = "leftovers-timeout"
    CHECKPOINT = "checkpoint"
    SLOTS = "slots"
    CLIENT = "client"


class Timers:
    """Timers that are set now. A firing that raced with its cancellation is not one."""

    def __init__(self) -> None:
        self._due: dict[Timer, int] = {}

    def set(self, timer: Timer, at: int) -> SetTimer:
        self._due[timer] = at
        return SetTimer(timer.value, at)

    def cancel(self, *timers: Timer) -> list[CancelTimer]:
        """Cancels those of the timers that are set."""
        return [CancelTimer(timer.value) for timer in timers if self._due.pop(timer, None) is not None]

    def is_set(self, timer: Timer) -> bool:
        return timer in self._due

    def fired(self, name: str, now: int) -> Timer | SetTimer | None:
        """The timer, taken off; if it came early, the instruction to set it again."""
        timer = Timer(name)
        due = self._due.get(timer)
        if due is None:
            return None
        if now < due:
            return SetTimer(name, due)
        del self._due[timer]
        return timer

    def due(self) -> dict[str, int]:
        """Every timer that is set, and its time."""
        return {timer.value: at for timer, at in self._due.items()}
