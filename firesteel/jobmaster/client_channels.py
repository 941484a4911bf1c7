"""Puts what sinks send to the client in order, once each."""

from __future__ import annotations

from collections.abc import Iterator

from firesteel.runtime.messages import ClientAck, ClientPayload

__all__ = ["PRINT_CHANNEL", "ClientChannels"]

PRINT_CHANNEL = "print"
"""Lines for the client's own terminal."""


class _Sequence:
    __slots__ = ("acknowledged", "early", "expected", "slot_index")

    def __init__(self, slot_index: int) -> None:
        self.slot_index = slot_index
        self.expected = 0
        self.acknowledged = -1
        self.early: dict[int, ClientPayload] = {}


class ClientChannels:
    """The payloads of one attempt, per channel and subtask.

    Numbers start at 0 in each attempt: without checkpoints a restarted job sends everything again. With checkpoints
    what is collected is held until a checkpoint contains it, and forgotten with its attempt, so the client gets
    each record exactly once. What is printed is printed at once.
    """

    def __init__(self, *, hold: bool = False) -> None:
        self._sequences: dict[tuple[str, int], _Sequence] = {}
        self._hold = hold
        self._held: list[ClientPayload] = []

    def accept(self, slot_index: int, payload: ClientPayload) -> Iterator[ClientAck | ClientPayload]:
        """Takes what a slot sent: yields what the slot is to be told, and what is to be delivered now."""
        if self.is_duplicate(payload):
            yield _acknowledgement(payload)
        for ready in self.receive(slot_index, payload):
            if self._is_held(ready):
                self._keep(ready)
                yield _acknowledgement(ready)
            else:
                yield ready

    def _is_held(self, payload: ClientPayload) -> bool:
        return self._hold and payload.channel.partition("#")[0] != PRINT_CHANNEL

    def _keep(self, payload: ClientPayload) -> None:
        """A payload that waits for a checkpoint counts as taken by the client: its slot may send more."""
        self._held.append(payload)
        sequence = self._sequences[payload.channel, payload.subtask]
        sequence.acknowledged = max(sequence.acknowledged, payload.sequence)

    def release(self, checkpoint_id: int) -> list[ClientPayload]:
        """What a completed checkpoint contains, in order."""
        ready = [payload for payload in self._held if payload.epoch < checkpoint_id]
        self._held = [payload for payload in self._held if payload.epoch >= checkpoint_id]
        return ready

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

    def consumed(self, channel: str, subtask: int, number: int) -> int | None:
        """The client took a payload: the slot to acknowledge it to, None if that was done before."""
        sequence = self._sequences.get((channel, subtask))
        if sequence is None or not sequence.acknowledged < number < sequence.expected:
            return None
        sequence.acknowledged = number
        return sequence.slot_index


def _acknowledgement(payload: ClientPayload) -> ClientAck:
    return ClientAck(payload.channel, payload.subtask, payload.sequence)
