"""The five kinds of keyed state over rows of a column family. These methods are the hot path.

A value, a reduced value and an accumulator are one row. Each entry of a map and each element of a list is a row of its
own, so that setting one entry or adding one element costs the same at any size; reading them all is a scan.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.api.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    StateDescriptor,
    ValueState,
)
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, check_not_none
from firesteel.runtime.state.rocksdb.database import ColumnFamilyTable
from firesteel.runtime.state.rocksdb.keys import (
    VOID_SUFFIX,
    decode_object,
    encode_namespace,
    encode_object,
    is_told_by_bytes,
)
from firesteel.runtime.state.rocksdb.value_encoding import (
    PROTOCOL,
    dumps_any,
    originals_of,
    trailer_of,
    without_originals,
)
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend

__all__ = [
    "STATES",
    "RocksDBAggregatingState",
    "RocksDBListState",
    "RocksDBMapState",
    "RocksDBReducingState",
    "RocksDBState",
    "RocksDBValueState",
    "pack_number",
]

_loads = pickle.loads
pack_number = struct.Struct(">Q").pack

_NO_KEY = object()
"""Stands for the current key while the row is that of no key."""


class RocksDBState:
    """What all kinds share: the row of the current key and namespace, made once for each."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: ColumnFamilyTable, descriptor: StateDescriptor):
        self._backend = backend
        self._table = table
        self._descriptor = descriptor
        self._encoder = backend.encoder
        self._get = table.get
        self._put = table.put
        self._delete = table.delete
        self._dumps: Callable[[Any, int], bytes] = pickle.dumps
        self._namespace: Any = VOID_NAMESPACE
        self._suffix = VOID_SUFFIX
        self._is_namespace_told = True
        self._key: Any = _NO_KEY
        self._row = b""
        self._trailer = b""

    def set_current_namespace(self, namespace: Any) -> None:
        """Turns to the rows of a namespace."""
        if namespace is self._namespace:
            return
        self._suffix = encode_namespace(namespace)
        self._is_namespace_told = is_told_by_bytes(namespace)
        self._namespace = namespace
        self._key = _NO_KEY

    def clear(self) -> None:
        if self._backend.key is not self._key:
            self._turn()
        self._delete(self._row)

    def _turn(self) -> None:
        """Turns to the rows of the current key."""
        key, encoder = self._backend.key, self._encoder
        self._row = encoder.prefix_of(key) + self._suffix
        is_told = encoder.is_told and self._is_namespace_told
        self._trailer = b"" if is_told else trailer_of((key, self._namespace))
        self._key = key

    def _dump(self, value: Any) -> bytes:
        try:
            return self._dumps(value, PROTOCOL)
        except Exception:  # noqa: BLE001 - user classes may raise anything
            return self._dump_differently(value)

    def _dump_differently(self, value: Any) -> bytes:
        data = dumps_any(value, self._descriptor.get_name(), self._backend.key)
        # more such values will follow, and each attempt to import their class would take long
        self._dumps = self._dump_by_name
        return data

    def _dump_by_name(self, value: Any, _protocol: int) -> bytes:
        return dumps_any(value, self._descriptor.get_name(), self._backend.key)

    def _rows_of(self, namespaces: Iterable[Any]) -> list[bytes]:
        """The current key's rows in other namespaces."""
        prefix = self._encoder.prefix_of(self._backend.key)
        return [prefix + encode_namespace(namespace) for namespace in namespaces]

    def take(self, namespaces: Iterable[Any]) -> list[bytes]:
        """Removes and returns the current key's values in the given namespaces."""
        taken = []
        for row in self._rows_of(namespaces):
            data = self._get(row)
            if data is not None:
                self._delete(row)
                taken.append(data)
        return taken

    def _turn_to(self, namespace: Any) -> Callable[[], None]:
        """Turns to a namespace for a while; the result turns back."""
        before = self._namespace
        self.set_current_namespace(namespace)
        self._turn()
        return lambda: self.set_current_namespace(before)


