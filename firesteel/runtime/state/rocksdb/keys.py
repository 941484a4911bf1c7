"""Key encoding of RocksDB rows: key group, key and namespace.

A row's key is, in this order:

- the key group, two bytes, big endian: a key group is a range of rows;
- the key, with its length before it;
- the namespace, with its length before it; length 0 is the void namespace;
- in a map state the map key, in a list state the element's number, in a timer queue the timestamp.

Equal objects have equal bytes (``1 == 1.0 == True``) and, unlike in ``key_groups.encode_key``, whose bytes are only
hashed, different ones have different bytes. Bytes of the common types can be decoded: those of other types, and of
objects that equal one of another type, cannot, and the objects are stored beside the value (see ``values``).
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import math
import pickle
import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.errors import InvalidKeyError
from firesteel.common.types import Row, RowKind
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow
from firesteel.runtime.model.key_groups import _SEED, _digest, encode_key, key_group_of, row_values
from firesteel.runtime.state.rocksdb.classes import dumps_by_name

__all__ = [
    "GROUP_BYTES",
    "VOID_SUFFIX",
    "KeyEncoder",
    "decode_object",
    "encode_namespace",
    "encode_object",
    "group_start",
    "is_told_by_bytes",
    "split_row",
]

GROUP_BYTES = 2
VOID_SUFFIX = b"\0"
"""What stands for the void namespace in a row."""

_LONG_LENGTH = 255
_pack_long = struct.Struct("<q").pack
_unpack_long = struct.Struct("<q").unpack
_pack_window = struct.Struct(">qq").pack
_unpack_window = struct.Struct(">qq").unpack
_LENGTHS = [bytes([length]) for length in range(_LONG_LENGTH)]
_WINDOW_PREFIX = _LENGTHS[17] + b"W"


def group_start(key_group: int) -> bytes:
    """The first bytes of the rows of a key group."""
    return key_group.to_bytes(GROUP_BYTES, "big")


class KeyEncoder:
    """Gives the beginning of the rows of a key: its group and itself."""

    __slots__ = ("_batch", "_group_heads", "_int_heads", "_known", "_last", "_max_parallelism", "_prefix", "is_told")

    def __init__(self, max_parallelism: int):
        self._max_parallelism = max_parallelism
        self._group_heads = [group_start(group) for group in range(max_parallelism)]
        self._int_heads = [head + _LENGTHS[9] + b"i" for head in self._group_heads]
        self._last: Any = None
        self._prefix = b""
        self._batch: Sequence[Any] = ()
        self._known: dict[int, tuple[bytes, bool]] = {}
        """Of keys of the batch by their identity, which they have as long as they are in it."""
        self.is_told = True
        """Whether the bytes of the last key tell the key."""

    def prefix_of(self, key: Any) -> bytes:
        """The first bytes of the key's rows."""
        if key is self._last and key is not None:
            return self._prefix
        kind = key.__class__
        if kind is int:
            try:
                encoded = _pack_long(key)
            except struct.error:
                prefix = self._prefix_of_any(key)
            else:
                prefix = self._int_heads[_digest(encoded, _SEED) % self._max_parallelism] + encoded
            self.is_told = True
        elif kind is str:
            encoded = encode_key(key)
            head = self._group_heads[_digest(encoded, _SEED) % self._max_parallelism]
            prefix = head + _with_length(encoded)
            self.is_told = True
        elif (known := self._known.get(id(key))) is not None:
            prefix, self.is_told = known
        else:
            prefix = self._prefix_of_any(key)
            self.is_told = is_told_by_bytes(key)
        self._last, self._prefix = key, prefix
        return prefix

    def remember(self, keys: Sequence[Any]) -> None:
        """Encodes the keys of a batch, which are read and written several times, until the next batch."""
        self._known, self._batch = {}, keys
        self._known = {
            id(key): (self._prefix_of_any(key), is_told_by_bytes(key))
            for key in keys
            if key.__class__ is not int and key.__class__ is not str
        }

    def _prefix_of_any(self, key: Any) -> bytes:
        return group_start(key_group_of(key, self._max_parallelism)) + _with_length(encode_object(key))


def _with_length(data: bytes) -> bytes:
    length = len(data)
    if length < _LONG_LENGTH:
        return _LENGTHS[length] + data
    return b"\xff" + length.to_bytes(4, "big") + data


def encode_namespace(namespace: Any) -> bytes:
    """A namespace as it stands in a row."""
    if namespace.__class__ is TimeWindow:
        try:
            return _WINDOW_PREFIX + _pack_window(namespace.start, namespace.end)
        except struct.error:
            pass
    elif namespace is None:
        return VOID_SUFFIX
    return _with_length(encode_object(namespace))


def split_row(row: bytes) -> tuple[bytes, bytes, bytes]:
    """The bytes of the key, of the namespace (empty if void), and the rest of a row's key."""
    start = GROUP_BYTES + 1
    length = row[GROUP_BYTES]
    if length == _LONG_LENGTH:
        length, start = int.from_bytes(row[start : start + 4], "big"), start + 4
    end = start + length
    key = row[start:end]
    length, start = row[end], end + 1
    if length == _LONG_LENGTH:
        length, start = int.from_bytes(row[start : start + 4], "big"), start + 4
    end = start + length
    return key, row[start:end], row[end:]


