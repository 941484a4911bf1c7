"""The steps at which a sink is killed."""

from __future__ import annotations

from enum import Enum

from firesteel.testing.conformance.sink_attempt import SinkAttempt
from firesteel.testing.snapshots import HarnessSnapshot

__all__ = ["KillPoint"]


class KillPoint(Enum):
    """How far an attempt comes with its second checkpoint."""

    WRITING = "while writing"
    PREPARED = "before the checkpoint was complete"
    COMPLETE = "before it was told that the checkpoint is complete"
    BEFORE_COMMIT = "right before a commit"
    AFTER_COMMIT = "right after a commit"
    HALF_COMMITTED = "when one of two writers had committed"
    WRITING_ON = "while writing on after the checkpoint"

    def reach(self, attempt: SinkAttempt, first: HarnessSnapshot) -> HarnessSnapshot:
        """Lets the attempt come so far; returns the checkpoint that counts then."""
        if self is KillPoint.WRITING:
            return first
        second = attempt.snapshot(2)
        if self is KillPoint.PREPARED:
            return first
        if self is KillPoint.BEFORE_COMMIT:
            attempt.complete_with_fault(2, "sink.commit")
        elif self is KillPoint.AFTER_COMMIT:
            attempt.complete_with_fault(2, "sink.committed")
        elif self is KillPoint.HALF_COMMITTED:
            attempt.complete(2, 1)
        elif self is KillPoint.WRITING_ON:
            attempt.complete(2)
        return second
