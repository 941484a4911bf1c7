"""Task checkpoints: how a task takes part in checkpoints, from the trigger to the notification of their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from firesteel.runtime.model.checkpoint_options import StopMode
from firesteel.runtime.task.barriers import BarrierHandler, InFlightInput
from firesteel.runtime.task.task_snapshots import TaskSnapshots

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator
    from firesteel.runtime.checkpoint.files import SnapshotFiles
    from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
    from firesteel.runtime.model.elements import CheckpointBarrier
    from firesteel.runtime.model.state_handles import TaskStateSnapshot
    from firesteel.runtime.task.task import Task
    from firesteel.runtime.task.task_services import TaskServices

__all__ = ["TaskCheckpoints"]


class TaskCheckpoints:
    """The checkpoints of one task. Is the listener of its barriers, and the services of its snapshots."""

    def __init__(self, task: Task, services: TaskServices):
        self._task = task
        self._services = services
        inputs = task.descriptor.inputs
        self.snapshots = TaskSnapshots(task.chain, task.outputs, inputs, self)
        self.barriers: BarrierHandler | None = None
        """None if the task has no input."""
        if task.gate is not None:
            self.barriers = BarrierHandler(task.gate, self, unaligned=all(entry.unaligned for entry in inputs))
        self.takes_snapshot = False
        """True while the synchronous part of a snapshot is on the stack."""
        self._last_checkpoint: int | None = None
        """The first checkpoint after the end, or the savepoint to stop with: the task ends when it is complete."""
        self._drain_barrier: CheckpointBarrier | None = None
        """Of a savepoint to stop with that waits for the operators to finish."""

    # -- what the coordinator asks ------------------------------------------------------------------

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """The coordinator's word to a source, or to a task whose producers are all gone."""
        task = self._task
        task.running = True
        try:
            if (
                barrier.options.stop is StopMode.DRAIN
                and task.source is not None
                and not task.ended
                and not task.end_of_data(stopping=True)
            ):
                self._drain_barrier = barrier
            elif self.barriers is not None:
                self.barriers.trigger(barrier)
            else:
                self.take_snapshot(barrier, None, 0)
        finally:
            task.running = False

    def operators_finished(self) -> None:
        """Takes the snapshot of a savepoint to stop with that has waited for the operators to finish."""
        if self._drain_barrier is not None:
            barrier, self._drain_barrier = self._drain_barrier, None
            self.take_snapshot(barrier, None, 0)

    def notify_complete(self, checkpoint_id: int) -> None:
        """Operators commit; a task that waited for this checkpoint finishes."""
        task = self._task
        task.running = True
        try:
            for chained in task.chain:
                task.at_work = chained
                chained.notify_checkpoint_complete(checkpoint_id)
            task.at_work = None
            if self._last_checkpoint is not None and checkpoint_id >= self._last_checkpoint:
                task.finish()
        finally:
            task.running = False

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint is aborted; a job that was to stop with it continues."""
        task = self._task
        if task.suspended and checkpoint_id == self._last_checkpoint:
            task.suspended = False
            self._last_checkpoint = None
        if self._drain_barrier is not None and checkpoint_id == self._drain_barrier.checkpoint_id:
            self._drain_barrier = None
        self.snapshots.abort(checkpoint_id)
        if self.barriers is not None:
            self.barriers.aborted(checkpoint_id)
        for chained in task.chain:
            task.at_work = chained
            chained.notify_checkpoint_aborted(checkpoint_id)
        task.at_work = None

    # -- BarrierListener ----------------------------------------------------------------------------

    def take_snapshot(self, barrier: CheckpointBarrier, in_flight: InFlightInput | None, alignment_ms: int) -> None:
        """Takes this task's part of a checkpoint."""
        task = self._task
        task.reports.checkpoint_begins(self.processing_time() - barrier.timestamp, alignment_ms)
        if barrier.options.stop is StopMode.SUSPEND:
            task.suspended = True
            self._last_checkpoint = barrier.checkpoint_id
        elif task.ended and self._last_checkpoint is None:
            self._last_checkpoint = barrier.checkpoint_id
        self.takes_snapshot = True
        try:
            self.snapshots.take(barrier, in_flight, alignment_ms, finished=task.ended)
        finally:
            self.takes_snapshot = False

    def is_urgent(self) -> None:
        """An unaligned barrier has arrived, which waits neither for its turn nor for room in the outputs."""
        self._services.act_soon(self._task, self._process_urgent)

    def _process_urgent(self) -> None:
        assert self.barriers is not None
        self._task.running = True
        try:
            self.barriers.process_urgent()
        finally:
            self._task.running = False

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._services.processing_time()

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self._services.monotonic_ms()

    def call_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back between batches, after a delay in milliseconds, until the task is finished."""
        self._services.schedule_after(self._task, delay, callback)

    def decline(self, checkpoint_id: int, reason: str) -> None:
        """Declines a checkpoint for this task."""
        self._services.decline(self._task, checkpoint_id, reason)

    # -- SnapshotServices, beside those of the listener ---------------------------------------------

    @property
    def at_work(self) -> RunningOperator | None:
        """The operator whose own code runs."""
        return self._task.at_work

    @at_work.setter
    def at_work(self, chained: RunningOperator | None) -> None:
        self._task.at_work = chained

    @property
    def watermark(self) -> int:
        """The event time the task has reached."""
        return self._task.watermark

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work in a thread beside the mailbox."""
        self._services.run_async(work)

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where this task's state goes."""
        return self._services.create_files(barrier)

    def acknowledge(self, checkpoint_id: int, state: TaskStateSnapshot, metrics: CheckpointMetrics) -> None:
        """Acknowledges this task's part of a checkpoint."""
        self._services.acknowledge(self._task, checkpoint_id, state, metrics)
