"""The configuration options of the schedulers."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "RESCALE_MAX_CHECKPOINT_FAILURES",
    "RESCALE_MAX_DELAY",
    "RESCALE_MIN_INCREASE",
    "RESCALING_COOLDOWN",
    "RESCALING_STABILIZATION_TIMEOUT",
    "SCHEDULER",
    "SUBMISSION_RESOURCE_WAIT_TIMEOUT",
    "SUBMISSION_STABILIZATION_TIMEOUT",
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
