"""Buffer of the results of a job's collect sinks, until the client fetches them."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

from firesteel.jobmaster.model.events import ClientConsumed
from firesteel.jobmaster.model.instructions import DeliverToClient
from firesteel.jobmaster.shell.result_buffer import ResultBuffer, StoredPayload
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.runtime.model.messages import ClientPayload

__all__ = ["ClientResults"]

_END = object()


class ClientResults:
    """A queue for each channel. Methods may be called from any thread."""

    def __init__(self, concurrency: Concurrency = SYSTEM, buffer: ResultBuffer | None = None) -> None:
        self._concurrency = concurrency
        self._buffer = buffer or ResultBuffer()
        self._lock = threading.Lock()
        self._channels: dict[str, queue.Queue[Any]] = {}
        self._dropped: set[str] = set()
        self._ended = False

    def store(self, payload: ClientPayload) -> ClientPayload:
        """Takes what a slot has sent: the same with a StoredPayload, which the JobMaster holds or has delivered."""
        return replace(payload, payload=self._buffer.keep(payload.attempt, payload.payload))

    def begin_attempt(self, attempt: int) -> None:
        """What is stored for earlier attempts and was not delivered is not needed any more."""
        self._buffer.forget_before(attempt)

    def deliver(self, delivery: DeliverToClient) -> None:
        """The client may take a payload."""
        stored: StoredPayload = delivery.payload
        channel = delivery.channel.partition("#")[0]
        if channel in self._dropped:
            self._buffer.discard(stored)
            return
        self._buffer.deliver(stored)
        consumed = ClientConsumed(delivery.attempt, delivery.channel, delivery.subtask, delivery.sequence, len(stored))
        self._channel(channel).put((consumed, stored))

    def take(self, channel: str, timeout_s: float | None = None) -> tuple[ClientConsumed, bytes] | None:
        """The next payload of a channel, and the event for the JobMaster once the client has it.

        None if nothing came in time, or nothing will come any more.
        """
        incoming = self._channel(channel)
        try:
            item = incoming.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if item is _END:
            incoming.put(_END)
            return None
        consumed, stored = item
        return consumed, self._buffer.take(stored)

    def drop(self, channel: str) -> None:
        """A channel is no longer read."""
        self._dropped.add(channel)
        incoming = self._channel(channel)
        with suppress(queue.Empty):
            while True:
                item = incoming.get_nowait()
                if item is not _END:
                    self._buffer.discard(item[1])
        if self._ended:
            incoming.put(_END)

    def is_at_end(self, channel: str) -> bool:
        """Whether all of a channel has been taken, and the job is over."""
        incoming = self._channel(channel)
        return self._ended and incoming.qsize() == 1

    def close(self) -> None:
        """The job is over: channels end with what has been delivered."""
        with self._lock:  # a client may request a channel that nothing was sent to
            self._ended = True
            for incoming in self._channels.values():
                incoming.put(_END)
        self._buffer.forget_before(1 << 62)

    def _channel(self, channel: str) -> queue.Queue[Any]:
        with self._lock:
            incoming = self._channels.get(channel)
            if incoming is None:
                incoming = self._channels[channel] = self._concurrency.queue()
                if self._ended:
                    incoming.put(_END)
            return incoming
