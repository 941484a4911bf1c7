"""The configuration options of the slots of a job: requests, heartbeats and cancellation."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "HEARTBEAT_INTERVAL",
    "HEARTBEAT_TIMEOUT",
    "SLOT_REQUEST_TIMEOUT",
    "TASK_CANCELLATION_INTERVAL",
    "TASK_CANCELLATION_TIMEOUT",
]

_key = ConfigOptions.key

SLOT_REQUEST_TIMEOUT = (
    _key("slot.request.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(5))
    .with_description("Time that a job waits for slots, once it is first in the queue, before it fails.")
)
TASK_CANCELLATION_INTERVAL = (
    _key("task.cancellation.interval")
    .duration_type()
    .default_value(Duration.of_seconds(30))
    .with_deprecated_keys("task.cancellation-interval")
    .with_description("Interval between attempts to cancel a task.")
)
TASK_CANCELLATION_TIMEOUT = (
    _key("task.cancellation.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(180))
    .with_description("Time after which the process of a task that does not cancel is killed; 0 disables this.")
)
HEARTBEAT_INTERVAL = (
    _key("heartbeat.interval")
    .duration_type()
    .default_value(Duration.of_seconds(10))
    .with_description("Heartbeat interval between the JobMaster and each slot.")
)
HEARTBEAT_TIMEOUT = (
    _key("heartbeat.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(50))
    .with_description("Time without a heartbeat after which the other side is considered lost.")
)
