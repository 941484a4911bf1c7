"""Services that a slot, or a stage task, provides to the tasks it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from firesteel.process.event_loop import EventLoop
    from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
    from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
    from firesteel.runtime.model.elements import CheckpointBarrier
    from firesteel.runtime.model.state_handles import TaskStateSnapshot
    from firesteel.runtime.task.task import Task

__all__ = ["TaskServices"]


class TaskServices(Protocol):
    """What a slot gives to its tasks."""

    @property
    def event_loop(self) -> EventLoop:
        """Where async functions run."""
        ...

    def wakeup(self) -> None:
        """Ends a wait of the slot's thread; may be called from any thread."""
        ...

    def wait_for_wakeup(self) -> None:
        """Waits for a wakeup; only where tasks do not take turns."""
        ...

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that is never set."""
        ...

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back while the task is not running, once the wall clock reaches the timestamp."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...

    def schedule_after(self, task: Task, delay: int, callback: Callable[[], None]) -> None:
        """Calls back while the task is not running, after a delay in milliseconds."""
        ...

    def wait_for_room(self, task: Task) -> None:
        """Runs the network and other tasks until the task's outputs have room."""
        ...

    def request_split(self, task: Task, operator_id: str) -> None:
        """Asks a source's enumerator for a split."""
        ...

    def send_source_event(self, task: Task, operator_id: str, event: Any) -> None:
        """Sends an event to a source's enumerator."""
        ...

    def report_watermark(self, task: Task, watermark: int) -> None:
        """Reports a source's watermark to its alignment group."""
        ...

    def send_to_client(self, task: Task, channel: str, payload: Any) -> None:
        """Hands a payload to the client."""
        ...

    def client_has_room(self, task: Task, channel: str) -> bool:
        """Whether the client has taken most of what it was sent."""
        ...

    def act_soon(self, task: Task, action: Callable[[], None]) -> None:
        """Calls a task before any task continues with records, but not in the middle of a batch."""
        ...

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work in a thread beside the mailbox."""
        ...

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where the state of a task goes."""
        ...

    def open_state_files(self) -> StateFileReader:
        """Reads state files of earlier checkpoints; to be closed."""
        ...

    def acknowledge(self, task: Task, checkpoint_id: int, state: TaskStateSnapshot, metrics: CheckpointMetrics) -> None:
        """Acknowledges a task's part of a checkpoint."""
        ...

    def decline(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """Declines a checkpoint for a task."""
        ...

    def await_checkpoint(self, task: Task) -> None:
        """Reports that a task has finished, except for a last checkpoint."""
        ...
