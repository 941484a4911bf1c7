"""ExecutionConfig: typed access to common execution options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from firesteel.config import checkpointing_options, pipeline_options, scheduler_options
from firesteel.config.configuration import Configuration

__all__ = ["ExecutionConfig"]


class ExecutionConfig:
    """Typed access to the execution options of a Configuration."""

    PARALLELISM_DEFAULT = -1
    """Use the default parallelism."""

    PARALLELISM_UNKNOWN = -2
    """Leave the parallelism as it is."""

    def __init__(self, configuration: Configuration | None = None):
        self._configuration = Configuration() if configuration is None else configuration

    def to_configuration(self) -> Configuration:
        """The configuration behind this object; not a copy."""
        return self._configuration

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect: Python functions need no closure cleaning."""
        return self._set(pipeline_options.CLOSURE_CLEANER_LEVEL, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect: Python functions need no closure cleaning."""
        return self._set(pipeline_options.CLOSURE_CLEANER_LEVEL, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """The value that was set last."""
        return self._configuration.get(pipeline_options.CLOSURE_CLEANER_LEVEL) != "NONE"

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Sets the interval of periodic watermarks in milliseconds; 0 disables them."""
        if interval < 0:
            raise ValueError(f"The auto watermark interval cannot be negative: {interval}")
        return self._set(pipeline_options.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """The interval of periodic watermarks in milliseconds."""
        return self._configuration.get(pipeline_options.AUTO_WATERMARK_INTERVAL).to_millis()

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Sets the interval of latency markers in milliseconds; 0 or less disables them."""
        return self._set(pipeline_options.LATENCY_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        """The interval of latency markers in milliseconds."""
        return self._configuration.get(pipeline_options.LATENCY_INTERVAL).to_millis()

    def get_parallelism(self) -> int:
        """The default parallelism of operators; PARALLELISM_DEFAULT if none was set."""
        parallelism = self._configuration.get_optional(pipeline_options.DEFAULT_PARALLELISM)
        return self.PARALLELISM_DEFAULT if parallelism is None else parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Sets the parallelism of operators that have none of their own."""
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(pipeline_options.DEFAULT_PARALLELISM)
            return self
        if parallelism < 1:
            raise ValueError(f"The parallelism must be at least 1, or PARALLELISM_DEFAULT: {parallelism}")
        return self._set(pipeline_options.DEFAULT_PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 if it is to be derived from the parallelism."""
        return self._configuration.get(pipeline_options.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Sets the number of key groups, which is the most subtasks a keyed operator can ever have."""
        if max_parallelism < 1:
            raise ValueError(f"The max parallelism must be greater than 0: {max_parallelism}")
        return self._set(pipeline_options.MAX_PARALLELISM, max_parallelism)

    def get_task_cancellation_interval(self) -> int:
        """The time between attempts to cancel a task, in milliseconds."""
        return self._configuration.get(scheduler_options.TASK_CANCELLATION_INTERVAL).to_millis()

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Sets the time between attempts to cancel a task, in milliseconds."""
        return self._set(scheduler_options.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_timeout(self) -> int:
        """How long a task may take to cancel, in milliseconds; 0 for ever."""
        return self._configuration.get(scheduler_options.TASK_CANCELLATION_TIMEOUT).to_millis()

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Sets how long a task may take to cancel, in milliseconds; 0 for ever."""
        if timeout < 0:
            raise ValueError(f"The task cancellation timeout cannot be negative: {timeout}")
        return self._set(scheduler_options.TASK_CANCELLATION_TIMEOUT, timeout)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Has no effect: there is no Kryo."""
        return self._set(pipeline_options.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Has no effect: there is no Kryo."""
        return self._set(pipeline_options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """The value that was set last."""
        return self._configuration.get(pipeline_options.FORCE_KRYO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Has no effect: records may be of any type that can be pickled."""
        return self._set(pipeline_options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Has no effect: records may be of any type that can be pickled."""
        return self._set(pipeline_options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """The value that was set last."""
        return not self._configuration.get(pipeline_options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Enables generated uids for operators without a uid."""
        return self._set(pipeline_options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Makes an operator without a uid an error."""
        return self._set(pipeline_options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether an operator without a uid gets one."""
        return self._configuration.get(pipeline_options.AUTO_GENERATE_UIDS)

    def enable_force_avro(self) -> ExecutionConfig:
        """Has no effect: there is no Avro serializer for Python objects."""
        return self._set(pipeline_options.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Has no effect: there is no Avro serializer for Python objects."""
        return self._set(pipeline_options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """The value that was set last."""
        return self._configuration.get(pipeline_options.FORCE_AVRO)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Passes records and state values on without copying; functions must not modify them."""
        return self._set(pipeline_options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copies records and state values that a function could modify while they are used elsewhere (the default)."""
        return self._set(pipeline_options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether objects are handed on without copies."""
        return self._configuration.get(pipeline_options.OBJECT_REUSE)

    def get_global_job_parameters(self) -> dict[str, str]:
        """The program's own parameters, as text."""
        return self._configuration.get_optional(pipeline_options.GLOBAL_JOB_PARAMETERS) or {}

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Sets user-defined parameters, which every function can read."""
        parameters = {key: str(value) for key, value in global_job_parameters_dict.items()}
        return self._set(pipeline_options.GLOBAL_JOB_PARAMETERS, parameters)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Always empty: there is no Kryo."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Always empty: there is no Kryo."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Always empty: there are no Java classes."""
        return []

    def is_use_snapshot_compression(self) -> bool:
        """Whether keyed state is compressed in full checkpoints and savepoints."""
        return self._configuration.get(checkpointing_options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Sets whether keyed state is compressed in full checkpoints and savepoints."""
        return self._set(checkpointing_options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def set_restart_strategy(self, restart_strategy: RestartStrategyConfiguration) -> ExecutionConfig:
        """Sets the restart strategy (``restart-strategy.*``)."""
        restart_strategy.write_to(self._configuration)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy; the fallback strategy if none was set."""
        return RestartStrategies.from_configuration(self._configuration)

    def _set(self, option: Any, value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
