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
        "How records get from task to task: over Firesteel's own network between long-lived tasks (pipelined), or "
        "through Spark's shuffle, which for a streaming job means epochs: one Spark job after the other, none of "
        "which holds slots in between (spark). auto: Spark's shuffle for a batch job, else pipelined."
    )
)
EPOCH_TRIGGER = (
    _key("execution.epoch.trigger")
    .choice_type("continuous", "interval", "available-now")
    .default_value("continuous")
    .with_description(
        "When an epoch begins: as soon as the one before is over and there is something to do (continuous), every "
        "execution.epoch.interval (interval), or continuous until all that was there has been read, after which the "
        "job stops by itself (available-now)."
    )
)
EPOCH_INTERVAL = (
    _key("execution.epoch.interval")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("How often an epoch begins, if execution.epoch.trigger is interval.")
)
EPOCH_TARGET_DURATION = (
    _key("execution.epoch.target-duration")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description(
        "How long an epoch should take: sources get a quota, a number of records to read, that is adjusted so that it "
        "does."
    )
)
EPOCH_MAX_RECORDS = (
    _key("execution.epoch.max-records")
    .int_type()
    .no_default_value()
    .with_description("The most records that one subtask of a source reads in an epoch, however fast they are.")
)
EPOCH_IDLE_INTERVAL = (
    _key("execution.epoch.idle-interval")
    .duration_type()
    .default_value(Duration.of_millis(200))
    .with_description(
        "With the continuous trigger: how long to wait, after an epoch in which there was nothing to read, before the "
        "sources are asked again. Doubles with each such epoch, up to ten times."
    )
)
EPOCH_RESUME = (
    _key("execution.epoch.resume")
    .boolean_type()
    .no_default_value()
    .with_description(
        "Whether the job goes on from the last checkpoint that a job of the same name has left beneath "
        "execution.checkpointing.dir, if there is one, and keeps its own last checkpoint however it ends. Two runs at "
        "the same time must not share a name and a directory. If not set: only with the trigger available-now. Without "
        "execution.checkpointing.dir there is nothing to go on from. execution.state-recovery.path takes precedence."
    )
)
BATCH_KEY_BUCKETS = (
    _key("execution.batch.key-buckets")
    .int_type()
    .default_value(1024)
    .with_description(
        "Into how many buckets a batch divides the keys of an exchange, over all subtasks that read it. A task reads "
        "one bucket at a time; one that is too large for memory is divided again, on disk."
    )
)
