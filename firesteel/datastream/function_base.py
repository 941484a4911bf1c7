"""What every function has: a life of open and close, and a context to learn where it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from firesteel.metrics import MetricGroup

__all__ = ["Function", "KeyedStateStore", "RuntimeContext"]


class KeyedStateStore(ABC):
    """Where a function finds its keyed state; only on a keyed stream."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """The value state a descriptor names."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The list state a descriptor names."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """The map state a descriptor names."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """The reducing state a descriptor names."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """The aggregating state a descriptor names."""


class RuntimeContext(KeyedStateStore):
    """What a function can learn about the subtask it runs in, and its keyed state."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The name of the task."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism of the task."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The max parallelism of the task: the number of its key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Which subtask this is, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often the subtask was restarted: 0 in the first attempt."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The task's name with the subtask, as in ``Map (3/6)``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its own counters and gauges."""


class Function(ABC):  # noqa: B024 - the root of all functions has no method to insist on
    """Root of all functions. There is one instance per subtask, not one per key."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional
        """Called once before the first record: the place to get state and open connections."""

    def close(self) -> None:  # noqa: B027 - optional
        """Called once after the last record, also after a failure."""
