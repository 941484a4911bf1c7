"""Rows of windows in keyed state: one entry for each window and key group, with the rows as Arrow IPC.

Operators of windows hold their rows in columns of their own. When a snapshot is taken they store the windows that
changed since the last one. An entry belongs to a number that stands for its key group, so that entries are dealt out
with the groups when the parallelism changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.typeinfo import Types
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import KeyGroups
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.state_handles import UNION
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext
from firesteel.runtime.state.api.operator_state import OperatorStateBackend

__all__ = ["WindowState", "keys_in_place", "restored_watermark", "store_watermark"]

_WATERMARK = "_window_watermark"


class WindowState:
    """The stored windows of one operator."""

    def __init__(self, context: OperatorContext, name: str, key_columns: Sequence[int]):
        assert context.backend is not None
        self._backend = context.backend
        descriptor: Any = ValueStateDescriptor(name, Types.PICKLED_BYTE_ARRAY())
        self._name = name
        self._state = self._backend.get_state(descriptor, namespace_aware=True, internal=True)
        self._groups = KeyGroups(key_columns, self._backend.max_parallelism)
        self._stored: dict[int, set[int]] = {}

    def restore(self) -> Iterator[tuple[int, Any]]:
        """The restored windows: their names, and a RecordBatch of each key group."""
        for window, key, stored in list(self._backend.entries(self._name)):
            self._stored.setdefault(window, set()).add(key_group_of(key, self._backend.max_parallelism))
            for batch in pa.ipc.open_stream(stored):
                yield window, batch

    def store(self, window: int, rows: Any) -> None:
        """Stores all rows of a window; the columns of their keys are where those of the operator's input are."""
        groups = self._groups.of(ColumnBatch(rows)).astype(np.int64)
        order = np.argsort(groups, kind="stable")
        ordered = rows.take(pa.array(order))
        distinct, starts = np.unique(groups[order], return_index=True)
        limits = [*starts[1:].tolist(), len(order)]
        self._state.set_current_namespace(window)
        for group, start, limit in zip(distinct.tolist(), starts.tolist(), limits, strict=True):
            self._backend.key = _number_in(group, self._backend.max_parallelism)
            self._state.update(_serialized(ordered.slice(start, limit - start)))
        self._clear(window, self._stored.get(window, set()) - set(distinct.tolist()))
        self._stored[window] = set(distinct.tolist())

    def drop(self, window: int) -> None:
        """Forgets a window."""
        self._clear(window, self._stored.pop(window, set()))

    def _clear(self, window: int, groups: set[int]) -> None:
        if groups:
            self._state.set_current_namespace(window)
        for group in groups:
            self._backend.key = _number_in(group, self._backend.max_parallelism)
            self._state.clear()


def keys_in_place(keys: Sequence[Any], columns: Sequence[int], count: int, schema: Any) -> ColumnBatch:
    """The columns of keys where the input of an operator has them; its other columns are null."""
    arrays = [pa.nulls(count, part.type) for part in schema]
    for array, column in zip(keys, columns, strict=True):
        arrays[column] = array
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _serialized(batch: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@lru_cache(maxsize=1 << 16)
def _number_in(group: int, max_parallelism: int) -> int:
    """The first number that belongs to a key group."""
    number = 0
    while key_group_of(number, max_parallelism) != group:
        number += 1
    return number


def restored_watermark(context: StateInitializationContext) -> int:
    """The lowest watermark of all subtasks when the snapshot was taken, at or before which rows were late already."""
    found: list[int] = context.operator_state.restored(_WATERMARK)
    return min(found, default=MIN_TIMESTAMP)


def store_watermark(operator_state: OperatorStateBackend, watermark: int) -> None:
    """Puts the watermark of this subtask into a snapshot."""
    operator_state.put(_WATERMARK, UNION, [watermark])
