"""Result channels of collect sinks for remote clients, kept until the client acknowledges them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from firesteel.common.errors import FiresteelError
from firesteel.jobmaster.model.events import ClientConsumed
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process.concurrency import SYSTEM, Concurrency

__all__ = ["ResultChannels", "Results", "ResultsLostError"]

MAX_BYTES = 4 * 1024 * 1024
"""How much is sent at once: not more than this and one payload."""


class ResultsLostError(FiresteelError):
    """A reader asks for results that were acknowledged before, or never sent."""

    status = 409


@dataclass(frozen=True)
class Results:
    """Payloads of a channel in order; the first has the number ``first``, the next the following one."""

    first: int
    payloads: tuple[bytes, ...]
    is_end: bool = False
    """Nothing follows."""


@dataclass
class _Channel:
    lock: threading.Lock
    unacknowledged: deque[tuple[ClientConsumed, bytes]]
    first: int = 0
    """The number of the first payload that is not acknowledged."""


class ResultChannels:
    """The channels of one job.

    Payloads are numbered from 0. A reader sends how many it has with every request; those are released, and the
    slot may send more. What it does not have yet is sent again: a lost answer costs nothing, and no
    record comes twice.
    """

    def __init__(self, runner: JobMasterRunner, concurrency: Concurrency = SYSTEM):
        self._runner = runner
        self._monotonic = concurrency.monotonic
        self._lock = threading.Lock()
        self._channels: dict[str, _Channel] = {}

    def fetch(self, name: str, received: int, timeout_s: float) -> Results:
        """What comes after the first ``received`` payloads; waits for it, but not longer than the timeout."""
        with self._lock:
            channel = self._channels.setdefault(name, _Channel(threading.Lock(), deque()))
        deadline = self._monotonic() + timeout_s
        if not channel.lock.acquire(timeout=timeout_s):
            return Results(received, ())  # an earlier request of the same reader has not ended yet
        try:
            self._acknowledge(channel, name, received)
            is_end = self._fill(channel, name, deadline)
            return Results(channel.first, tuple(payload for _, payload in channel.unacknowledged), is_end)
        finally:
            channel.lock.release()

    def _acknowledge(self, channel: _Channel, name: str, received: int) -> None:
        newly = received - channel.first
        if not 0 <= newly <= len(channel.unacknowledged):
            raise ResultsLostError(
                f"Channel {name} is at payload {channel.first}, but the request has received={received}.",
                hint="Only one reader is supported. If another JobManager has taken over, results in transit are "
                "lost: run the job again.",
            )
        for _ in range(newly):
            self._runner.acknowledge(channel.unacknowledged.popleft()[0])
        channel.first = received

    def _fill(self, channel: _Channel, name: str, deadline: float) -> bool:
        size = sum(len(payload) for _, payload in channel.unacknowledged)
        while size < MAX_BYTES:
            wait = 0.0 if channel.unacknowledged else max(0.0, deadline - self._monotonic())
            try:
                taken = self._runner.take_results(name, wait)
            except EOFError:
                return True
            if taken is None:
                return False
            channel.unacknowledged.append(taken)
            size += len(taken[1])
        return False
