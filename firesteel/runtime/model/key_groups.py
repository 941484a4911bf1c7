"""Keys, key groups and the subtasks that own them: stable across processes, machines and Python versions.

Equal keys must land in the same key group, and in Python ``1 == 1.0 == True``. So a key is first encoded
canonically (equal keys give equal bytes, in any process), then hashed with murmur3. ``hash()`` is never used.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mmh3

from firesteel.common.errors import InvalidKeyError
from firesteel.common.types import Row

__all__ = [
    "HASH_SEED",
    "KEY_ENCODING",
    "MAX_KEY_BYTES",
    "KeyGroupRange",
    "RoutingTable",
    "encode_key",
    "key_group_of",
    "row_values",
    "subtask_of",
]

KEY_ENCODING = 2
"""The version of the encoding of keys, which stands with all keyed state.

Version 1 took the values of a row in the order of its fields, and times of day and ambiguous datetimes by their zones,
so that equal keys could be two. In version 2 such keys may belong to other key groups.
"""

HASH_SEED = _SEED = 42
_pack_long = struct.Struct("<q").pack
MAX_KEY_BYTES = 1 << 20
"""A key is held in memory by every map that mentions it: one megabyte is already a mistake."""


def key_group_of(key: Any, max_parallelism: int) -> int:
    """The key group of a key.

    >>> key_group_of("a", 128) == key_group_of("a", 128)
    True
    >>> key_group_of(1, 128) == key_group_of(1.0, 128) == key_group_of(True, 128)
    True
    """
    return mmh3.mmh3_32_uintdigest(encode_key(key), _SEED) % max_parallelism


def subtask_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group."""
    return key_group * parallelism // max_parallelism


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """The consecutive key groups one subtask owns, both ends included."""

    start: int
    end: int

    @staticmethod
    def of(subtask: int, max_parallelism: int, parallelism: int) -> KeyGroupRange:
        """The range of a subtask.

        >>> [KeyGroupRange.of(i, 128, 3) for i in range(3)]
        [KeyGroupRange(start=0, end=42), KeyGroupRange(start=43, end=85), KeyGroupRange(start=86, end=127)]
        """
        start = (subtask * max_parallelism + parallelism - 1) // parallelism
        end = ((subtask + 1) * max_parallelism - 1) // parallelism
        return KeyGroupRange(start, end)

    def __contains__(self, key_group: int) -> bool:
        return self.start <= key_group <= self.end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))

    def __len__(self) -> int:
        return self.end - self.start + 1


def encode_key(key: Any) -> bytes:
    """The canonical bytes of a key: equal keys have equal bytes."""
    if type(key) is str:
        encoded = b"s" + key.encode("utf-8", "surrogatepass")
    elif type(key) is int:
        encoded = _encode_int(key)
    elif key is None:
        raise InvalidKeyError(
            "The key is None.", hint="A key selector must return a value for every record: filter such records first."
        )
    else:
        encoded = _encode(key)
    if len(encoded) > MAX_KEY_BYTES:
        raise InvalidKeyError(
            f"The key is {len(encoded):,} bytes long; at most {MAX_KEY_BYTES:,} are allowed.",
            hint="Key by a short identifier, or by a digest of the long value.",
        )
    return encoded


def _encode_int(value: int) -> bytes:
    try:
        return _pack_long(value)
    except struct.error:
        return b"I" + str(value).encode()


def _encode(key: Any) -> bytes:
    encoder = _ENCODERS.get(type(key))
    if encoder is not None:
        return encoder(key)
    for base, base_encoder in _BASE_ENCODERS:
        if isinstance(key, base):
            return base_encoder(key)
    if dataclasses.is_dataclass(key) and not isinstance(key, type) and type(key).__hash__ is not None:
        fields = [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare]
        return _named(key, _encode_items(fields))
    item = getattr(key, "item", None)
    if callable(item) and getattr(key, "shape", None) == ():  # a numpy scalar equals its Python value
        value = item()
        if type(value) is not type(key):  # a longdouble has none
            return _encode(value)
    raise _rejection(key)


def _rejection(key: Any) -> InvalidKeyError:
    kind = type(key).__name__
    try:
        hash(key)
    except TypeError:
        return InvalidKeyError(
            f"A key of type '{kind}' is unhashable.",
            hint="Use an immutable key: a tuple instead of a list, a frozenset instead of a set.",
        )
    return InvalidKeyError(
        f"A key of type '{kind}' has no stable form that is the same in every process.",
        hint="Use str, bytes, int, float, date and time types, UUID, Enum, tuple, Row or a frozen dataclass as key.",
    )


def _encode_float(value: float) -> bytes:
    if math.isnan(value):
        raise InvalidKeyError(
            "The key is NaN, which does not equal itself: its state could never be found again.",
            hint="Replace NaN in the key selector, or filter such records first.",
        )
    if value.is_integer():
        return _encode_int(int(value))
    return b"f" + struct.pack("<d", value)


def _encode_rational(value: Any) -> bytes:
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        return _encode_float(float(value))
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        return _encode_int(numerator)
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if as_float == value:
        return _encode_float(as_float)
    return b"q" + f"{numerator}/{denominator}".encode()


def _encode_items(items: Any) -> bytes:
    parts = [b"n" if item is None else _encode(item) for item in items]
    return b"(" + b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def _named(key: Any, encoded: bytes) -> bytes:
    return b"o" + type(key).__qualname__.encode() + b"\0" + encoded


