"""The configuration options of the slots of a job: requests, heartbeats, cancellation and logs."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "HEARTBEAT_INTERVAL",
    "HEARTBEAT_TIMEOUT",
    "LOG_LEVEL",
    "SLOT_REQUEST_TIMEOUT",
    "TASK_CANCELLATION_INTERVAL",
    "TASK_CANCELLATION_TIMEOUT",
]

_key = ConfigOptions.key

SLOT_REQUEST_TIMEOUT = (
    _key("slot.request.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(5))
    .with_description("How long a job waits for enough slots before it fails, once it is first in the queue for slots.")
)
TASK_CANCELLATION_INTERVAL = (
    _key("task.cancellation.interval")
    .duration_type()
    .default_value(Duration.of_seconds(30))
    .with_deprecated_keys("task.cancellation-interval")
    .with_description("How long after an attempt to cancel a task the next one is made.")
)
TASK_CANCELLATION_TIMEOUT = (
    _key("task.cancellation.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(180))
    .with_description("How long a task may take to cancel before its process is ended; 0 waits for ever.")
)
HEARTBEAT_INTERVAL = (
    _key("heartbeat.interval")
    .duration_type()
    .default_value(Duration.of_seconds(10))
    .with_description("How often the JobMaster and each slot tell each other that they are alive.")
)
HEARTBEAT_TIMEOUT = (
    _key("heartbeat.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(50))
    .with_description("How long without a heartbeat until the other side counts as lost.")
)
LOG_LEVEL = (
    _key("env.log.level")
    .choice_type("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "OFF")
    .default_value("INFO")
    .with_description("From which level on log records of user functions are shown.")
)
