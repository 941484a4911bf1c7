"""Conversion of RocksDB rows to and from the values of canonical savepoints."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.runtime.state.rocksdb.classes import dumps_by_name
from firesteel.runtime.state.rocksdb.keys import (
    GROUP_BYTES,
    KeyEncoder,
    decode_object,
    encode_namespace,
    encode_object,
    group_start,
    is_told_by_bytes,
    split_row,
)
from firesteel.runtime.state.rocksdb.states import pack_number
from firesteel.runtime.state.rocksdb.value_encoding import (
    PROTOCOL,
    STAMP_BYTES,
    loads,
    originals_of,
    pack_stamp,
    stamp_of,
    trailer_of,
)

__all__ = [
    "RowWriter",
    "Rows",
    "bounds_of",
    "group_of",
    "keys_of",
    "row_originals",
    "stored_values",
    "timer_row",
    "timers_of",
]

Rows = Iterable[tuple[bytes, bytes]]
Timer = tuple[int, Any, Any]

_number = struct.Struct(">Q")
_SIGN = 1 << 63
_TIMER_BYTES = 8
_TIMERS = StateMeta("", "timers")


def bounds_of(key_groups: KeyGroupRange) -> tuple[bytes, bytes]:
    """The first row that may be of the key groups, and the first after them."""
    return group_start(key_groups.start), group_start(key_groups.end + 1)


def group_of(row: bytes) -> int:
    """The key group of a row."""
    return int.from_bytes(row[:GROUP_BYTES], "big")


# ---- reading ----------------------------------------------------------------------------------------


def stored_values(rows: Rows, meta: StateMeta, alive_after: int | None = None) -> Iterator[tuple[int, Any, Any, Any]]:
    """What rows of a state hold as (key group, namespace, key, stored value).

    With ``alive_after``, rows of a state with time-to-live that were last accessed up to then are left out.
    """
    if meta.ttl and alive_after is not None:
        rows = ((row, data) for row, data in rows if stamp_of(data) > alive_after)
    if meta.kind == "list":
        return _collect(rows, meta.ttl, list, _append)
    if meta.kind == "map":
        return _collect(rows, meta.ttl, dict, _set)
    return _single(rows, meta.ttl)


def row_originals(meta: StateMeta, data: bytes) -> tuple[Any, ...] | None:
    """Key, namespace and, in a map, map key of a row of a state or timer queue, unless the row's key encodes them."""
    if meta.kind == "timers":
        found: tuple[Any, ...] | None = None if len(data) == _TIMER_BYTES else loads(data[_TIMER_BYTES:])
        return found
    return originals_of(_body(data, meta.ttl))


def keys_of(rows: Rows, meta: StateMeta, namespace: Any) -> Iterator[Any]:
    """The keys that have rows in a namespace, each once."""
    wanted = b"" if namespace is None else encode_object(namespace)
    last = None
    for row, data in rows:
        key, found, _rest = split_row(row)
        if found == wanted and key != last:
            last = key
            originals = originals_of(_body(data, meta.ttl))
            yield decode_object(key) if originals is None else originals[0]


def _single(rows: Rows, ttl: bool) -> Iterator[tuple[int, Any, Any, Any]]:
    for row, data in rows:
        key, namespace, _rest = split_row(row)
        yield group_of(row), *_objects(key, namespace, _body(data, ttl)), _value(data, ttl)


def _collect(
    rows: Rows, ttl: bool, new: Callable[[], Any], add: Callable[[Any, bytes, bytes, Any], None]
) -> Iterator[tuple[int, Any, Any, Any]]:
    """Of rows of one key and namespace, which follow each other, makes one stored value."""
    current, entry, stored = b"", None, None
    for row, data in rows:
        key, namespace, rest = split_row(row)
        body = _body(data, ttl)
        start = row[: len(row) - len(rest)]
        if start != current:
            if entry is not None:
                yield *entry, stored
            current, stored = start, new()
            found_namespace, found_key = _objects(key, namespace, body)
            entry = (group_of(row), found_namespace, found_key)
        add(stored, rest, body, _value(data, ttl))
    if entry is not None:
        yield *entry, stored


