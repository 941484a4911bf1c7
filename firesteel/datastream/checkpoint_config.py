"""CheckpointConfig: typed access to the checkpointing options."""

from __future__ import annotations

from typing import Any, Final

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, to_millis
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.config.option import ConfigOption
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention

__all__ = ["CheckpointConfig"]

_UNLIMITED: Final = 2**31 - 1
_MIN_DURATION_MS: Final = 10
"""Flink rejects intervals and timeouts below this."""


class CheckpointConfig:
    """Typed access to the checkpointing options of an environment's configuration."""

    def __init__(self, configuration: Configuration):
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval was set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once or at least once."""
        return CheckpointingMode[self._configuration.get(checkpointing_options.CHECKPOINTING_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Exactly once or at least once."""
        return self._set(checkpointing_options.CHECKPOINTING_MODE, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """The checkpoint interval in milliseconds; -1 if checkpointing is disabled."""
        interval: Duration | None = self._configuration.get(checkpointing_options.CHECKPOINTING_INTERVAL)
        return -1 if interval is None else interval.to_millis()

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Milliseconds between checkpoints."""
        _check("checkpoint interval", checkpoint_interval, _MIN_DURATION_MS, " ms")
        return self._set(checkpointing_options.CHECKPOINTING_INTERVAL, Duration.of_millis(checkpoint_interval))

    def get_checkpoint_timeout(self) -> int:
        """The maximum duration of a checkpoint, in milliseconds."""
        return self._configuration.get(checkpointing_options.CHECKPOINTING_TIMEOUT).to_millis()

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """The maximum duration of a checkpoint, in milliseconds."""
        _check("checkpoint timeout", checkpoint_timeout, _MIN_DURATION_MS, " ms")
        return self._set(checkpointing_options.CHECKPOINTING_TIMEOUT, Duration.of_millis(checkpoint_timeout))

    def get_min_pause_between_checkpoints(self) -> int:
        """The minimum pause between checkpoints, in milliseconds."""
        return self._configuration.get(checkpointing_options.MIN_PAUSE_BETWEEN_CHECKPOINTS).to_millis()

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """The minimum pause between checkpoints, in milliseconds."""
        _check("pause between checkpoints", min_pause_between_checkpoints, 0, " ms")
        return self._set(
            checkpointing_options.MIN_PAUSE_BETWEEN_CHECKPOINTS, Duration.of_millis(min_pause_between_checkpoints)
        )

    def get_max_concurrent_checkpoints(self) -> int:
        """The maximum number of concurrent checkpoints."""
        return self._configuration.get(checkpointing_options.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """The maximum number of concurrent checkpoints."""
        _check("number of concurrent checkpoints", max_concurrent_checkpoints, 1, "")
        return self._set(checkpointing_options.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Whether the first failed checkpoint fails the job, or none ever does."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _UNLIMITED)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """The number of consecutive checkpoint failures that are tolerated."""
        return self._configuration.get(checkpointing_options.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """The number of consecutive checkpoint failures that are tolerated."""
        _check("number of tolerable checkpoint failures", tolerable_checkpoint_failure_number, 0, "")
        return self._set(checkpointing_options.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Whether checkpoints are retained when the job is cancelled."""
        return self._set(checkpointing_options.EXTERNALIZED_CHECKPOINT_RETENTION, retention_mode.name)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints outlive a failed job."""
        kept = self.get_externalized_checkpoint_retention()
        return kept is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Whether checkpoints are retained when the job is cancelled."""
        return ExternalizedCheckpointRetention[
            self._configuration.get(checkpointing_options.EXTERNALIZED_CHECKPOINT_RETENTION)
        ]

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records."""
        return self._configuration.get(checkpointing_options.ENABLE_UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Whether barriers may overtake records."""
        return self._set(checkpointing_options.ENABLE_UNALIGNED, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Barriers never overtake records."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Any) -> CheckpointConfig:
        """The time after which an aligned checkpoint switches to unaligned, if unaligned checkpoints are enabled."""
        return self._set(
            checkpointing_options.ALIGNED_CHECKPOINT_TIMEOUT, Duration.of_millis(to_millis(alignment_timeout))
        )

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """The time after which an aligned checkpoint switches to unaligned."""
        return self._configuration.get(checkpointing_options.ALIGNED_CHECKPOINT_TIMEOUT)

    def set_alignment_timeout(self, alignment_timeout: Any) -> CheckpointConfig:
        """The old name of :meth:`set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """The old name of :meth:`get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Forces unaligned checkpoints where they may not be safe."""
        return self._set(checkpointing_options.FORCE_UNALIGNED, force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints are forced."""
        return self._configuration.get(checkpointing_options.FORCE_UNALIGNED)

    def _set(self, option: ConfigOption[Any], value: Any) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self


def _check(what: str, value: int, least: int, unit: str) -> None:
    if value < least:
        raise InvalidProgramError(f"The {what} must be at least {least}{unit}, got {value}{unit}.")
