"""Checkpoint hooks of operators and user functions: state initialization, snapshots and notifications.

A user function takes part by having the methods: ``initialize_state`` and ``snapshot_state`` (CheckpointedFunction),
``notify_checkpoint_complete`` and ``notify_checkpoint_aborted`` (CheckpointListener). No base class is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.runtime.state.api.operator_state import OperatorStateBackend

if TYPE_CHECKING:
    from firesteel.runtime.operators.base import OperatorContext

__all__ = [
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "StateInitializationContext",
    "StatefulContext",
    "initialize_function",
    "notify_function",
    "snapshot_function",
]


class StatefulContext(Protocol):
    """The part of an OperatorContext that is there before the operator opens."""

    operator_state: OperatorStateBackend
    runtime_context: Any


class StateInitializationContext:
    """What an operator is given before it opens: its state, restored or new."""

    __slots__ = ("operator_state", "restored_checkpoint_id", "runtime_context")

    def __init__(self, context: OperatorContext | StatefulContext, restored_checkpoint_id: int | None = None):
        self.operator_state = context.operator_state
        self.runtime_context = context.runtime_context
        self.restored_checkpoint_id = restored_checkpoint_id

    @property
    def is_restored(self) -> bool:
        """Whether the job is restored from a checkpoint; the operator may have had no state in it."""
        return self.restored_checkpoint_id is not None


class FunctionInitializationContext:
    """Flink's FunctionInitializationContext, as ``initialize_state`` of a CheckpointedFunction gets it."""

    __slots__ = ("_context",)

    def __init__(self, context: StateInitializationContext):
        self._context = context

    def is_restored(self) -> bool:
        """Whether the job is restored from a checkpoint or savepoint."""
        return self._context.is_restored

    def get_restored_checkpoint_id(self) -> int | None:
        """The number of that checkpoint, or None."""
        return self._context.restored_checkpoint_id

    def get_operator_state_store(self) -> OperatorStateBackend:
        """State that belongs to no key."""
        return self._context.operator_state

    def get_keyed_state_store(self) -> Any:
        """State that belongs to keys; asking it for a state is an error on a stream that is not keyed."""
        return self._context.runtime_context


class FunctionSnapshotContext:
    """Flink's FunctionSnapshotContext, as ``snapshot_state`` of a CheckpointedFunction gets it."""

    __slots__ = ("_checkpoint_id", "_timestamp")

    def __init__(self, checkpoint_id: int, timestamp: int):
        self._checkpoint_id = checkpoint_id
        self._timestamp = timestamp

    def get_checkpoint_id(self) -> int:
        """The number of the checkpoint; later ones have higher numbers."""
        return self._checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was triggered, in epoch milliseconds."""
        return self._timestamp


def initialize_function(function: Any, context: StateInitializationContext) -> None:
    """Lets a CheckpointedFunction get its state."""
    if _is_checkpointed(function):
        function.initialize_state(FunctionInitializationContext(context))


def snapshot_function(function: Any, checkpoint_id: int, timestamp: Callable[[], int]) -> None:
    """Lets a CheckpointedFunction put what it holds into its state."""
    if _is_checkpointed(function):
        function.snapshot_state(FunctionSnapshotContext(checkpoint_id, timestamp()))


def notify_function(function: Any, checkpoint_id: int, *, complete: bool) -> None:
    """Notifies a CheckpointListener of the outcome of a checkpoint."""
    notify = getattr(function, "notify_checkpoint_complete" if complete else "notify_checkpoint_aborted", None)
    if callable(notify):
        notify(checkpoint_id)


def _is_checkpointed(function: Any) -> bool:
    return callable(getattr(function, "initialize_state", None)) and callable(getattr(function, "snapshot_state", None))
