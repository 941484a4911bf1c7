"""Checkpoint settings: interval, mode, timeouts and retention."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.common.errors import InvalidProgramError
from firesteel.common.job_status import JobStatus
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration

__all__ = ["UNLIMITED", "CheckpointRetention", "CheckpointSettings"]

UNLIMITED = 2**31 - 1
"""A number of tolerable failures that is never exceeded."""

_MIN_DURATION_MS = 10
"""Flink takes no checkpoints more often than this."""


class CheckpointRetention(Enum):
    """Retention of a job's last checkpoints when it ends; see also ``CheckpointSettings.keeps``."""

    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    """Kept only for as long as the job may be restarted."""
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    """Kept if the job fails."""
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """Kept if the job fails or is cancelled."""

    def keeps(self, status: JobStatus) -> bool:
        """Whether checkpoints outlive a job that ended so.

        >>> CheckpointRetention.DELETE_ON_CANCELLATION.keeps(JobStatus.FAILED)
        True
        >>> CheckpointRetention.DELETE_ON_CANCELLATION.keeps(JobStatus.CANCELED)
        False
        """
        if status is JobStatus.SUSPENDED:
            return True  # another JobMaster is going to recover the job from them
        if status is JobStatus.CANCELED:
            return self is CheckpointRetention.RETAIN_ON_CANCELLATION
        return status is JobStatus.FAILED and self is not CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """The options ``execution.checkpointing.*``; all times in milliseconds."""

    interval: int | None = None
    """None: no periodic checkpoints; savepoints can be taken all the same."""
    timeout: int = 600_000
    min_pause: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    exactly_once: bool = True
    unaligned: bool = False
    aligned_timeout: int = 0
    """With ``unaligned``: how long a barrier stays aligned; 0: it never is."""
    retention: CheckpointRetention = CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    num_retained: int = 1
    incremental: bool = True
    after_tasks_finish: bool = True
    """Whether checkpoints go on while some tasks have finished."""
    directory: str | None = None
    savepoint_directory: str | None = None
    on_demand: bool = False
    """Checkpoints are triggered by the job's host, not by the timer: those of epochs."""
    keeps_finished: bool = False
    """Whether a job leaves its last checkpoints however it ends, for the next run to go on from."""

    def __post_init__(self) -> None:
        _at_least("timeout", self.timeout, _MIN_DURATION_MS)
        _at_least("min-pause", self.min_pause, 0)
        _at_least("max-concurrent-checkpoints", self.max_concurrent, 1)
        _at_least("tolerable-failed-checkpoints", self.tolerable_failures, 0)
        _at_least("aligned-checkpoint-timeout", self.aligned_timeout, 0)
        _at_least("num-retained", self.num_retained, 1)
        if self.interval is not None:
            _at_least("interval", self.interval, _MIN_DURATION_MS)
        if self.unaligned and not self.exactly_once:
            raise InvalidProgramError(
                "Unaligned checkpoints need the mode EXACTLY_ONCE.",
                hint="With AT_LEAST_ONCE barriers are not aligned anyway: leave out execution.checkpointing.unaligned.",
            )
        if self.unaligned and self.max_concurrent > 1:
            raise InvalidProgramError(
                f"Unaligned checkpoints cannot overlap, but {self.max_concurrent} at once are allowed.",
                hint="Set execution.checkpointing.max-concurrent-checkpoints to 1.",
            )

    @property
    def period(self) -> int | None:
        """From one periodic checkpoint to the next: never less than the pause between them. None: there are none."""
        return None if self.interval is None or self.on_demand else max(self.interval, self.min_pause)

    def keeps(self, status: JobStatus) -> bool:
        """Whether checkpoints outlive a job that ended so."""
        # the next run must not start from scratch after a failure: committed results would be duplicated
        return self.keeps_finished or self.retention.keeps(status)

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> CheckpointSettings:
        """The settings from the job's configuration.

        >>> config = Configuration().set_string("execution.checkpointing.interval", "10 s")
        >>> settings = CheckpointSettings.from_configuration(config)
        >>> settings.interval, settings.timeout, settings.num_retained
        (10000, 600000, 1)
        """
        interval = configuration.get_optional(checkpointing_options.CHECKPOINTING_INTERVAL)
        exactly_once = configuration.get(checkpointing_options.CHECKPOINTING_MODE) == "EXACTLY_ONCE"
        return cls(
            interval=None if interval is None else interval.to_millis(),
            timeout=configuration.get(checkpointing_options.CHECKPOINTING_TIMEOUT).to_millis(),
            min_pause=configuration.get(checkpointing_options.MIN_PAUSE_BETWEEN_CHECKPOINTS).to_millis(),
            max_concurrent=configuration.get(checkpointing_options.MAX_CONCURRENT_CHECKPOINTS),
            tolerable_failures=configuration.get(checkpointing_options.TOLERABLE_FAILED_CHECKPOINTS),
            exactly_once=exactly_once,
            unaligned=configuration.get(checkpointing_options.ENABLE_UNALIGNED),
            aligned_timeout=configuration.get(checkpointing_options.ALIGNED_CHECKPOINT_TIMEOUT).to_millis(),
            retention=CheckpointRetention[configuration.get(checkpointing_options.EXTERNALIZED_CHECKPOINT_RETENTION)],
            num_retained=configuration.get(checkpointing_options.MAX_RETAINED_CHECKPOINTS),
            incremental=configuration.get(checkpointing_options.INCREMENTAL_CHECKPOINTS),
            after_tasks_finish=configuration.get(checkpointing_options.CHECKPOINTS_AFTER_TASKS_FINISH),
            directory=configuration.get_optional(checkpointing_options.CHECKPOINTS_DIRECTORY),
            savepoint_directory=configuration.get_optional(checkpointing_options.SAVEPOINTS_DIRECTORY),
        )


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidProgramError(f"execution.checkpointing.{option} must be at least {least}, not {value}.")
