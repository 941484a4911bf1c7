"""The RuntimeContext that user functions are opened with."""

from __future__ import annotations

from typing import Any

from firesteel.config.pipeline_options import GLOBAL_JOB_PARAMETERS
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.metrics import MetricGroup, MetricRegistry
from firesteel.runtime.state.api.backend import KeyedStateBackend

__all__ = ["StreamingRuntimeContext"]


class StreamingRuntimeContext:
    """Who a function is (task, subtask, attempt) and what it may use (state, metrics)."""

    def __init__(
        self,
        task: TaskDeploymentDescriptor,
        operator: OperatorDescriptor,
        backend: KeyedStateBackend | None,
        metrics: MetricRegistry,
    ):
        self._task = task
        self._operator = operator
        self._backend = backend
        self._metrics = metrics

    @property
    def job_id(self) -> str:
        """The job, as hex digits; empty where there is none, as in a test of one operator."""
        return self._task.job_id

    @property
    def run_id(self) -> str:
        """The run of the job, as hex digits; empty where there is none."""
        return self._task.run_id

    @property
    def operator_id(self) -> str:
        """The operator, the same whenever the program is started."""
        return self._operator.operator_id

    def get_task_name(self) -> str:
        """The name of the task this operator is chained into."""
        return self._task.name

    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks run this function."""
        return self._task.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._task.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Which subtask this is, from 0."""
        return self._task.subtask

    def get_attempt_number(self) -> int:
        """How often the task was started before."""
        return self._task.attempt

    def get_task_name_with_subtasks(self) -> str:
        """Like ``Map -> Filter (1/2)#0``."""
        return self._task.name_with_subtask

    def get_job_parameter(self, key: str, default_value: Any = None) -> Any:
        """A global job parameter (``pipeline.global-job-parameters``)."""
        parameters = self._task.configuration.get(GLOBAL_JOB_PARAMETERS) or {}
        return parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Where user metrics are registered."""
        return MetricGroup(self._metrics, "user.")

    def get_state(self, state_descriptor: Any) -> Any:
        """A value per key."""
        return self._keyed(state_descriptor)

    def get_list_state(self, state_descriptor: Any) -> Any:
        """A list per key."""
        return self._keyed(state_descriptor)

    def get_map_state(self, state_descriptor: Any) -> Any:
        """A map per key."""
        return self._keyed(state_descriptor)

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        """A reduced value per key."""
        return self._keyed(state_descriptor)

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        """An accumulator per key."""
        return self._keyed(state_descriptor)

    def _keyed(self, descriptor: Any) -> Any:
        if self._backend is None:
            raise RuntimeError(
                f"Operator '{self._operator.name}' uses keyed state '{descriptor.get_name()}' on a stream that is not "
                "keyed. Call key_by() before it."
            )
        return self._backend.get_state(descriptor)
