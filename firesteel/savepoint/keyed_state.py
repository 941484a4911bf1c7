"""Reads keyed state and timers from any handle: canonical ones directly, others through their backend."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from firesteel.common.errors import StateIncompatibleError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.metadata import OperatorState
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import CANONICAL, KeyedStateHandle, StateMeta
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.api.chunks import is_timer_table, read_canonical, timer_table
from firesteel.runtime.state.api.moved_keys import has_moved_keys
from firesteel.runtime.state.factory import create_keyed_backend
from firesteel.runtime.state.registry import BACKENDS, HASHMAP
from firesteel.savepoint.metadata_contents import keyed_handles

__all__ = ["TIMERS", "Entry", "KeyedSlice", "read_entries", "restored_backend", "slices", "table_of"]

TIMERS = "timers"
"""The kind of a timer queue among keyed states."""

_SLICE_BYTES = 16 << 20
_MAX_SLICES = 16
"""Of one handle, about: each slice reads the whole file to verify it, which is cheap beside unpickling, not free."""


class Entry(NamedTuple):
    """One stored value of one key, as chunks have it: of a timer, key is (timestamp, key, namespace)."""

    table: str
    namespace: Any
    key: Any
    value: Any


@dataclass(frozen=True)
class KeyedSlice:
    """Some key groups of one handle: what one reader reads."""

    operator: str
    handle: KeyedStateHandle
    key_groups: KeyGroupRange
    max_parallelism: int


def slices(operator: OperatorState, slice_bytes: int = _SLICE_BYTES) -> list[KeyedSlice]:
    """An operator's keyed state in pieces that can be read in parallel; no two have a key in common."""
    found: list[KeyedSlice] = []
    for _, handle in keyed_handles(operator):
        if handle.parts:
            ranges = _ranges(handle, slice_bytes)
            found += [KeyedSlice(operator.name, handle, groups, operator.max_parallelism) for groups in ranges]
    return found


def _ranges(handle: KeyedStateHandle, slice_bytes: int) -> list[KeyGroupRange]:
    if handle.format != CANONICAL:
        return [handle.key_groups]
    per_slice = max(slice_bytes, handle.size // _MAX_SLICES)
    ranges, start, size = [], handle.key_groups.start, 0
    for group, _, length in sorted(entry for part in handle.parts for entry in part.key_groups or ()):
        if size and size + length > per_slice and group > start:
            ranges.append(KeyGroupRange(start, group - 1))
            start, size = group, 0
        size += length
    return [*ranges, KeyGroupRange(start, handle.key_groups.end)]


def read_entries(
    piece: KeyedSlice, files: StateFileReader, table: str | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[Entry]:
    """Everything a slice holds, or what one table holds, or all but some; timers are tables too."""
    if piece.handle.format == CANONICAL:
        yield from _read_canonical(piece, files, table, without)
    else:
        yield from _read_native(piece, files, table, without)


def _read_canonical(
    piece: KeyedSlice, files: StateFileReader, table: str | None, without: frozenset[str]
) -> Iterator[Entry]:
    for part in piece.handle.parts:
        for _, chunk in read_canonical(part, files, piece.key_groups):
            if chunk.table in without or (table is not None and chunk.table != table):
                continue
            for key, value in zip(chunk.keys or (), chunk.values or (), strict=True):
                yield Entry(chunk.table, chunk.namespace, key, value)


def _read_native(
    piece: KeyedSlice, files: StateFileReader, table: str | None, without: frozenset[str]
) -> Iterator[Entry]:
    with restored_backend(piece, files) as backend:
        for state in piece.handle.states:
            name = table_of(state)
            if name in without or (table is not None and name != table):
                continue
            if state.kind == TIMERS:
                timers = backend.timer_queue(name.removeprefix(timer_table(""))).timers()
                yield from (Entry(name, None, timer, number) for number, timer in enumerate(timers, 1))
            else:
                yield from (Entry(name, namespace, key, value) for namespace, key, value in backend.entries(name))


def table_of(state: StateMeta) -> str:
    """The table of a keyed state or timer queue."""
    return timer_table(state.name) if state.kind == TIMERS and not is_timer_table(state.name) else state.name


@contextmanager
def restored_backend(piece: KeyedSlice, files: StateFileReader) -> Iterator[KeyedStateBackend]:
    """A backend that holds a slice, in this process, until the context ends."""
    name = HASHMAP.name if piece.handle.format == CANONICAL else piece.handle.format
    if name not in BACKENDS:
        raise StateIncompatibleError(
            f"The state of operator '{piece.operator}' has the format '{name}', which no state backend supports.",
            operator=piece.operator,
        )
    configuration = Configuration().set(checkpointing_options.STATE_BACKEND, name)
    with tempfile.TemporaryDirectory(prefix="firesteel-savepoint-") as directory:
        key_groups = piece.key_groups
        if has_moved_keys(piece.handle):
            # no key is looked up here: it may belong to any key group
            key_groups = KeyGroupRange(0, piece.max_parallelism - 1)
        backend = create_keyed_backend(
            configuration,
            key_groups,
            piece.max_parallelism,
            _now,
            operator_id="savepoint",
            subtask=0,
            working_directory=Path(directory),
        )
        try:
            backend.restore([piece.handle], files, reusable=False)
            yield backend
        finally:
            backend.close()


def _now() -> int:
    return time.time_ns() // 1_000_000
