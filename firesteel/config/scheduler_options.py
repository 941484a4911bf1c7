"""The configuration options of the schedulers, and of the slots of a job: requests, heartbeats and cancellation."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "HEARTBEAT_INTERVAL",
    "HEARTBEAT_TIMEOUT",
    "RESCALE_MAX_CHECKPOINT_FAILURES",
    "RESCALE_MAX_DELAY",
    "RESCALE_MIN_INCREASE",
    "RESCALING_COOLDOWN",
    "RESCALING_STABILIZATION_TIMEOUT",
    "SCHEDULER",
    "SLOT_REQUEST_TIMEOUT",
    "SUBMISSION_RESOURCE_WAIT_TIMEOUT",
    "SUBMISSION_STABILIZATION_TIMEOUT",
    "TASK_CANCELLATION_INTERVAL",
    "TASK_CANCELLATION_TIMEOUT",
]

_key = ConfigOptions.key

SCHEDULER = (
    _key("jobmanager.scheduler")
    .choice_type("Default", "Adaptive")
    .default_value("Default")
    .with_description(
        "Default: a job waits for all its slots. Adaptive: it runs with the slots that are available and uses more "
        "when they are added. Batch jobs do not use the adaptive scheduler; they start with one slot."
    )
)
SUBMISSION_RESOURCE_WAIT_TIMEOUT = (
    _key("jobmanager.adaptive-scheduler.submission.resource-wait-timeout")
    .duration_type()
    .default_value(Duration.of_minutes(5))
    .with_deprecated_keys("jobmanager.adaptive-scheduler.resource-wait-timeout")
    .with_description(
        "Time that a job waits, at its start and after a failure, for all requested slots before it runs with fewer. "
        "If there are not enough for parallelism 1, the job fails."
    )
)
SUBMISSION_STABILIZATION_TIMEOUT = (
    _key("jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(10))
    .with_deprecated_keys("jobmanager.adaptive-scheduler.resource-stabilization-timeout")
    .with_description(
        "Time that a job which could run with fewer slots than requested waits for more before it starts or restarts."
    )
)
RESCALING_COOLDOWN = (
    _key("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling")
    .duration_type()
    .default_value(Duration.of_seconds(30))
    .with_deprecated_keys("jobmanager.adaptive-scheduler.scaling-interval.min")
    .with_description("Minimum time that a job runs before it is rescaled to use more slots.")
)
RESCALING_STABILIZATION_TIMEOUT = (
    _key("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(60))
    .with_description(
        "Time that a running job which could use more slots, but fewer than requested, waits for the rest."
    )
)
RESCALE_MAX_CHECKPOINT_FAILURES = (
    _key("jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures")
    .int_type()
    .default_value(2)
    .with_description("Number of failed checkpoints after which a job is rescaled from an older checkpoint.")
)
RESCALE_MAX_DELAY = (
    _key("jobmanager.adaptive-scheduler.rescale-trigger.max-delay")
    .duration_type()
    .no_default_value()
    .with_description(
        "Maximum time to wait for a checkpoint before a job is rescaled from an older one. Default: the number of "
        "tolerated checkpoint failures plus one, times the checkpoint interval."
    )
)
RESCALE_MIN_INCREASE = (
    _key("jobmanager.adaptive-scheduler.min-parallelism-increase")
    .int_type()
    .default_value(1)
    .with_description("For compatibility with Flink: no longer used, as in Flink 2.")
)
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
