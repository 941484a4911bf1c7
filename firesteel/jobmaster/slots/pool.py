"""Slot pool of one attempt: registration and heartbeats of its slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from firesteel.graph.persistent_vector import PersistentVector
from firesteel.jobmaster.model.events import SlotsQueued
from firesteel.runtime.model.messages import Address, Heartbeat, RegisterSlot, SlotMessage

__all__ = ["Slot", "SlotPool", "SlotPoolSnapshot", "SlotSnapshot", "SlotState"]


class SlotState(Enum):
    """The state of a slot. STOPPED and FAILED slots reported that themselves; a LOST one stopped sending heartbeats."""

    REQUESTED = "requested"
    REGISTERED = "registered"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"


class SlotSnapshot(msgspec.Struct, frozen=True):
    """One slot of an attempt at one moment."""

    index: int
    is_registered: bool
    """Whether it may still send messages."""
    registration: RegisterSlot | None
    heard_at: int
    """When its last message arrived, by the wall clock."""
    rss_bytes: int
    cpu_ms: int


class SlotPoolSnapshot(msgspec.Struct, frozen=True):
    """The slots of one attempt at one moment."""

    attempt: int
    requested_at: int
    """When they were asked for, by the wall clock."""
    slots: PersistentVector[SlotSnapshot]
    ended: bool
    is_queued: bool
    """Whether other jobs hold slots that the attempt needs, or come before it."""
    offered: int | None
    free: int | None
    ahead: int

    @property
    def needed(self) -> int:
        """How many slots the attempt asked for."""
        return len(self.slots)

    def live(self) -> list[SlotSnapshot]:
        """Slots that can be talked to."""
        return [] if self.ended else [slot for slot in self.slots if slot.is_registered]


@dataclass(slots=True)
class Slot:
    """One slot of an attempt."""

    index: int
    state: SlotState = SlotState.REQUESTED
    registration: RegisterSlot | None = None
    last_seen: int = 0
    """When its last message arrived, by the monotonic clock."""
    heard_at: int = 0
    """The same by the wall clock, to be shown."""
    rss_bytes: int = 0
    """The memory of its process in its last report."""
    cpu_ms: int = 0
    """How long its process had computed then."""
    changes: dict[int, None] = field(default_factory=dict, repr=False)
    """Takes the slot's index when the last snapshot is out of date."""

    def heard(self, message: SlotMessage, now: int, wall: int) -> None:
        """A message of the slot has come."""
        self.last_seen, self.heard_at = now, wall
        if isinstance(message, Heartbeat) and message.rss_bytes:
            self.rss_bytes, self.cpu_ms = message.rss_bytes, message.cpu_ms
        self.changes[self.index] = None

    def enter(self, state: SlotState) -> None:
        """The slot has registered, or is gone."""
        self.state = state
        self.changes[self.index] = None

    def snapshot(self) -> SlotSnapshot:
        """The slot as it is now."""
        is_registered = self.state is SlotState.REGISTERED
        return SlotSnapshot(self.index, is_registered, self.registration, self.heard_at, self.rss_bytes, self.cpu_ms)

    def describe(self) -> str:
        """The slot with what is known of its process."""
        if self.registration is None:
            return f"slot {self.index}"
        known = self.registration
        executor = f", executor {known.executor_id}" if known.executor_id else ""
        return f"slot {self.index} (host {known.host}, pid {known.pid}{executor})"


