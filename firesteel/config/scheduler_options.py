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
        "How long a job waits, at its start and after a failure, for all the slots it wants before it makes do with "
        "fewer or, if there are not even enough for parallelism 1, fails."
    )
)
SUBMISSION_STABILIZATION_TIMEOUT = (
    _key("jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(10))
    .with_deprecated_keys("jobmanager.adaptive-scheduler.resource-stabilization-timeout")
    .with_description(
        "How long a job that could run, with fewer slots than it wants, waits for more before it starts or restarts."
    )
)
RESCALING_COOLDOWN = (
    _key("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling")
    .duration_type()
    .default_value(Duration.of_seconds(30))
    .with_deprecated_keys("jobmanager.adaptive-scheduler.scaling-interval.min")
    .with_description("How long a job runs at least before it is restarted to use more slots.")
)
RESCALING_STABILIZATION_TIMEOUT = (
    _key("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(60))
    .with_description(
        "How long a running job that could use more slots, but not yet all it wants, waits for the others."
    )
)
RESCALE_MAX_CHECKPOINT_FAILURES = (
    _key("jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures")
    .int_type()
    .default_value(2)
    .with_description("After how many failed checkpoints a job is rescaled from an older one.")
)
RESCALE_MAX_DELAY = (
    _key("jobmanager.adaptive-scheduler.rescale-trigger.max-delay")
    .duration_type()
    .no_default_value()
    .with_description(
        "How long a job that is to be rescaled waits for a checkpoint before it is rescaled from an older one; if "
        "unset, as many checkpoint intervals as checkpoints may fail, and one more."
    )
)
RESCALE_MIN_INCREASE = (
    _key("jobmanager.adaptive-scheduler.min-parallelism-increase")
    .int_type()
    .default_value(1)
    .with_description("Kept for Flink configurations: as in Flink 2 it is not used any more.")
)
