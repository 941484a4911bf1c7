"""Operators of keyed streams of columns with one object of state per key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common.time import Duration
from firesteel.common.typeinfo import Types
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys, state_key
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.runtime.operators.keyed_objects import KeyedObjects, keyed_objects

__all__ = ["KeyedColumnOperator", "objects_of"]

_PLAIN = frozenset(("int8", "int16", "int32", "int64", "string", "bool"))
"""Types whose values are keys of state as they are, unless they are null."""


def objects_of(context: OperatorContext, name: str, ttl_ms: int) -> KeyedObjects:
    """The state of a name, whose objects expire if ``ttl_ms`` is not 0."""
    assert context.backend is not None
    if not ttl_ms:
        return keyed_objects(context.backend, name)
    descriptor: ValueStateDescriptor = ValueStateDescriptor(name, Types.PICKLED_BYTE_ARRAY())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_millis(ttl_ms)).build())
    return KeyedObjects(context.backend, descriptor)


class KeyedColumnOperator(ColumnOperator):
    """Reads the objects of all keys of a batch at once."""

    def __init__(self, columns: Sequence[int], state_name: str, ttl_ms: int) -> None:
        self._columns = tuple(columns)
        self._state_name = state_name
        self._ttl_ms = ttl_ms

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._objects = objects_of(context, self._state_name, self._ttl_ms)

    def _keys_of(self, batch: ColumnBatch) -> tuple[Any, list[Any]]:
        """Which key each row has, as a numpy array of positions, and the keys as state has them."""
        codes, keys = distinct_keys(batch, self._columns)
        columns = [batch.data.column(column) for column in self._columns]
        if all(not column.null_count and str(column.type) in _PLAIN for column in columns):
            return codes, keys
        return codes, list(map(state_key, keys))