def _append(stored: list[Any], _rest: bytes, _body: bytes, value: Any) -> None:
    stored.append(value)


def _set(stored: dict[Any, Any], rest: bytes, body: bytes, value: Any) -> None:
    originals = originals_of(body)
    stored[decode_object(rest) if originals is None else originals[2]] = value


def _body(data: bytes, ttl: bool) -> bytes:
    return data[:-STAMP_BYTES] if ttl else data


def _value(data: bytes, ttl: bool) -> Any:
    return [loads(data), stamp_of(data)] if ttl else loads(data)


def _objects(key: bytes, namespace: bytes, body: bytes) -> tuple[Any, Any]:
    originals = originals_of(body)
    if originals is not None:
        return originals[1], originals[0]
    return decode_object(namespace) if namespace else None, decode_object(key)


# ---- writing ----------------------------------------------------------------------------------------


class RowWriter:
    """Makes the rows of stored values."""

    def __init__(self, encoder: KeyEncoder, next_number: Callable[[], int]):
        self._encoder = encoder
        self._next_number = next_number

    def rows(
        self, meta: StateMeta, namespace: Any, keys: Iterable[Any], values: Iterable[Any]
    ) -> Iterator[tuple[bytes, bytes]]:
        """The rows of entries of one namespace."""
        suffix = encode_namespace(namespace)
        is_namespace_told = is_told_by_bytes(namespace)
        prefix_of, encoder, ttl = self._encoder.prefix_of, self._encoder, meta.ttl
        for key, stored in zip(keys, values, strict=True):
            start = prefix_of(key) + suffix
            trailer = b"" if is_namespace_told and encoder.is_told else trailer_of((key, namespace))
            if meta.kind == "list":
                for element in stored:
                    yield start + pack_number(self._next_number()), _data(element, trailer, ttl)
            elif meta.kind == "map":
                for map_key, value in stored.items():
                    told = not trailer and is_told_by_bytes(map_key)
                    own = b"" if told else trailer_of((key, namespace, map_key))
                    yield start + encode_object(map_key), _data(value, own, ttl)
            else:
                yield start, _data(stored, trailer, ttl)


def _data(value: Any, trailer: bytes, ttl: bool) -> bytes:
    if ttl:
        value, stamp = value
        return _dump(value) + trailer + pack_stamp(stamp)
    return _dump(value) + trailer


def _dump(value: Any) -> bytes:
    try:
        return pickle.dumps(value, PROTOCOL)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        return dumps_by_name(value)


# ---- timers -----------------------------------------------------------------------------------------


def timer_row(encoder: KeyEncoder, timer: Timer, number: int) -> tuple[bytes, bytes]:
    """The row of a timer with its registration number."""
    timestamp, key, namespace = timer
    row = encoder.prefix_of(key) + encode_namespace(namespace) + _number.pack(timestamp + _SIGN)
    data = _number.pack(number)
    if not (encoder.is_told and is_told_by_bytes(namespace)):
        data += _dump((key, namespace))
    return row, data


def timers_of(rows: Rows) -> Iterator[tuple[int, Timer, int]]:
    """What rows of a timer queue hold as (key group, timer, registration number)."""
    for row, data in rows:
        key_bytes, namespace_bytes, rest = split_row(row)
        originals = row_originals(_TIMERS, data)
        if originals is not None:
            key, namespace = originals
        else:
            key, namespace = decode_object(key_bytes), decode_object(namespace_bytes) if namespace_bytes else None
        timestamp = _number.unpack(rest)[0] - _SIGN
        yield group_of(row), (timestamp, key, namespace), _number.unpack_from(data)[0]
