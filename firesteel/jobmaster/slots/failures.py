"""Slot failures: errors for slots that are not available, time out, are lost or do not stop."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.common.errors import HostError, NotEnoughSlotsError, TaskFailure
from firesteel.jobmaster.slots.pool import Slot, SlotPool
from firesteel.runtime.model.messages import RegisterSlot

__all__ = [
    "did_not_come",
    "did_not_stop",
    "fell_silent",
    "host_did_not_start",
    "registered_twice",
    "stopped_early",
    "was_lost",
]


def did_not_come(pool: SlotPool, timeout: int) -> TaskFailure:
    """Not all slots registered in time."""
    error = NotEnoughSlotsError(
        pool.needed,
        pool.available,
        timeout / 1000,
        hint=f"{pool.taken}Lower the parallelism, give the cluster more cores, or raise slot.request.timeout.",
    )
    return TaskFailure(error.message, error_type="NotEnoughSlotsError", hint=error.hint, cause=error)


def host_did_not_start(pool: SlotPool, timeout: int) -> TaskFailure:
    """The host has slots for the attempt but starts nothing in them, or has not even taken the order to."""
    why = "Spark has slots for it, but starts nothing in them" if pool.granted else "Spark does not respond"
    error = HostError(f"The attempt could not be started within {timeout / 1000:g} s: {why}.")
    return TaskFailure(error.message, error_type="HostError", cause=error)


def registered_twice(slot: Slot, other: RegisterSlot) -> TaskFailure:
    """Another process claims to be a slot that is there."""
    text = f"Two processes registered as {slot.describe()}: the other one has pid {other.pid}."
    return TaskFailure(text, error_type="SlotRegistrationError")


def fell_silent(slots: Iterable[Slot], timeout: int) -> TaskFailure:
    """No heartbeat came for too long."""
    names = ", ".join(slot.describe() for slot in slots)
    text = f"No heartbeat from {names} for {timeout / 1000:g} s."
    return TaskFailure(text, error_type="HeartbeatTimeout", hint="if the machine is only slow, raise heartbeat.timeout")


def was_lost(slot: Slot, reason: str) -> TaskFailure:
    """The connection to a slot ended."""
    memory = f" It had {slot.rss_bytes >> 20} MB at its last heartbeat." if slot.rss_bytes else ""
    return TaskFailure(
        f"Lost {slot.describe()}: {reason}.{memory}",
        error_type="SlotLost",
        hint="its process was killed or crashed (out of memory?), or its network failed",
    )


def stopped_early(slot: Slot) -> TaskFailure:
    """A slot stopped without an instruction."""
    return TaskFailure(f"{slot.describe()} stopped although the job still ran.", error_type="SlotLost")


def did_not_stop(slots: Iterable[Slot], timeout: int) -> TaskFailure:
    """Slots did not stop when they were instructed to at the end of a job."""
    left = ", ".join(slot.describe() for slot in slots)
    text = f"All tasks finished, but {left} did not stop within {timeout / 1000:g} s."
    return TaskFailure(text, error_type="ShutdownTimeout")
