"""Description of a savepoint as plain data, shown by ``firesteel savepoint inspect``."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

from firesteel.common.errors import CheckpointStorageError, StateIncompatibleError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.state_handles import FileSegment
from firesteel.runtime.state.api.chunks import encode_chunk
from firesteel.savepoint.keyed_state import TIMERS, read_entries, slices, table_of
from firesteel.savepoint.metadata_contents import (
    has_state,
    keyed_handles,
    keyed_states,
    operator_lists,
    segments,
)

__all__ = ["count_states", "describe", "find_states", "list_keys", "verify"]

_BATCH_ENTRIES = 1000

_text = reprlib.Repr()
_text.maxstring = _text.maxother = _text.maxlong = 120
_text.maxlist = _text.maxtuple = _text.maxdict = _text.maxset = 12


def describe(metadata: CheckpointMetadata, path: str) -> dict[str, Any]:
    """The whole content of the metadata, as JSON values."""
    return {
        "path": path,
        "job_name": metadata.job_name,
        "job_id": metadata.job_id,
        "checkpoint_id": metadata.checkpoint_id,
        "timestamp": metadata.timestamp,
        "kind": metadata.kind.value,
        "format_version": metadata.version,
        "size": metadata.size,
        "files": len(metadata.files()),
        "in_flight": {"channels": len(metadata.channels), "size": _in_flight_size(metadata)},
        "properties": dict(metadata.properties),
        "operators": [_describe_operator(operator) for operator in metadata.operators],
    }


def _in_flight_size(metadata: CheckpointMetadata) -> int:
    return sum(channel.data.length for channel in metadata.channels)


def _describe_operator(operator: OperatorState) -> dict[str, Any]:
    return {
        "name": operator.name,
        "uid": operator.uid,
        "id": operator.operator_id,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "size": operator.size,
        "has_state": has_state(operator),
        "formats": sorted({handle.format for _, handle in keyed_handles(operator)}),
        "finished_subtasks": sorted(operator.finished),
        "coordinator_size": None if operator.coordinator is None else operator.coordinator.length,
        "keyed_states": [
            {
                "name": state.name,
                "kind": state.kind,
                "type": state.type,
                "ttl": state.ttl,
                "entries": state.entries,
                "keys": None,
                "size": None,
            }
            for state in keyed_states(operator)
        ],
        "operator_states": [
            {"name": found.name, "mode": found.mode, "items": found.items, "size": found.size}
            for found in operator_lists(operator)
        ],
        "subtasks": [
            {
                "subtask": index,
                "key_groups": [subtask.keyed.key_groups.start, subtask.keyed.key_groups.end] if subtask.keyed else None,
                "keyed_size": subtask.keyed.size if subtask.keyed else 0,
                "operator_size": sum(handle.data.length for handle in subtask.operator),
                "files": len({piece.path for piece in _files_of(subtask)}),
            }
            for index, subtask in sorted(operator.subtasks.items())
        ],
    }


def _files_of(subtask: Any) -> Iterator[FileSegment]:
    holders = [*(subtask.keyed.parts if subtask.keyed else ()), *subtask.operator]
    return (holder.data for holder in holders if isinstance(holder.data, FileSegment))


def count_states(metadata: CheckpointMetadata, files: StateFileReader, description: dict[str, Any]) -> None:
    """Reads all keyed state and puts exact numbers of keys, entries and bytes into a description."""
    for operator, described in zip(metadata.operators, description["operators"], strict=True):
        counts = _count(operator, files)
        for state, meta in zip(described["keyed_states"], keyed_states(operator), strict=True):
            state["keys"], state["entries"], state["size"] = counts.get(table_of(meta), (0, 0, 0))


def _count(operator: OperatorState, files: StateFileReader) -> dict[str, tuple[int, int, int]]:
    """Keys, entries and bytes of each table; slices have no key in common, so keys are remembered slice by slice."""
    totals: dict[str, list[int]] = {}
    for piece in slices(operator, slice_bytes=1 << 20):
        keys: dict[str, set[Any]] = {}
        pending: dict[tuple[str, Any], tuple[list[Any], list[Any]]] = {}
        for table, namespace, key, value in read_entries(piece, files):
            total = totals.setdefault(table, [0, 0, 0])
            total[1] += 1
            keys.setdefault(table, set()).add(key[1] if table.startswith("_timers/") else key)
            batch = pending.setdefault((table, namespace), ([], []))
            batch[0].append(key)
            batch[1].append(value)
            if len(batch[0]) >= _BATCH_ENTRIES:
                total[2] += len(encode_chunk(table, namespace, *pending.pop((table, namespace))))
        for (table, namespace), batch in pending.items():
            totals[table][2] += len(encode_chunk(table, namespace, *batch))
        for table, distinct in keys.items():
            totals[table][0] += len(distinct)
    return {table: (total[0], total[1], total[2]) for table, total in totals.items()}


def find_states(metadata: CheckpointMetadata, name: str) -> list[OperatorState]:
    """The operators that have a keyed state of that name."""
    found = [operator for operator in metadata.operators if any(state.name == name for state in keyed_states(operator))]
    if not found:
        names = sorted({state.name for operator in metadata.operators for state in keyed_states(operator)})
        raise StateIncompatibleError(
            f"There is no keyed state '{name}'.", state=name, hint=f"Keyed states: {', '.join(names) or 'none'}."
        )
    return found


def list_keys(metadata: CheckpointMetadata, files: StateFileReader, name: str, limit: int) -> list[dict[str, Any]]:
    """The first keys of a state with their values, as text."""
    rows: list[dict[str, Any]] = []
    for operator in find_states(metadata, name):
        meta = next(state for state in keyed_states(operator) if state.name == name)
        for piece in slices(operator, slice_bytes=1 << 20):
            for _, namespace, key, value in read_entries(piece, files, table_of(meta)):
                if len(rows) >= limit:
                    return rows
                if meta.kind == TIMERS:
                    value, key, namespace = key
                rows.append(
                    {
                        "operator": operator.name,
                        "key": _text.repr(key),
                        "namespace": None if namespace is None else namespace_text(namespace),
                        "value": _text.repr(value),
                    }
                )
    return rows


def namespace_text(namespace: Any) -> str:
    """A window or other namespace as text."""
    if isinstance(namespace, TimeWindow):
        return f"[{namespace.start}, {namespace.end})"
    return _text.repr(namespace)


def verify(metadata: CheckpointMetadata, files: StateFileReader) -> list[str]:
    """What is wrong with the state files: one sentence for each that is missing, short or changed."""
    problems, seen = [], set()
    for operator, segment in segments(metadata):
        if segment in seen:
            continue
        seen.add(segment)
        try:
            with files.open(segment):
                pass
        except CheckpointStorageError as error:
            problems.append(f"{operator}: {error.message}")
    return problems
