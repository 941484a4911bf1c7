"""The configuration options of Spark's own shuffle as exchange."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "BATCH_KEY_BUCKETS",
    "EPOCH_IDLE_INTERVAL",
    "EPOCH_INTERVAL",
    "EPOCH_MAX_RECORDS",
    "EPOCH_RESUME",
    "EPOCH_TARGET_DURATION",
    "EPOCH_TRIGGER",
    "EXCHANGE",
]

_key = ConfigOptions.key

EXCHANGE = (
    _key("execution.exchange")
    .choice_type("auto", "pipelined", "spark")
    .default_value("auto")
    .with_description(
        "How records are exchanged between tasks: over Firesteel's own network between long-lived tasks (pipelined), "
        "or through Spark's shuffle (spark). With spark, a streaming job runs in epochs, each of which is a "
        "Spark job, and holds no slots between them. auto: Spark's shuffle for a batch job, else pipelined."
    )
)
EPOCH_TRIGGER = (
    _key("execution.epoch.trigger")
    .choice_type("continuous", "interval", "available-now")
    .default_value("continuous")
    .with_description(
        "When an epoch starts: when the previous one has ended and input is available (continuous), every "
        "execution.epoch.interval (interval), or continuous until all input available at the start has been "
        "read, after which the job ends (available-now)."
    )
)
EPOCH_INTERVAL = (
    _key("execution.epoch.interval")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("Interval between epochs if execution.epoch.trigger is interval.")
)
EPOCH_TARGET_DURATION = (
    _key("execution.epoch.target-duration")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description(
        "Target duration of an epoch. Sources get a quota of records per epoch that is adjusted to meet it."
    )
)
EPOCH_MAX_RECORDS = (
    _key("execution.epoch.max-records")
    .int_type()
    .no_default_value()
    .with_description("Maximum number of records that a source subtask reads in an epoch.")
)
EPOCH_IDLE_INTERVAL = (
    _key("execution.epoch.idle-interval")
    .duration_type()
    .default_value(Duration.of_millis(200))
    .with_description(
        "With the continuous trigger: the pause after an epoch without input. Doubles with each such epoch, up to "
        "ten times."
    )
)
EPOCH_RESUME = (
    _key("execution.epoch.resume")
    .boolean_type()
    .no_default_value()
    .with_description(
        "Whether the job resumes from the last checkpoint of a job with the same name in "
        "execution.checkpointing.dir, and retains its own last checkpoint. Concurrent runs must not share a name "
        "and a directory. Default: true with the trigger available-now, else false. Has no effect without "
        "execution.checkpointing.dir. execution.state-recovery.path takes precedence."
    )
)
BATCH_KEY_BUCKETS = (
    _key("execution.batch.key-buckets")
    .int_type()
    .default_value(1024)
    .with_description(
        "Number of buckets into which a batch divides the keys of an exchange, over all subtasks that read it. A "
        "task reads one bucket at a time; a bucket that does not fit into memory is divided again on disk."
    )
)
