"""Checkpoint failure reasons, and the failure manager that counts how many in a row a job tolerates."""

from __future__ import annotations

from enum import Enum

from firesteel.jobmaster.checkpoints.settings import UNLIMITED

__all__ = ["CheckpointFailureManager", "CheckpointFailureReason"]


class CheckpointFailureReason(Enum):
    """Flink's reasons, as far as they can occur here."""

    PERIODIC_SCHEDULER_SHUTDOWN = "Periodic checkpoints have been switched off."
    TOO_MANY_CHECKPOINT_REQUESTS = "Too many checkpoint requests are waiting."
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The pause after the last checkpoint is not over."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are running."
    IO_EXCEPTION = "The checkpoint storage failed."
    CHECKPOINT_ASYNC_EXCEPTION = "A task could not write its state."
    CHECKPOINT_SUBSUMED = "A later checkpoint has completed."
    CHECKPOINT_EXPIRED = "The checkpoint took longer than execution.checkpointing.timeout."
    CHECKPOINT_DECLINED = "A task declined the checkpoint."
    CHECKPOINT_DECLINED_TASK_NOT_READY = "A task was not ready for the checkpoint."
    CHECKPOINT_DECLINED_TASK_CLOSING = "A task ended before it could take part."
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "A task found that the checkpoint had been aborted."
    CHECKPOINT_DECLINED_SUBSUMED = "A task received the barrier of a later checkpoint first."
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "A task's input ended while it waited for barriers."
    CHECKPOINT_COORDINATOR_SUSPEND = "Checkpoints have been suspended."
    CHECKPOINT_COORDINATOR_SHUTDOWN = "The job has ended."
    TRIGGER_CHECKPOINT_FAILURE = "The checkpoint could not be triggered."
    FINALIZE_CHECKPOINT_FAILURE = "The checkpoint could not be completed."

    @property
    def counts(self) -> bool:
        """Whether the failure is one of those of which only some in a row are tolerated."""
        return self in _COUNTED


_COUNTED = frozenset(
    {
        CheckpointFailureReason.IO_EXCEPTION,
        CheckpointFailureReason.CHECKPOINT_ASYNC_EXCEPTION,
        CheckpointFailureReason.CHECKPOINT_DECLINED,
        CheckpointFailureReason.CHECKPOINT_EXPIRED,
        CheckpointFailureReason.FINALIZE_CHECKPOINT_FAILURE,
    }
)


class CheckpointFailureManager:
    """Counts failures since the last checkpoint that completed.

    >>> manager = CheckpointFailureManager(tolerable=1)
    >>> manager.failed(1, CheckpointFailureReason.CHECKPOINT_EXPIRED)
    False
    >>> manager.failed(2, CheckpointFailureReason.CHECKPOINT_SUBSUMED)
    False
    >>> manager.failed(3, CheckpointFailureReason.CHECKPOINT_DECLINED)
    True
    """

    def __init__(self, tolerable: int):
        self.tolerable = tolerable
        self.failures = 0
        self._last_succeeded = -1

    def failed(self, checkpoint_id: int, reason: CheckpointFailureReason) -> bool:
        """Takes a failure into account; True if it is one too many."""
        if self.tolerable >= UNLIMITED or not reason.counts or checkpoint_id <= self._last_succeeded:
            return False
        self.failures += 1
        if self.failures <= self.tolerable:
            return False
        self.failures = 0
        return True

    def succeeded(self, checkpoint_id: int) -> None:
        """Forgets the failures, unless it is old news."""
        if checkpoint_id > self._last_succeeded:
            self._last_succeeded = checkpoint_id
            self.failures = 0
