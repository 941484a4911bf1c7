"""Messages of a source task to its source coordinator, in every execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.runtime.model import messages

if TYPE_CHECKING:
    from firesteel.runtime.task.task import Task

__all__ = ["source_event", "split_request", "watermark_report"]


def split_request(attempt: int, task: Task, operator_id: str, host: str | None = None) -> messages.RequestSplit:
    """Asks a source's enumerator for a split."""
    descriptor = task.descriptor
    return messages.RequestSplit(attempt, descriptor.vertex_id, operator_id, descriptor.subtask, host)


def source_event(attempt: int, task: Task, operator_id: str, event: Any) -> messages.SourceEvent:
    """Sends an event to a source's enumerator."""
    descriptor = task.descriptor
    return messages.SourceEvent(attempt, descriptor.vertex_id, operator_id, descriptor.subtask, event)


def watermark_report(attempt: int, task: Task, watermark: int) -> messages.ReportWatermark:
    """Reports a source's watermark to its alignment group."""
    descriptor, head = task.descriptor, task.head.descriptor
    alignment = head.spec.get_watermark_strategy().alignment
    return messages.ReportWatermark(
        attempt,
        descriptor.vertex_id,
        head.operator_id,
        descriptor.subtask,
        alignment.watermark_group,
        watermark,
        alignment.max_allowed_watermark_drift,
    )
