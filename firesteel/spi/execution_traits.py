"""What holds for the tasks of a job because of how it is executed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BATCH", "EPOCHS", "PIPELINED", "ExecutionTraits"]


@dataclass(frozen=True)
class ExecutionTraits:
    """What operators and connectors may rely on. They ask for what holds, not for the kind of execution."""

    is_long_lived: bool = False
    """A task stays in its slot until the job ends. It takes turns with other tasks and has timers of its own."""
    has_idle_gaps: bool = False
    """A task runs in epochs, each of which ends with a checkpoint. In between it does not run, nor does its reader."""
    commits_in_driver: bool = False
    """What sinks prepare is committed in the process of the JobMaster, perhaps after that of the task has ended."""
    event_time_stands_still: bool = False
    """No watermark is sent before the end of the input."""
    one_key_at_a_time: bool = False
    """A keyed operator gets all records of a key together, and is done with its state and timers after them."""


PIPELINED = ExecutionTraits(is_long_lived=True)
"""In a slot, for as long as the job lives."""
EPOCHS = ExecutionTraits(has_idle_gaps=True, commits_in_driver=True)
"""One Spark task after the other, each up to a checkpoint."""
BATCH = ExecutionTraits(commits_in_driver=True, event_time_stands_still=True, one_key_at_a_time=True)
"""One Spark task."""
