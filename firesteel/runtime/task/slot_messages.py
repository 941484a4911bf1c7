"""Messages of the tasks of a slot to the JobMaster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.runtime.model import messages
from firesteel.runtime.task.source_messages import source_event, split_request, watermark_report

if TYPE_CHECKING:
    from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
    from firesteel.runtime.model.state_handles import TaskStateSnapshot
    from firesteel.runtime.task.task import Task

__all__ = ["JobMasterGateway", "SlotMessages"]

MAX_UNACKED = 16
"""Payloads a sink may have on their way to the client."""


class JobMasterGateway(Protocol):
    """The slot's way to its JobMaster."""

    def send(self, message: messages.SlotMessage) -> None:
        """Sends a message; raises ConnectionError if the JobMaster is gone."""
        ...


class SlotMessages:
    """The part of a slot's TaskServices that sends messages."""

    def __init__(self, gateway: JobMasterGateway, wakeup: Callable[[], None], *, attempt: int, host: str):
        self._gateway = gateway
        self._wakeup = wakeup
        self._attempt = attempt
        self._host = host
        self._sequences: dict[tuple[str, int], int] = {}
        self._unacked: dict[tuple[str, int], int] = {}
        self._awaited: dict[tuple[str, int], int] = {}
        """Checkpoints for which a sink sends without room; until their barrier has gone through it."""

    def request_split(self, task: Task, operator_id: str) -> None:
        """Asks a source's enumerator for a split."""
        self._gateway.send(split_request(self._attempt, task, operator_id, self._host))

    def send_source_event(self, task: Task, operator_id: str, event: Any) -> None:
        """Sends an event to a source's enumerator."""
        self._gateway.send(source_event(self._attempt, task, operator_id, event))

    def report_watermark(self, task: Task, watermark: int) -> None:
        """Reports a source's watermark to its alignment group."""
        self._gateway.send(watermark_report(self._attempt, task, watermark))

    def send_to_client(self, task: Task, channel: str, payload: Any) -> None:
        """Numbers a payload and sends it to the client."""
        stream = (channel, task.descriptor.subtask)
        sequence = self._sequences.get(stream, 0)
        self._sequences[stream] = sequence + 1
        self._unacked[stream] = self._unacked.get(stream, 0) + 1
        self._gateway.send(messages.ClientPayload(self._attempt, *stream, sequence, payload, task.snapshots.last_id))

    def client_has_room(self, task: Task, channel: str) -> bool:
        """Whether the client has taken most of what the sink sent, or a checkpoint waits for more of it."""
        stream = channel, task.descriptor.subtask
        return self._unacked.get(stream, 0) < MAX_UNACKED or task.snapshots.last_id < self._awaited.get(stream, 0)

    def client_acknowledged(self, message: messages.ClientAck) -> None:
        """The client has taken a payload and those before it."""
        stream = (message.channel, message.subtask)
        self._unacked[stream] = self._sequences[stream] - message.sequence - 1

    def send_before_barrier(self, message: messages.SendBeforeBarrier) -> None:
        """A checkpoint waits for what a sink sends before its barrier."""
        self._awaited[message.channel, message.subtask] = message.checkpoint_id

    def await_no_barrier(self, checkpoint_id: int) -> None:
        """A checkpoint was given up: nothing is sent for its sake."""
        self._awaited = {stream: awaited for stream, awaited in self._awaited.items() if awaited > checkpoint_id}

    def acknowledge(self, task: Task, checkpoint_id: int, state: TaskStateSnapshot, metrics: CheckpointMetrics) -> None:
        """Acknowledges a task's part of a checkpoint."""
        self.send_from_any_thread(
            messages.AcknowledgeCheckpoint(
                self._attempt, checkpoint_id, task.descriptor.vertex_id, task.descriptor.subtask, state, metrics
            )
        )

    def decline(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """Declines a checkpoint for a task."""
        self.send_from_any_thread(
            messages.DeclineCheckpoint(
                self._attempt, checkpoint_id, task.descriptor.vertex_id, task.descriptor.subtask, reason
            )
        )

    def await_checkpoint(self, task: Task) -> None:
        """Reports that a task has finished, except for a last checkpoint."""
        self._gateway.send(
            messages.TaskAwaitsCheckpoint(self._attempt, task.descriptor.vertex_id, task.descriptor.subtask)
        )

    def send_from_any_thread(self, message: messages.SlotMessage) -> None:
        """Sends a message, unless the JobMaster is gone, which the mailbox notices by itself."""
        try:
            self._gateway.send(message)
        except ConnectionError:
            pass
        # a task that has finished may have waited for this
        self._wakeup()