class RocksDBValueState(RocksDBState, ValueState[Any]):
    """One value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        if self._backend.key is not self._key:
            self._turn()
        data = self._get(self._row)
        return None if data is None else _loads(data)

    def update(self, value: Any) -> None:
        """Replaces the current key's value; None removes it, as in Flink."""
        if self._backend.key is not self._key:
            self._turn()
        if value is None:
            self._delete(self._row)
            return
        try:
            data = self._dumps(value, PROTOCOL)
        except Exception:  # noqa: BLE001 - user classes may raise anything
            data = self._dump_differently(value)
        self._put(self._row, data + self._trailer)

    def values_of(self, keys: Sequence[Any]) -> list[Any]:
        """The values of several keys, or None, in one read."""
        self._encoder.remember(keys)
        prefix_of, suffix = self._encoder.prefix_of, self._suffix
        read: Any = self._get
        found = read([prefix_of(key) + suffix for key in keys]) if keys else []
        return [None if data is None else _loads(data) for data in found]

    def update_all(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Replaces the values of several keys in one write; None removes them."""
        self._key = _NO_KEY
        encoder = self._encoder
        rows: list[tuple[bytes, bytes | None]] = []
        for key, value in zip(keys, values, strict=True):
            row = encoder.prefix_of(key) + self._suffix
            if value is None:
                rows.append((row, None))
                continue
            is_told = encoder.is_told and self._is_namespace_told
            rows.append((row, self._dump(value) + (b"" if is_told else trailer_of((key, self._namespace)))))
        self._table.change(rows)


class RocksDBListState(RocksDBState, ListState[Any]):
    """A list per key: a row for each element, in the order of their numbers."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: ColumnFamilyTable, descriptor: StateDescriptor):
        super().__init__(backend, table, descriptor)
        self._next_number = backend.next_number

    def get(self) -> list[Any]:
        if self._backend.key is not self._key:
            self._turn()
        return [_loads(data) for _row, data in self._table.scan_prefix(self._row)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        check_not_none(value)
        if self._backend.key is not self._key:
            self._turn()
        self._put(self._row + pack_number(self._next_number()), self._dump(value) + self._trailer)

    def add_all(self, values: Sequence[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Sequence[Any]) -> None:
        values = list(values)
        for value in values:
            check_not_none(value)
        self.clear()
        self.add_all(values)

    def clear(self) -> None:
        if self._backend.key is not self._key:
            self._turn()
        self._clear_rows(self._row)

    def _clear_rows(self, prefix: bytes) -> list[bytes]:
        """Removes the rows that begin like that, and returns their values."""
        removed = []
        for row, data in self._table.scan_prefix(prefix):
            self._delete(row)
            removed.append(data)
        return removed

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target."""
        taken = [data for row in self._rows_of(sources) for data in self._clear_rows(row)]
        if taken:
            turn_back = self._turn_to(target)
            for data in taken:
                self._put(self._row + pack_number(self._next_number()), self._moved(data))
            turn_back()

    def _moved(self, data: bytes) -> bytes:
        """A value as it stands in the current namespace."""
        return without_originals(data) + self._trailer


class RocksDBMapState(RocksDBState, MapState[Any, Any]):
    """A map per key: a row for each entry."""

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        if self._backend.key is not self._key:
            self._turn()
        data = self._get(self._row + encode_object(key))
        return None if data is None else _loads(data)

    def put(self, key: Any, value: Any) -> None:
        if self._backend.key is not self._key:
            self._turn()
        self._put(self._row + encode_object(key), self._dump(value) + self._trailer_with(key))

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        if self._backend.key is not self._key:
            self._turn()
        self._delete(self._row + encode_object(key))

    def entries_of(self, keys: Sequence[Any], map_keys: Sequence[Any]) -> list[Any]:
        """For each pair of a key and a map key the value, or None, in one read."""
        prefix_of, suffix = self._encoder.prefix_of, self._suffix
        read: Any = self._get
        pairs = zip(keys, map_keys, strict=True)
        found = read([prefix_of(key) + suffix + encode_object(map_key) for key, map_key in pairs]) if keys else []
        return [None if data is None else _loads(data) for data in found]

    def update_entries(self, keys: Sequence[Any], map_keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Replaces the values of pairs of a key and a map key in one write; None removes them."""
        self._key = _NO_KEY
        encoder = self._encoder
        rows: list[tuple[bytes, bytes | None]] = []
        for key, map_key, value in zip(keys, map_keys, values, strict=True):
            row = encoder.prefix_of(key) + self._suffix + encode_object(map_key)
            if value is None:
                rows.append((row, None))
                continue
            is_told = encoder.is_told and self._is_namespace_told and is_told_by_bytes(map_key)
            trailer = b"" if is_told else trailer_of((key, self._namespace, map_key))
            rows.append((row, self._dump(value) + trailer))
        self._table.change(rows)

    def contains(self, key: Any) -> bool:
        if self._backend.key is not self._key:
            self._turn()
        return self._get(self._row + encode_object(key)) is not None

    def items(self) -> list[tuple[Any, Any]]:
        return [(self._map_key(row, data), _loads(data)) for row, data in self._rows()]

    def keys(self) -> list[Any]:
        return [self._map_key(row, data) for row, data in self._rows()]

    def values(self) -> list[Any]:
        return [_loads(data) for _row, data in self._rows()]

    def is_empty(self) -> bool:
        return next(self._rows(), None) is None

    def clear(self) -> None:
        for row, _data in self._rows():
            self._delete(row)

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        if self._backend.key is not self._key:
            self._turn()
        return self._table.scan_prefix(self._row)

    def _trailer_with(self, map_key: Any) -> bytes:
        if not self._trailer and is_told_by_bytes(map_key):
            return b""
        return trailer_of((self._key, self._namespace, map_key))

    def _map_key(self, row: bytes, data: bytes) -> Any:
        originals = originals_of(data)
        return decode_object(row[len(self._row) :]) if originals is None else originals[2]


class RocksDBReducingState(RocksDBState, ReducingState[Any]):
    """One value per key, reduced with each addition."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: ColumnFamilyTable, descriptor: Any):
        super().__init__(backend, table, descriptor)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        if self._backend.key is not self._key:
            self._turn()
        data = self._get(self._row)
        return None if data is None else _loads(data)

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        current = self.get()
        if current is not None:
            # the function may change it, and the caller that adds it may continue to use it
            value = self._reduce(current, copy_value(value))
        self._put(self._row, self._dump(value) + self._trailer)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        taken = self.take([target, *sources])
        if taken:
            result = _loads(taken[0])
            for data in taken[1:]:
                result = self._reduce(result, _loads(data))
            turn_back = self._turn_to(target)
            self._put(self._row, self._dump(result) + self._trailer)
            turn_back()


class RocksDBAggregatingState(RocksDBState, AggregatingState[Any, Any]):
    """One accumulator per key."""

    def __init__(self, backend: RocksDBKeyedStateBackend, table: ColumnFamilyTable, descriptor: Any):
        super().__init__(backend, table, descriptor)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        accumulator = self._accumulator()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        accumulator = self._accumulator()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._put(self._row, self._dump(self._function.add(copy_value(value), accumulator)) + self._trailer)

    def _accumulator(self) -> Any:
        if self._backend.key is not self._key:
            self._turn()
        data = self._get(self._row)
        return None if data is None else _loads(data)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        taken = self.take([target, *sources])
        if taken:
            result = _loads(taken[0])
            for data in taken[1:]:
                result = self._function.merge(result, _loads(data))
            turn_back = self._turn_to(target)
            self._put(self._row, self._dump(result) + self._trailer)
            turn_back()


STATES: dict[str, Any] = {
    "value": RocksDBValueState,
    "list": RocksDBListState,
    "map": RocksDBMapState,
    "reducing": RocksDBReducingState,
    "aggregating": RocksDBAggregatingState,
}
