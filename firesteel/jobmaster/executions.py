"""State transitions of the executions in an ExecutionGraph, driven by slot reports and the JobMaster."""

from __future__ import annotations

from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.graph.execution_graph import ExecutionAttempt, ExecutionGraph, ExecutionState
from firesteel.runtime.model.messages import TaskStateChanged

__all__ = ["cancel_all", "end_all", "end_slot", "report", "transition_all"]


def transition_all(graph: ExecutionGraph, state: ExecutionState, now: int) -> None:
    """Every current execution enters the state."""
    for vertex in graph.vertices():
        vertex.current.transition_to(state, now)


def report(graph: ExecutionGraph, message: TaskStateChanged, now: int) -> None:
    """Applies a slot's report on a task; raises FiresteelError if the transition is invalid."""
    try:
        execution = graph.vertex(message.vertex_id, message.subtask).current
        state = ExecutionState[message.state]
    except (KeyError, IndexError) as error:
        raise FiresteelError(f"A slot reported {message!r}, but there is no such task or state.") from error
    if execution.state is ExecutionState.CANCELING and not state.is_terminal:
        return  # sent before the slot received the cancellation
    if state is ExecutionState.CANCELED or (
        state is ExecutionState.FINISHED and execution.state is ExecutionState.CANCELING
    ):
        _cancelled(execution, now)
    else:
        execution.transition_to(state, now, message.failure)


def cancel_all(graph: ExecutionGraph, now: int) -> None:
    """Every execution that has not ended is being cancelled."""
    for vertex in graph.vertices():
        if vertex.current.can_transition_to(ExecutionState.CANCELING):
            vertex.current.transition_to(ExecutionState.CANCELING, now)


def end_slot(graph: ExecutionGraph, slot_index: int, now: int, failure: TaskFailure | None) -> None:
    """The slot is gone: what still ran there has failed or, without a failure, is cancelled."""
    for vertex_id, subtask in graph.slots.subtasks_in(slot_index):
        execution = graph.vertex(vertex_id, subtask).current
        if execution.state.is_terminal:
            continue
        if failure is None or execution.state is ExecutionState.CANCELING:
            _cancelled(execution, now)
        else:
            execution.transition_to(ExecutionState.FAILED, now, failure)


def end_all(graph: ExecutionGraph, now: int) -> None:
    """No slot is left: all executions that have not ended are cancelled."""
    for vertex in graph.vertices():
        if not vertex.current.state.is_terminal:
            _cancelled(vertex.current, now)


def _cancelled(execution: ExecutionAttempt, now: int) -> None:
    if execution.can_transition_to(ExecutionState.CANCELING):
        execution.transition_to(ExecutionState.CANCELING, now)
    execution.transition_to(ExecutionState.CANCELED, now)
