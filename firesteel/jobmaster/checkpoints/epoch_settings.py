"""Settings of a job that runs in epochs, and the checkpoint settings that follow from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import Enum

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration
from firesteel.config import checkpointing_options, exchange_options, restart_options
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings

__all__ = ["EpochSettings", "EpochTriggerKind", "as_epochs", "epoch_checkpoint_settings"]

AVAILABLE_NOW_RESTARTS = 3
"""The default number of restarts of a run that is to end: as often as Spark retries a task."""


class EpochTriggerKind(Enum):
    """When epochs begin."""

    CONTINUOUS = "continuous"
    INTERVAL = "interval"
    AVAILABLE_NOW = "available-now"


@dataclass(frozen=True, slots=True)
class EpochSettings:
    """The options ``execution.epoch.*``; all times in milliseconds."""

    trigger: EpochTriggerKind = EpochTriggerKind.CONTINUOUS
    interval: int = 1000
    target_duration: int = 1000
    max_records: int | None = None
    idle_interval: int = 200
    resumes: bool = False
    """Whether a run of the job continues where the last one stopped."""

    def __post_init__(self) -> None:
        _at_least("interval", self.interval, 1)
        _at_least("target-duration", self.target_duration, 1)
        _at_least("idle-interval", self.idle_interval, 1)
        if self.max_records is not None:
            _at_least("max-records", self.max_records, 1)

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> EpochSettings:
        """The settings from the job's configuration.

        With the interval trigger an epoch may by default take as long as the interval: there is one per
        interval, regardless of the amount of input.

        >>> config = Configuration().set_string("execution.epoch.trigger", "interval")
        >>> EpochSettings.from_configuration(config.set_string("execution.epoch.interval", "10 s")).target_duration
        10000
        """
        trigger = EpochTriggerKind(configuration.get(exchange_options.EPOCH_TRIGGER))
        interval = configuration.get(exchange_options.EPOCH_INTERVAL).to_millis()
        target = configuration.get(exchange_options.EPOCH_TARGET_DURATION).to_millis()
        if trigger is EpochTriggerKind.INTERVAL and not configuration.contains(exchange_options.EPOCH_TARGET_DURATION):
            target = interval
        resume = configuration.get_optional(exchange_options.EPOCH_RESUME)
        return cls(
            trigger=trigger,
            interval=interval,
            target_duration=target,
            max_records=configuration.get_optional(exchange_options.EPOCH_MAX_RECORDS),
            idle_interval=configuration.get(exchange_options.EPOCH_IDLE_INTERVAL).to_millis(),
            resumes=(trigger is EpochTriggerKind.AVAILABLE_NOW if resume is None else resume)
            and configuration.get_optional(checkpointing_options.CHECKPOINTS_DIRECTORY) is not None,
        )


def as_epochs(job_graph: JobGraph) -> JobGraph:
    """The job with what epochs make of its configuration: every epoch is a checkpoint, and ends with its barrier.

    So there are checkpoints, whether the user asked for them or not; they are aligned and exactly-once; and one follows
    the end of the input. A job that continues where its last run stopped is known by its name: jobs of the same name
    have the same id, and with it the same place beneath ``execution.checkpointing.dir``.

    A job that is to stop when it has read the available input is by default restarted a few times only.
    """
    configuration = Configuration(job_graph.configuration)
    if configuration.get_optional(checkpointing_options.CHECKPOINTING_INTERVAL) is None:
        configuration.set(checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(10))
    configuration.set(checkpointing_options.CHECKPOINTING_MODE, "EXACTLY_ONCE")
    configuration.set(checkpointing_options.ENABLE_UNALIGNED, False)
    configuration.set(checkpointing_options.CHECKPOINTS_AFTER_TASKS_FINISH, True)
    available_now = configuration.get(exchange_options.EPOCH_TRIGGER) == EpochTriggerKind.AVAILABLE_NOW.value
    if available_now and configuration.get_optional(restart_options.RESTART_STRATEGY) is None:
        # A caller waits for the end of such a job: unlimited restarts would hide a function that always fails.
        configuration.set(restart_options.RESTART_STRATEGY, "fixed-delay")
        if not configuration.contains(restart_options.FIXED_DELAY_ATTEMPTS):
            configuration.set(restart_options.FIXED_DELAY_ATTEMPTS, AVAILABLE_NOW_RESTARTS)
    job_id = job_graph.job_id
    if EpochSettings.from_configuration(configuration).resumes:
        job_id = hashlib.blake2b(job_graph.job_name.encode(), digest_size=16).hexdigest()
    return replace(job_graph, job_id=job_id, configuration=configuration)


def epoch_checkpoint_settings(configuration: Configuration) -> CheckpointSettings:
    """How the checkpoints of a job in epochs are taken: one after the other, each when its epoch is to begin."""
    return replace(
        CheckpointSettings.from_configuration(configuration),
        on_demand=True,
        min_pause=0,
        max_concurrent=1,
        keeps_finished=EpochSettings.from_configuration(configuration).resumes,
    )


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidProgramError(f"execution.epoch.{option} must be at least {least}, not {value}.")
