"""Checkpoint request decider: which of the requested checkpoints and savepoints is triggered next."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode

__all__ = ["CheckpointRequest", "CheckpointRequestDecider", "Choice"]

_MAX_QUEUED_REQUESTS = 1000


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A checkpoint request of the timer, the JobMaster or a user."""

    kind: SnapshotKind = SnapshotKind.CHECKPOINT
    request_id: str | None = None
    """The request that gets the outcome; None if there is none."""
    target_directory: str | None = None
    stop: StopMode | None = None
    is_periodic: bool = False
    is_forced: bool = False
    """Does not wait for checkpoints under way."""
    at: int = field(default=0, compare=False)

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Savepoints go before checkpoints, forced ones before others, periodic ones last; then first come."""
        return (not self.kind.is_savepoint, not self.is_forced, self.is_periodic, self.at)


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision of the decider."""

    request: CheckpointRequest | None = None
    retry_at: int | None = None
    """The periodic request was dropped for the sake of the pause; the next one should come then."""


class CheckpointRequestDecider:
    """Flink's CheckpointRequestDecider: executes, postpones or drops requests.

    A periodic request that waits stands for all later ones: unlike Flink's they do not pile up, to be worked off
    without a pause once a slow checkpoint is over.
    """

    def __init__(self, max_concurrent: int, min_pause: int):
        self._max_concurrent = max_concurrent
        self._min_pause = min_pause
        self._queue: list[CheckpointRequest] = []

    def add(self, request: CheckpointRequest) -> bool:
        """Queues a request; False if there are too many."""
        if request.is_periodic and any(queued.is_periodic for queued in self._queue):
            return True
        if len(self._queue) >= _MAX_QUEUED_REQUESTS:
            return False
        self._queue.append(request)
        self._queue.sort(key=lambda queued: queued.rank)
        return True

    def choose(self, pending: int, last_completion: int | None, now: int) -> Choice:
        """Takes the request that may run, given how many checkpoints are under way and when the last one ended."""
        if not self._queue:
            return Choice()
        first = self._queue[0]
        if not first.is_forced:
            if pending >= self._max_concurrent:
                return Choice()
            if first.is_periodic and last_completion is not None and now < last_completion + self._min_pause:
                del self._queue[0]
                return Choice(retry_at=last_completion + self._min_pause)
        del self._queue[0]
        return Choice(first)

    def has_waiting(self, *, request_id: str | None) -> bool:
        """Whether a non-periodic request is waiting."""
        return any(not queued.is_periodic and queued.request_id == request_id for queued in self._queue)

    def clear(self) -> list[CheckpointRequest]:
        """Takes all requests that wait."""
        requests, self._queue = self._queue, []
        return requests

    def __len__(self) -> int:
        return len(self._queue)