# ---- objects ----------------------------------------------------------------------------------------


def encode_object(value: Any) -> bytes:
    """The bytes of a key, namespace or map key: the first one is the type."""
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    # within these, encode_key does not distinguish 7 characters from a number
    if isinstance(value, tuple):
        return b"(" + _encode_items(value)
    if isinstance(value, Row):
        return _encode_row(value)
    if isinstance(value, frozenset):
        return b"S" + _encode_items_sorted(value)
    try:
        encoded = encode_key(value)
    except InvalidKeyError:
        # a namespace or a map key may be anything that is hashable
        return b"P" + _pickle(value)
    if len(encoded) == 8 and value == _unpack_long(encoded)[0]:
        return b"i" + encoded
    if encoded[:1] == b"o" and dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value) if field.compare]
        return b"O" + type(value).__qualname__.encode() + b"\0" + _encode_items(fields)
    return encoded


def is_told_by_bytes(value: Any) -> bool:
    """Whether decode_object gives back the value, with its type."""
    kind = type(value)
    if kind in _TOLD:
        return True
    if kind is float:
        return not value.is_integer()
    if kind is tuple:
        return all(map(is_told_by_bytes, value))
    if kind is datetime.datetime or kind is datetime.time:
        return value.tzinfo is None and not value.fold
    return kind not in _ENCODERS and encode_object(value)[:1] == b"P"


def decode_object(data: bytes) -> Any:
    """The object of some bytes, if they can be decoded."""
    return _DECODERS[data[0]](data)


def _encode_items(items: Any) -> bytes:
    return b"".join(map(_item, items))


def _encode_row(row: Row) -> bytes:
    """Rows are equal if kind, names and values are, with names in any order."""
    names, kind = row.get_field_names(), row.get_row_kind()
    if names is None and kind is RowKind.INSERT:
        return b"R" + _encode_items(row)
    told = (kind.value, None if names is None else tuple(sorted(names)))
    return b"N" + _item(told) + _encode_items(row_values(row))


def _encode_items_sorted(items: Any) -> bytes:
    return b"".join(sorted(map(_item, items)))


def _item(item: Any) -> bytes:
    encoded = encode_object(item)
    return len(encoded).to_bytes(4, "big") + encoded


def _decode_tuple(data: bytes) -> tuple[Any, ...]:
    items, start = [], 1
    while start < len(data):
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        items.append(decode_object(data[start + 4 : end]))
        start = end
    return tuple(items)


def _encode_int(value: int) -> bytes:
    try:
        return b"i" + _pack_long(value)
    except struct.error:
        return b"I" + str(int(value)).encode()


def _encode_float(value: float) -> bytes:
    if value.is_integer():
        return _encode_int(int(value))
    # as a map key NaN is found again, unlike in a dictionary
    return b"f" + struct.pack("<d", math.nan if math.isnan(value) else value)


def _encode_time_window(window: TimeWindow) -> bytes:
    try:
        return b"W" + _pack_window(window.start, window.end)
    except struct.error:
        return b"P" + _pickle(window)


def _pickle(value: Any) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, 5)
    # without memory for what it met before, equal values have equal bytes whether or not they share parts
    pickler.fast = True
    try:
        pickler.dump(value)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        return dumps_by_name(value, fast=True)
    return buffer.getvalue()


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    str: lambda value: b"s" + value.encode("utf-8", "surrogatepass"),
    int: _encode_int,
    bool: _encode_int,
    float: _encode_float,
    bytes: lambda value: b"b" + value,
    tuple: lambda value: b"(" + _encode_items(value),
    type(None): lambda _value: b"n",
    TimeWindow: _encode_time_window,
    CountWindow: lambda window: b"C" + _encode_int(window.id),
    GlobalWindow: lambda _window: b"G",
}

_TOLD = frozenset(
    {str, int, bytes, type(None), TimeWindow, CountWindow, GlobalWindow, uuid.UUID, datetime.date, datetime.timedelta}
)

_DECODERS: dict[int, Callable[[bytes], Any]] = {
    ord("s"): lambda data: data[1:].decode("utf-8", "surrogatepass"),
    ord("i"): lambda data: _unpack_long(data[1:])[0],
    ord("I"): lambda data: int(data[1:]),
    ord("f"): lambda data: struct.unpack("<d", data[1:])[0],
    ord("b"): lambda data: data[1:],
    ord("("): _decode_tuple,
    ord("n"): lambda _data: None,
    ord("W"): lambda data: TimeWindow(*_unpack_window(data[1:])),
    ord("C"): lambda data: CountWindow(decode_object(data[1:])),
    ord("G"): lambda _data: GlobalWindow(),
    ord("u"): lambda data: uuid.UUID(bytes=data[1:]),
    ord("d"): lambda data: _decode_time(data[1:].decode()),
    ord("t"): lambda data: datetime.timedelta(microseconds=int(data[1:])),
    ord("P"): lambda data: pickle.loads(data[1:]),
}


def _decode_time(text: str) -> Any:
    if "T" in text:
        return datetime.datetime.fromisoformat(text)
    return datetime.time.fromisoformat(text) if ":" in text else datetime.date.fromisoformat(text)
