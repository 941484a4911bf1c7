"""Result channels from sinks to the client: ordering, deduplication and back pressure for slow clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass

from firesteel.jobmaster.model.events import ClientConsumed
from firesteel.jobmaster.model.instructions import DeliverToClient, SendToSlot
from firesteel.runtime.model.messages import ClientAck, ClientPayload, SendBeforeBarrier

__all__ = ["PRINT_CHANNEL", "ClientChannels", "ClientLimits", "is_printed"]

PRINT_CHANNEL = "print"
"""Lines for the client's own terminal."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How many bytes of a channel are there at once before its slots have to wait."""

    unread: int = 64 << 20
    """What the client could read, but has not."""
    total: int = 1 << 30
    """That, and what waits for a checkpoint."""


@dataclass(slots=True)
class _Volume:
    """Bytes of a channel."""

    held: int = 0
    unread: int = 0


class _Sequence:
    """The payloads of one subtask."""

    __slots__ = ("acknowledged", "early", "expected", "slot_index", "told_to_send", "waiting")

    def __init__(self, slot_index: int) -> None:
        self.slot_index = slot_index
        self.expected = 0
        self.acknowledged = -1
        self.early: dict[int, ClientPayload] = {}
        self.waiting: deque[ClientPayload] = deque()
        """Payloads that are held and not acknowledged yet."""
        self.told_to_send = 0
        """The checkpoint before whose barrier the slot sends without acknowledgements."""


