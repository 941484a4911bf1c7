"""Timeouts of the JobMaster."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.config import checkpointing_options, scheduler_options
from firesteel.config.configuration import Configuration

__all__ = ["AdaptiveSettings", "JobMasterSettings"]


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """The options ``jobmanager.adaptive-scheduler.*``; all times in milliseconds."""

    resource_wait_timeout: int = 300_000
    """How long a start waits for all slots; less than 0 for ever."""

    submission_stabilization_timeout: int = 10_000
    """How long a start that could be made with fewer slots waits for more."""

    cooldown: int = 30_000
    """How long a job runs before it is rescaled."""

    stabilization_timeout: int = 60_000
    """How long a running job that could use more slots waits for the rest of the desired ones."""

    max_checkpoint_failures: int = 2
    """After so many failed checkpoints a job is rescaled from an older one."""

    max_delay: int = 0
    """How long a job that is to be rescaled waits for a checkpoint."""

    checkpointing: bool = False
    """Whether checkpoints are taken; without, a job is not rescaled while it runs."""

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> AdaptiveSettings | None:
        """The settings from the job's configuration; None if it does not select the adaptive scheduler.

        >>> config = Configuration().set_string("jobmanager.scheduler", "adaptive")
        >>> config = config.set_string("execution.checkpointing.interval", "20 s")
        >>> AdaptiveSettings.from_configuration(config).max_delay
        60000
        """
        if configuration.get(scheduler_options.SCHEDULER) != "Adaptive":
            return None
        interval = configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL)
        failures = configuration.get(scheduler_options.RESCALE_MAX_CHECKPOINT_FAILURES)
        max_delay = configuration.get(scheduler_options.RESCALE_MAX_DELAY)
        default_delay = 0 if interval is None else interval.to_millis() * (failures + 1)
        return cls(
            resource_wait_timeout=configuration.get(scheduler_options.SUBMISSION_RESOURCE_WAIT_TIMEOUT).to_millis(),
            submission_stabilization_timeout=configuration.get(
                scheduler_options.SUBMISSION_STABILIZATION_TIMEOUT
            ).to_millis(),
            cooldown=configuration.get(scheduler_options.RESCALING_COOLDOWN).to_millis(),
            stabilization_timeout=configuration.get(scheduler_options.RESCALING_STABILIZATION_TIMEOUT).to_millis(),
            max_checkpoint_failures=failures,
            max_delay=default_delay if max_delay is None else max_delay.to_millis(),
            checkpointing=interval is not None,
        )


@dataclass(frozen=True, slots=True)
class JobMasterSettings:
    """All times in milliseconds."""

    slot_request_timeout: int = 300_000
    """From the start of an attempt until all of its slots have registered (``slot.request.timeout``)."""

    heartbeat_timeout: int = 50_000
    """A slot that is silent for so long is taken for lost (``heartbeat.timeout``)."""

    cancellation_timeout: int = 180_000
    """From CancelSlot or Shutdown until KillAttempt (``task.cancellation.timeout``); 0 for never."""

    kill_timeout: int = 30_000
    """How long a killed attempt may take to end; after that it is taken for ended."""

    leftovers_timeout: int = 30_000
    """How long a restart waits until the files that the last attempt left are deleted."""

    failure_grace: int = 1_000
    """How long a failure that may be the consequence of another waits for that other one."""

    client_patience: int = 10_000
    """How long a checkpoint waits for a client that is slow before sinks send it more than it has room for."""

    exception_history_size: int = 16
    """Failures kept for the web page."""

    checkpointing: bool = False
    """Whether a checkpoint follows the end of all input, so that results can wait for one."""

    allow_non_restored_state: bool = False
    """Whether state without an operator is dropped (``execution.state-recovery.ignore-unclaimed-state``)."""

    storage_token: str | None = None
    """A mark in the checkpoint directory that every slot must find there; None where there are no checkpoints."""

    has_run: bool = False
    """Whether the job has been running under an earlier leader."""

    is_kept: bool = False
    """Whether the job outlives this process: a host that is gone is then no end of it."""

    adaptive: AdaptiveSettings | None = None
    """Whether the job makes do with the slots there are (``jobmanager.scheduler``)."""

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> JobMasterSettings:
        """The settings from the job's configuration.

        >>> config = Configuration().set_string("slot.request.timeout", "20 s")
        >>> JobMasterSettings.from_configuration(config).slot_request_timeout
        20000
        """
        return cls(
            slot_request_timeout=configuration.get(scheduler_options.SLOT_REQUEST_TIMEOUT).to_millis(),
            heartbeat_timeout=configuration.get(scheduler_options.HEARTBEAT_TIMEOUT).to_millis(),
            cancellation_timeout=configuration.get(scheduler_options.TASK_CANCELLATION_TIMEOUT).to_millis(),
            checkpointing=configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL) is not None
            and configuration.get(checkpointing_options.CHECKPOINTS_AFTER_TASKS_FINISH),
            allow_non_restored_state=configuration.get(checkpointing_options.IGNORE_UNCLAIMED_STATE),
            adaptive=AdaptiveSettings.from_configuration(configuration),
        )
