"""How long the JobMaster waits for what."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common import options
from firesteel.common.configuration import Configuration

__all__ = ["JobMasterSettings"]


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

    failure_grace: int = 1_000
    """How long a failure that may be the consequence of another waits for that other one."""

    exception_history_size: int = 16
    """Failures kept for the web page."""

    checkpointing: bool = False
    """Whether checkpoints are taken (``execution.checkpointing.interval``)."""

    allow_non_restored_state: bool = False
    """Whether state without an operator is dropped (``execution.state-recovery.ignore-unclaimed-state``)."""

    storage_token: str | None = None
    """A mark in the checkpoint directory that every slot must find there."""

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> JobMasterSettings:
        """What the job's configuration says.

        >>> config = Configuration().set_string("slot.request.timeout", "20 s")
        >>> JobMasterSettings.from_configuration(config).slot_request_timeout
        20000
        """
        return cls(
            slot_request_timeout=configuration.get(options.SLOT_REQUEST_TIMEOUT).to_millis(),
            heartbeat_timeout=configuration.get(options.HEARTBEAT_TIMEOUT).to_millis(),
            cancellation_timeout=configuration.get(options.TASK_CANCELLATION_TIMEOUT).to_millis(),
            checkpointing=configuration.get(options.CHECKPOINTING_INTERVAL) is not None,
            allow_non_restored_state=configuration.get(options.IGNORE_UNCLAIMED_STATE),
        )
