"""Base classes of functions: life cycle, runtime context, and checkpointed functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from firesteel.api.generics import T
from firesteel.api.output_tag import OutputTag
from firesteel.api.state import OperatorStateStore
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

__all__ = [
    "CheckpointListener",
    "CheckpointedFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "KeyedStateStore",
    "Results",
    "RuntimeContext",
]

Results: TypeAlias = Iterable[T | tuple[OutputTag[Any], Any]] | None
"""What the methods of a process function return: records, and pairs of a tag and a record for side outputs."""


class KeyedStateStore(ABC):
    """Access to keyed state; only on a keyed stream."""

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
    """Information about the subtask of a function, and access to its keyed state."""

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
        """The index of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """The attempt number of the subtask, from 0."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """The task's name with the subtask, as in ``Map (3/6)``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """The metric group in which the function registers counters and gauges."""


class Function(ABC):  # noqa: B024 - the root of all functions has no method to insist on
    """Root of all functions. There is one instance per subtask, not one per key."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional
        """Called once before the first record, for example to obtain state and open connections."""

    def close(self) -> None:  # noqa: B027 - optional
        """Called once after the last record, also after a failure."""


class FunctionInitializationContext(ABC):
    """The context of CheckpointedFunction.initialize_state."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job goes on from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The number of that checkpoint, or None."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """State that belongs to no key."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """The store of keyed state; using it is an error on a stream that is not keyed."""


class FunctionSnapshotContext(ABC):
    """The context of CheckpointedFunction.snapshot_state."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """The number of the checkpoint; later ones have higher numbers."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was triggered, in epoch milliseconds."""


class CheckpointedFunction(ABC):
    """A function with operator state. A mixin for any function except source functions.

    For example, a sink that writes records in batches keeps unwritten records in a list state, whose elements are
    redistributed if the job is restored with another parallelism. Available in Flink's Java API, but not in PyFlink.
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Gets the state, restored or new. Called once, before ``open``."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Writes the function's data to the state. Called for every checkpoint, between two records."""


class CheckpointListener(ABC):
    """A function that is notified of completed and aborted checkpoints; a mixin for all but source functions.

    Notifications are best effort: a missing one is covered by the next.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: a failure from now on restores it or a later one."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """The checkpoint was aborted; its changes become part of the next checkpoint."""