@functools.lru_cache(1024)
def _order_of(names: tuple[str, ...]) -> tuple[int, ...] | None:
    order = sorted(range(len(names)), key=lambda index: str(names[index]))
    return None if order == list(range(len(names))) else tuple(order)


def row_values(row: Row) -> list[Any]:
    """The values of a row in the order of its names: rows are equal in any order of their fields.

    >>> row_values(Row(name="Ada", age=36)), row_values(Row("Ada", 36))
    ([36, 'Ada'], ['Ada', 36])
    """
    names, values = row._fields, row._values
    order = None if names is None else _order_of(names)
    if order is None or len(order) != len(values):
        return values
    return [values[index] for index in order]


def _encode_row(row: Row) -> bytes:
    return b"R" + _encode_items(row_values(row))


def _encode_enum(key: enum.Enum) -> bytes:
    return _named(key, key.name.encode())


def _encode_datetime(value: datetime.datetime) -> bytes:
    # aware ones are equal when they are the same instant; of one that occurs twice the first counts, as for its hash
    offset = value.replace(fold=0).utcoffset()
    if offset is None:
        return b"d" + value.replace(tzinfo=None).isoformat().encode()
    try:
        return b"d" + (value.replace(tzinfo=_UTC) - offset).isoformat().encode()
    except OverflowError:
        return b"d" + _microseconds(value.replace(tzinfo=None) - _MIDNIGHT - offset)


def _encode_time(value: datetime.time) -> bytes:
    # aware ones are equal when they are the same time in UTC, which may be on another day
    offset = value.replace(fold=0).utcoffset()
    if offset is None:
        return b"d" + value.replace(tzinfo=None).isoformat().encode()
    since_midnight = datetime.datetime.combine(_DAY, value.replace(tzinfo=None)) - offset - _MIDNIGHT
    if since_midnight.days:
        return b"d" + _microseconds(since_midnight)
    return b"d" + (_MIDNIGHT + since_midnight).time().replace(tzinfo=_UTC).isoformat().encode()


def _microseconds(value: datetime.timedelta) -> bytes:
    return str(value // datetime.timedelta(microseconds=1)).encode()


_UTC = datetime.timezone.utc
_DAY = datetime.date(2000, 1, 1)
_MIDNIGHT = datetime.datetime.combine(_DAY, datetime.time())

_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    str: lambda key: b"s" + key.encode("utf-8", "surrogatepass"),
    int: _encode_int,
    bool: lambda key: _encode_int(int(key)),
    float: _encode_float,
    bytes: lambda key: b"b" + key,
    tuple: _encode_items,
}

_BASE_ENCODERS: tuple[tuple[Any, Callable[[Any], bytes]], ...] = (
    (str, lambda key: b"s" + str.__str__(key).encode("utf-8", "surrogatepass")),
    (bytes, lambda key: b"b" + bytes(key)),
    (int, lambda key: _encode_int(int(key))),
    (float, lambda key: _encode_float(float(key))),
    ((decimal.Decimal, fractions.Fraction), _encode_rational),
    (Row, _encode_row),
    (tuple, _encode_items),
    (datetime.datetime, _encode_datetime),
    (datetime.date, lambda key: b"d" + key.isoformat().encode()),
    (datetime.time, _encode_time),
    (datetime.timedelta, lambda key: b"t" + _microseconds(key)),
    (uuid.UUID, lambda key: b"u" + key.bytes),
    (frozenset, lambda key: b"S" + b"".join(sorted(_encode_items((item,)) for item in key))),
    # last: a member that is a number, a text or a tuple, too, equals that; any other member equals only itself
    (enum.Enum, _encode_enum),
)


_digest = mmh3.mmh3_32_uintdigest


class RoutingTable(dict[Any, Any]):
    """What to do with a record of a given key: a cache from key to its subtask's handler, bounded.

    ``table[key]`` costs one dictionary lookup for a key seen before. Hashing runs in ``__missing__`` only. When
    full the table stops growing; after as many misses again it starts over, so that it follows keys that come and
    go. Where most records missed, it stays empty for a while: with millions of keys a lookup that fails costs more
    in a large dictionary, which is not in the processor's cache, than in an empty one.
    """

    __slots__ = ("_by_group", "_granted", "_max_parallelism", "_records", "_room", "_seen")

    CAPACITY = 1 << 18
    BYPASS = 1 << 24
    """Misses for which a table that was of no use stays empty."""

    def __init__(self, handlers: list[Any], max_parallelism: int, records: Callable[[], int]):
        super().__init__()
        self._by_group = [
            handlers[subtask_of(group, max_parallelism, len(handlers))] for group in range(max_parallelism)
        ]
        self._max_parallelism = max_parallelism
        self._records = records
        self._room = self._granted = self.CAPACITY
        self._seen = records()

    def __missing__(self, key: Any) -> Any:
        # with millions of keys this runs for most records
        try:
            encoded = _pack_long(key) if key.__class__ is int else encode_key(key)
        except struct.error:
            encoded = encode_key(key)
        handler = self._by_group[_digest(encoded, _SEED) % self._max_parallelism]
        room = self._room = self._room - 1
        if room >= 0:
            if room < self.CAPACITY:
                self[key] = handler
        elif room < -self.CAPACITY:
            self._start_over()
        return handler

    def _start_over(self) -> None:
        records = self._records()
        misses = self._granted - self._room
        is_useful = records - self._seen > 2 * misses
        self._room = self._granted = self.CAPACITY if is_useful else self.CAPACITY + self.BYPASS
        self._seen = records
        self.clear()