class ClientChannels:
    """The payloads of a job, per channel and subtask.

    Numbers start at 0 in each attempt: without checkpoints a restarted job sends everything again. With checkpoints
    what is collected is held until a checkpoint contains it, and forgotten with its attempt, so the client gets
    each record exactly once. What is printed is printed at once.

    A slot sends a few payloads that are not acknowledged, then it stops. Without checkpoints a payload is acknowledged
    when the client has taken it. One that is held is acknowledged at once, as long as the channel is below its limits;
    after that not before the client has read.

    A barrier behind records comes through only when the sink has sent them. So a slot that has stopped is allowed to
    send what comes before the barrier of a checkpoint under way: when that has waited for the client for a while, or at
    once if the client has nothing to read.
    """

    def __init__(self, *, hold: bool = False, limits: ClientLimits | None = None) -> None:
        self._hold = hold
        self._limits = limits or ClientLimits()
        self._sequences: dict[tuple[str, int], _Sequence] = {}
        self._held: list[ClientPayload] = []
        self._volumes: dict[str, _Volume] = {}

    def begin_attempt(self) -> None:
        """Forgets what is held. What the client has not read of earlier attempts counts on."""
        self._sequences.clear()
        self._held.clear()
        for volume in self._volumes.values():
            volume.held = 0

    def accept(self, slot_index: int, payload: ClientPayload) -> Iterator[SendToSlot | DeliverToClient]:
        """Takes what a slot sent: yields acknowledgements, and what is to be delivered now."""
        if self.is_duplicate(payload):
            yield _acknowledgement(slot_index, payload)
        for ready in self.receive(slot_index, payload):
            volume = self._volume(ready.channel)
            if not self._is_held(ready):
                volume.unread += _size(ready)
                yield _delivery(ready)
                continue
            self._held.append(ready)
            volume.held += _size(ready)
            sequence = self._sequences[ready.channel, ready.subtask]
            if self._has_room(volume) and not sequence.waiting:
                sequence.acknowledged = ready.sequence
                yield _acknowledgement(slot_index, ready)
            else:
                sequence.waiting.append(ready)

    def _is_held(self, payload: ClientPayload) -> bool:
        return self._hold and not is_printed(payload.channel)

    def release(self, checkpoint_id: int) -> list[DeliverToClient]:
        """What a completed checkpoint contains, in order."""
        ready = [payload for payload in self._held if payload.last_checkpoint_id < checkpoint_id]
        self._held = [payload for payload in self._held if payload.last_checkpoint_id >= checkpoint_id]
        for payload in ready:
            volume = self._volume(payload.channel)
            volume.held -= _size(payload)
            volume.unread += _size(payload)
        return [_delivery(payload) for payload in ready]

    def receive(self, slot_index: int, payload: ClientPayload) -> list[ClientPayload]:
        """What can be delivered now, in order; nothing for a duplicate or one that came too early."""
        key = payload.channel, payload.subtask
        sequence = self._sequences.get(key)
        if sequence is None:
            sequence = self._sequences[key] = _Sequence(slot_index)
        if payload.sequence < sequence.expected or payload.sequence in sequence.early:
            return []
        sequence.early[payload.sequence] = payload
        ready = []
        while (following := sequence.early.pop(sequence.expected, None)) is not None:
            ready.append(following)
            sequence.expected += 1
        return ready

    def is_duplicate(self, payload: ClientPayload) -> bool:
        """Whether the client took the payload already, so that only the acknowledgement was lost."""
        sequence = self._sequences.get((payload.channel, payload.subtask))
        return sequence is not None and payload.sequence <= sequence.acknowledged

    def consumed(self, event: ClientConsumed, *, is_current: bool = True) -> list[SendToSlot]:
        """The client took a payload, perhaps of an earlier attempt; returns the message for its slot, if any.

        See `answer` for others that may continue now.
        """
        channel, subtask, number = event.channel, event.subtask, event.sequence
        volume = self._volume(channel)
        volume.unread = max(0, volume.unread - event.size)
        sequence = self._sequences.get((channel, subtask)) if is_current else None
        if sequence is None or not sequence.acknowledged < number < sequence.expected:
            return []
        sequence.acknowledged = number
        while sequence.waiting and sequence.waiting[0].sequence <= number:
            sequence.waiting.popleft()
        return [SendToSlot(event.attempt, sequence.slot_index, ClientAck(channel, subtask, number))]

    @property
    def has_waiting(self) -> bool:
        """Whether a slot waits for an acknowledgement that it would have got at once below the limits."""
        return any(sequence.waiting for sequence in self._sequences.values())

    def answer(
        self, under_way: Sequence[tuple[int, int]], now: int, patience: int
    ) -> tuple[list[SendToSlot], int | None]:
        """The messages for waiting slots, and the time of the next call.

        ``under_way`` are the checkpoints under way and when they were triggered.
        """
        answers: list[SendToSlot] = []
        due: int | None = None
        for sequence in self._sequences.values():
            if not sequence.waiting:
                continue
            last = sequence.waiting[-1]
            volume = self._volume(last.channel)
            if self._has_room(volume):
                sequence.waiting.clear()
                sequence.acknowledged = last.sequence
                answers.append(_acknowledgement(sequence.slot_index, last))
                continue
            is_client_slow = volume.unread >= self._limits.unread
            for checkpoint_id, triggered_at in under_way:
                if last.last_checkpoint_id >= checkpoint_id or sequence.told_to_send >= checkpoint_id:
                    continue
                at = triggered_at + patience if is_client_slow else now
                if at <= now:
                    sequence.told_to_send = checkpoint_id
                    told = SendBeforeBarrier(last.channel, last.subtask, checkpoint_id)
                    answers.append(SendToSlot(last.attempt, sequence.slot_index, told))
                elif due is None or at < due:
                    due = at
        return answers, due

    def _has_room(self, volume: _Volume) -> bool:
        return volume.unread < self._limits.unread and volume.held + volume.unread < self._limits.total

    def _volume(self, channel: str) -> _Volume:
        return self._volumes.setdefault(_name(channel), _Volume())


def is_printed(channel: str) -> bool:
    """Whether what comes on a channel goes to the client's terminal."""
    return _name(channel) == PRINT_CHANNEL


def _name(channel: str) -> str:
    """The channel's name without the operator that writes to it."""
    return channel.partition("#")[0]


def _size(payload: ClientPayload) -> int:
    return len(payload.payload) if isinstance(payload.payload, Sized) else 0


def _acknowledgement(slot_index: int, payload: ClientPayload) -> SendToSlot:
    return SendToSlot(payload.attempt, slot_index, ClientAck(payload.channel, payload.subtask, payload.sequence))


def _delivery(payload: ClientPayload) -> DeliverToClient:
    return DeliverToClient(payload.channel, payload.payload, payload.attempt, payload.subtask, payload.sequence)
