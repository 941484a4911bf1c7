"""The configuration options of restart strategies."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET",
    "EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER",
    "EXPONENTIAL_DELAY_INITIAL_BACKOFF",
    "EXPONENTIAL_DELAY_JITTER_FACTOR",
    "EXPONENTIAL_DELAY_MAX_BACKOFF",
    "EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD",
    "FAILURE_RATE_DELAY",
    "FAILURE_RATE_INTERVAL",
    "FAILURE_RATE_MAX_FAILURES",
    "FIXED_DELAY_ATTEMPTS",
    "FIXED_DELAY_DELAY",
    "RESTART_STRATEGY",
]

_key = ConfigOptions.key

RESTART_STRATEGY = (
    _key("restart-strategy.type")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("restart-strategy")
    .with_description(
        "The restart strategy: none, fixed-delay, failure-rate or exponential-delay. Default: exponential-delay with "
        "checkpointing, none without."
    )
)
FIXED_DELAY_ATTEMPTS = (
    _key("restart-strategy.fixed-delay.attempts")
    .int_type()
    .default_value(1)
    .with_description("Maximum number of restarts before the job fails.")
)
FIXED_DELAY_DELAY = (
    _key("restart-strategy.fixed-delay.delay")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("Delay between a failure and the restart.")
)
FAILURE_RATE_MAX_FAILURES = (
    _key("restart-strategy.failure-rate.max-failures-per-interval")
    .int_type()
    .default_value(1)
    .with_description("Maximum number of failures within the interval before the job fails.")
)
FAILURE_RATE_INTERVAL = (
    _key("restart-strategy.failure-rate.failure-rate-interval")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Interval over which the failure rate is measured.")
)
FAILURE_RATE_DELAY = (
    _key("restart-strategy.failure-rate.delay")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("Delay between a failure and the restart.")
)
EXPONENTIAL_DELAY_INITIAL_BACKOFF = (
    _key("restart-strategy.exponential-delay.initial-backoff")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("Delay before the first restart.")
)
EXPONENTIAL_DELAY_MAX_BACKOFF = (
    _key("restart-strategy.exponential-delay.max-backoff")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Maximum delay before a restart.")
)
EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER = (
    _key("restart-strategy.exponential-delay.backoff-multiplier")
    .double_type()
    .default_value(1.5)
    .with_description("Factor by which the delay grows with each failure.")
)
EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD = (
    _key("restart-strategy.exponential-delay.reset-backoff-threshold")
    .duration_type()
    .default_value(Duration.of_hours(1))
    .with_description("Time without a failure after which the delay is reset.")
)
EXPONENTIAL_DELAY_JITTER_FACTOR = (
    _key("restart-strategy.exponential-delay.jitter-factor")
    .double_type()
    .default_value(0.1)
    .with_description("Random fraction of the delay (jitter), so that jobs do not all restart at once.")
)
EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET = (
    _key("restart-strategy.exponential-delay.attempts-before-reset-backoff")
    .int_type()
    .default_value(0x7FFFFFFF)
    .with_description("Maximum number of restarts before the delay is reset; then the job fails.")
)
