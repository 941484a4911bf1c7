"""Restores the state tables of a hashmap backend from its own snapshots or canonical ones of any backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import StateIncompatibleError
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, KeyedStateHandle
from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.chunks import Chunk, is_timer_table, key_groups_of, read_canonical, read_part
from firesteel.runtime.state.api.moved_keys import check_groups, has_moved_keys, two_states
from firesteel.runtime.state.hashmap.state_table import StateTable
from firesteel.runtime.time.timers import renumbered

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["read_tables"]


def read_tables(
    handles: Sequence[KeyedStateHandle],
    files: StateFileReader,
    own_format: str,
    key_groups: KeyGroupRange,
    max_parallelism: int,
    tracked: bool,
) -> Iterable[StateTable]:
    """What the handles hold of some key groups, as tables; they are in the own format or the canonical one."""
    tables: dict[str, StateTable] = {}
    for handle in handles:
        if handle.key_groups.end < key_groups.start or key_groups.end < handle.key_groups.start:
            continue
        # a delta of one handle may remove a namespace that another handle has as well
        own: dict[str, StateTable] = {}
        for chunk in _chunks(handle, files, own_format, key_groups, max_parallelism):
            table = own.get(chunk.table)
            if table is None:
                table = own[chunk.table] = StateTable(chunk.table, tracked)
            if handle.format == CANONICAL and has_moved_keys(handle):
                _check_new(table, chunk.namespace, chunk.keys or ())
            table.apply(chunk)
        for name, table in own.items():
            if name not in tables:
                tables[name] = table
                continue
            into = tables[name].namespaces
            for namespace, entries in table.namespaces.items():
                if has_moved_keys(handle):
                    _check_new(tables[name], namespace, entries)
                into.setdefault(namespace, {}).update(entries)
    for name, table in tables.items():
        if is_timer_table(name) and (len(handles) > 1 or handles[0].format == CANONICAL):
            table.namespaces[VOID_NAMESPACE] = renumbered(table.namespaces[VOID_NAMESPACE])
        table.end_restore()
    return tables.values()


def _chunks(
    handle: KeyedStateHandle, files: StateFileReader, own_format: str, key_groups: KeyGroupRange, max_parallelism: int
) -> Iterator[Chunk]:
    if handle.format == CANONICAL:
        for part in handle.parts:
            for _, chunk in read_canonical(part, files, key_groups):
                if has_moved_keys(handle):
                    check_groups(chunk.table, chunk.keys or (), max_parallelism, key_groups, key_groups)
                yield chunk
        return
    if handle.format != own_format:
        raise StateIncompatibleError(
            f"This state was written by the {handle.format} backend in its native format.",
            hint=f"Set state.backend.type to {handle.format}, or take a savepoint in the canonical format first.",
        )
    is_inside = key_groups.start <= handle.key_groups.start and handle.key_groups.end <= key_groups.end
    for part in handle.parts:
        for chunk in read_part(part, files):
            if has_moved_keys(handle):
                check_groups(chunk.table, chunk.keys or (), max_parallelism, key_groups, handle.key_groups)
            yield chunk if is_inside else _of_groups(chunk, key_groups, max_parallelism)


def _check_new(table: StateTable, namespace: Any, keys: Iterable[Any]) -> None:
    known = table.namespaces.get(namespace, {})
    for key in keys:
        if key in known:
            raise two_states(table.name, key)


def _of_groups(chunk: Chunk, key_groups: KeyGroupRange, max_parallelism: int) -> Chunk:
    table, namespace, keys, values = chunk
    if keys is None or values is None:
        return chunk  # removing a key that is not there does no harm
    start, end = key_groups.start, key_groups.end
    groups = key_groups_of(table, keys, max_parallelism)
    chosen = [(key, value) for group, key, value in zip(groups, keys, values, strict=True) if start <= group <= end]
    return Chunk(table, namespace, [key for key, _ in chosen], [value for _, value in chosen])
