"""Description of a savepoint or checkpoint from its metadata; reads no state file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from firesteel.common.errors import StateIncompatibleError
from firesteel.jobmaster.checkpoints.state_compatibility import has_state
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.state_handles import (
    BROADCAST,
    FileSegment,
    KeyedStateHandle,
    OperatorStateHandle,
    StateMeta,
    segments_of,
)

__all__ = [
    "OperatorList",
    "find_operator",
    "has_state",
    "keyed_handles",
    "keyed_states",
    "operator_lists",
    "segments",
]


@dataclass(frozen=True)
class OperatorList:
    """One named list of operator state, over all subtasks."""

    name: str
    mode: str
    items: int
    size: int


def keyed_handles(operator: OperatorState) -> list[tuple[int, KeyedStateHandle]]:
    """The keyed state of each subtask that has some."""
    return [(index, subtask.keyed) for index, subtask in sorted(operator.subtasks.items()) if subtask.keyed is not None]


def keyed_states(operator: OperatorState) -> list[StateMeta]:
    """The keyed states and timers of an operator, each once: entries of all subtasks together."""
    merged: dict[str, StateMeta] = {}
    for _, handle in keyed_handles(operator):
        for state in handle.states:
            known = merged.get(state.name)
            merged[state.name] = state if known is None else replace(known, entries=known.entries + state.entries)
    return sorted(merged.values(), key=lambda state: (state.kind == "timers", state.name))


def operator_handles(operator: OperatorState, name: str | None = None) -> list[OperatorStateHandle]:
    """The lists of operator state of all subtasks, or those of one name."""
    return [
        handle
        for _, subtask in sorted(operator.subtasks.items())
        for handle in subtask.operator
        if name is None or handle.name == name
    ]


def operator_lists(operator: OperatorState) -> list[OperatorList]:
    """The lists of operator state, each once; of broadcast state, which all subtasks wrote, one copy counts."""
    found: dict[str, OperatorList] = {}
    for handle in operator_handles(operator):
        known = found.get(handle.name)
        if known is None:
            found[handle.name] = OperatorList(handle.name, handle.mode, handle.items, handle.data.length)
        else:
            items = known.items if handle.mode == BROADCAST else known.items + handle.items
            found[handle.name] = replace(known, items=items, size=known.size + handle.data.length)
    return [found[name] for name in sorted(found)]


def segments(metadata: CheckpointMetadata) -> Iterator[tuple[str, FileSegment]]:
    """Every file segment, with the name of the operator that needs it."""
    for operator in metadata.operators:
        for subtask in operator.subtasks.values():
            for segment in segments_of(subtask):
                yield operator.name, segment
        if isinstance(operator.coordinator, FileSegment):
            yield operator.name, operator.coordinator
    for channel in metadata.channels:
        if isinstance(channel.data, FileSegment):
            yield "in-flight data", channel.data


def find_operator(operators: Iterable[OperatorState], identifier: str) -> OperatorState:
    """The operator with that uid, that id (32 hex digits) or, if it is the only one, that name."""
    operators = list(operators)
    for field in ("uid", "operator_id", "name"):
        found = [operator for operator in operators if getattr(operator, field) == identifier]
        if len(found) == 1:
            return found[0]
        if found:
            raise StateIncompatibleError(
                f"{len(found)} operators have the {field} '{identifier}'.",
                operator=identifier,
                hint=f"Use one of their ids: {', '.join(operator.operator_id for operator in found)}.",
            )
    known = ", ".join(f"'{operator.uid or operator.name}'" for operator in operators if has_state(operator))
    raise StateIncompatibleError(
        f"There is no state for operator '{identifier}'.",
        operator=identifier,
        hint=f"Operators with state: {known or 'none'}.",
    )
