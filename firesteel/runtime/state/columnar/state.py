"""The interface of columnar keyed state, and what a state is declared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from firesteel.api.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common.time import Duration
from firesteel.common.typeinfo import Types
from firesteel.runtime.state.api.backend import KeyedStateBackend, ObjectStateBackend
from firesteel.runtime.state.columnar.keys import BatchKeys
from firesteel.runtime.state.columnar.pairs import PairColumn, Pairs

if TYPE_CHECKING:
    from firesteel.runtime.state.hashmap.state_table import StateTable

__all__ = [
    "MAPS",
    "ColumnarKeyedState",
    "ColumnarStateDescriptor",
    "Dtype",
    "columnar_state",
    "empty_columns",
    "is_in_rows",
]

MAPS = "M"
"""The dtype of a column of dictionaries."""
Dtype = str | Pairs
"""The dtype of a column: numpy's, "M", or that of pairs of a key and a value."""


@dataclass(frozen=True)
class ColumnarStateDescriptor:
    """A state with the dtypes of its columns.

    Object columns hold any Python values, None at first, others 0. A column "M" has a dictionary per key, None at
    first: it is a map state of its own, of which a backend on disk reads and writes single entries. So is a column of
    pairs, whose values are read and written as arrays.
    """

    name: str
    dtypes: tuple[Dtype, ...]
    key_types: tuple[Any, ...] = ()
    """The types of the key's columns in Arrow."""
    ttl_ms: int = 0
    """Time after the last change when a key is forgotten; 0 for never."""

    def as_value_state(self) -> ValueStateDescriptor:
        """The value state that looks the same in snapshots: one tuple per key."""
        descriptor: ValueStateDescriptor = ValueStateDescriptor(self.name, Types.PICKLED_BYTE_ARRAY())
        if self.ttl_ms:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_millis(self.ttl_ms)).build())
        return descriptor

    def map_states(self) -> dict[int, MapStateDescriptor]:
        """The map states of columns. With time-to-live they are part of the tuple, and expire with it."""
        pickled = Types.PICKLED_BYTE_ARRAY()
        return {
            index: MapStateDescriptor(f"{self.name}.{index}", pickled, pickled)
            for index, dtype in enumerate(self.dtypes)
            if not is_in_rows(dtype)
        }


class ColumnarKeyedState(ABC):
    """The state of one operator in one subtask.

    For each batch: ``lookup`` gives the slots of its keys, and new keys have the initial values there. The operator
    reads and writes ``columns`` at these slots, then calls ``update`` with the slots it changed and ``remove`` with
    those to be forgotten. All slots of a lookup are given to one of both, except those whose key has not changed.
    Slots and arrays are good until the next lookup.
    """

    columns: list[Any]
    """One numpy array per column, indexed by slot."""

    @abstractmethod
    def lookup(self, keys: BatchKeys) -> tuple[Any, Any]:
        """The slot of each distinct key, and which of them are new, as numpy arrays."""

    @abstractmethod
    def update(self, slots: Any) -> None:
        """The columns have changed at these slots."""

    @abstractmethod
    def remove(self, slots: Any) -> None:
        """Forgets the keys of these slots."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of keys, where that is known without reading all."""


def columnar_state(
    backend: KeyedStateBackend, descriptor: ColumnarStateDescriptor, clock: Callable[[], int]
) -> ColumnarKeyedState:
    """The state that a descriptor names, with what was restored: arrays of all keys where the backend keeps objects."""
    if descriptor.ttl_ms:
        dtypes = tuple(map(_in_rows, descriptor.dtypes))
        descriptor = replace(descriptor, dtypes=dtypes)
    if isinstance(backend, ObjectStateBackend):
        from firesteel.runtime.state.columnar.table import ColumnTable

        backend.get_state(descriptor.as_value_state(), internal=True)
        maps = {}
        for index, map_state in descriptor.map_states().items():
            backend.get_state(map_state, internal=True)
            maps[index] = cast("StateTable", backend.state_table(map_state.get_name()))
        table = ColumnTable(descriptor, cast("StateTable", backend.state_table(descriptor.name)), maps, clock)
        for each in (table, *table.map_tables):
            backend.replace_table(each)
        return table
    from firesteel.runtime.state.columnar.rows import StoredRows

    return StoredRows(backend, descriptor)


def empty_columns(dtypes: Sequence[Dtype], count: int) -> list[Any]:
    """Columns with the initial values."""
    return [_empty_column(dtype, count) for dtype in dtypes]


def _empty_column(dtype: Dtype, count: int) -> Any:
    if isinstance(dtype, Pairs):
        return PairColumn(dtype)
    return np.full(count, None, object) if dtype in ("O", MAPS) else np.zeros(count, dtype)


def is_in_rows(dtype: Dtype) -> bool:
    """Whether a column is part of the tuple of a key, not a map state of its own."""
    return dtype.in_rows if isinstance(dtype, Pairs) else dtype != MAPS


def is_number(dtype: Dtype) -> bool:
    """Whether a column has one number for each key."""
    return not isinstance(dtype, Pairs) and dtype not in ("O", MAPS)


def _in_rows(dtype: Dtype) -> Dtype:
    """The dtype of a column whose values expire with the tuple of the key."""
    return replace(dtype, in_rows=True) if isinstance(dtype, Pairs) else "O" if dtype == MAPS else dtype