class SlotPool:
    """All slots that one attempt asked for."""

    def __init__(self, attempt: int, needed: int, requested_at: int = 0):
        self.attempt = attempt
        self.needed = needed
        self.requested_at = requested_at
        """When the slots were asked for, by the wall clock."""
        self.ended = False
        """The host has said that no process of the attempt is left."""
        self.accepted = False
        """The host has taken the order to start the attempt."""
        self.granted = False
        """The host has said that it has enough slots for the attempt, which others do not hold."""
        self.offered: int | None = None
        """How many slots the host has, if it said so."""
        self.free: int | None = None
        """How many of those no job holds, if the attempt had to wait for them."""
        self.ahead = 0
        """How many jobs get slots before it."""
        self._changes: dict[int, None] = {}
        self._slots = [Slot(index, changes=self._changes) for index in range(needed)]
        self._snapshots = PersistentVector.of(slot.snapshot() for slot in self._slots)
        self._snapshot: SlotPoolSnapshot | None = None

    def __contains__(self, slot_index: int) -> bool:
        return 0 <= slot_index < self.needed

    def __getitem__(self, slot_index: int) -> Slot:
        return self._slots[slot_index]

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def register(self, registration: RegisterSlot, now: int, wall: int) -> None:
        """A slot's process has started."""
        slot = self._slots[registration.slot_index]
        slot.enter(SlotState.REGISTERED)
        slot.registration = registration
        slot.last_seen, slot.heard_at = now, wall

    def queued(self, place: SlotsQueued) -> None:
        """The attempt waits until others give slots back."""
        self.offered, self.free, self.ahead = place.total, place.free, place.ahead

    def live(self) -> list[Slot]:
        """Slots that can be talked to."""
        return [] if self.ended else self.speaking()

    def speaking(self) -> list[Slot]:
        """Slots whose messages may still arrive, even if they were sent before their process ended."""
        return [slot for slot in self._slots if slot.state is SlotState.REGISTERED]

    @property
    def taken(self) -> str:
        """A sentence for when the host has enough slots, but none for this attempt; else nothing."""
        if self.offered is None or self.offered < self.needed:
            return ""
        held = "held by others" if self.free is None else f"{self.offered - self.free} of them held by other jobs"
        return f"There are {self.offered} slots in all, {held}. "

    @property
    def is_queued(self) -> bool:
        """Whether other jobs hold slots that the attempt needs, or come before it."""
        if self.free is None or any(slot.registration for slot in self._slots):
            return False
        return bool(self.ahead) or self.free < self.needed

    @property
    def available(self) -> int:
        """How many of the needed slots there are: what the host has if that is too few, else those that registered.

        If others hold the host's slots, it has enough but they do not register.
        """
        if self.free is not None and not any(slot.registration for slot in self._slots):
            return self.free
        if self.offered is not None and self.offered < self.needed:
            return self.offered
        return sum(slot.registration is not None for slot in self._slots)

    @property
    def all_registered(self) -> bool:
        """Whether every slot is there now."""
        return len(self.live()) == self.needed

    @property
    def all_stopped(self) -> bool:
        """Whether every slot stopped as instructed."""
        return all(slot.state is SlotState.STOPPED for slot in self._slots)

    @property
    def departed(self) -> bool:
        """Whether no process of the attempt is left, as reported by the host or by each slot.

        A lost slot does not count: its process may continue behind a broken connection until it is killed.
        """
        return self.ended or all(slot.state in (SlotState.STOPPED, SlotState.FAILED) for slot in self._slots)

    def peers(self) -> dict[int, Address]:
        """Where each slot listens for its peers."""
        return {slot.index: slot.registration.data_address for slot in self._slots if slot.registration is not None}

    def snapshot(self) -> SlotPoolSnapshot:
        """The slots as they are now; shares with the last snapshot what has not changed."""
        last = self._snapshot
        if (
            last is None
            or self._changes
            or (last.ended, last.offered, last.free, last.ahead) != (self.ended, self.offered, self.free, self.ahead)
        ):
            for index in self._changes:
                self._snapshots = self._snapshots.replaced(index, self._slots[index].snapshot())
            self._changes.clear()
            last = self._snapshot = SlotPoolSnapshot(
                self.attempt,
                self.requested_at,
                self._snapshots,
                self.ended,
                not self.ended and self.is_queued,
                self.offered,
                self.free,
                self.ahead,
            )
        return last
