"""Generators of columns: each makes an Arrow array of the indexes of rows and 64 random bits for each."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mmh3
import numpy as np

from firesteel.connectors.generators.datagen_fields import Field
from firesteel.table.connectors.nexmark.events import mix_all
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import arrow_type, to_column
from firesteel.types.logical import LogicalType

__all__ = [
    "Booleans",
    "Bytes",
    "Decimals",
    "Floats",
    "Generator",
    "Integers",
    "Lists",
    "Maps",
    "Now",
    "Nullable",
    "Rows",
    "Sequence_",
    "Texts",
    "Timestamps",
    "Words",
    "own_bits",
]

_HEX = np.frombuffer(b"".join(b"%02x" % code for code in range(256)), np.uint16)
_MILLIS_PER_DAY = 86_400_000


def own_bits(name: str) -> int:
    """What tells the random bits of a field from those of others."""
    return mmh3.hash64(name, signed=False)[0]


class Generator(ABC):
    """Makes a column."""

    @abstractmethod
    def make(self, indexes: Any, bits: Any) -> Any:
        """The values of rows: an Arrow array."""


def _unit(bits: Any) -> Any:
    """Numbers from 0 up to 1."""
    return (bits >> np.uint64(11)) * (1.0 / (1 << 53))


@dataclass(frozen=True)
class Booleans(Generator):
    """True or false."""

    def make(self, indexes: Any, bits: Any) -> Any:
        return require_pyarrow("SQL").array(bits & np.uint64(1) == 1)


@dataclass(frozen=True)
class Integers(Generator):
    """Whole numbers between two, both among them."""

    type: LogicalType
    low: int
    high: int

    def make(self, indexes: Any, bits: Any) -> Any:
        span = self.high - self.low + 1
        offsets = bits if span >= 1 << 64 else bits % np.uint64(span)
        numbers = (offsets + np.uint64(self.low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
        target = arrow_type(self.type)
        array = require_pyarrow("SQL").array(numbers)
        return (
            array
            if array.type == target
            else array.cast("int32").cast(target)
            if _is_32(target)
            else array.cast(target)
        )


def _is_32(target: Any) -> bool:
    types = require_pyarrow("SQL").types
    return bool(types.is_date32(target) or types.is_time32(target))


@dataclass(frozen=True)
class Floats(Generator):
    """Numbers between two."""

    type: LogicalType
    low: float
    high: float

    def make(self, indexes: Any, bits: Any) -> Any:
        return require_pyarrow("SQL").array(self.low + (self.high - self.low) * _unit(bits)).cast(arrow_type(self.type))


@dataclass(frozen=True)
class Decimals(Generator):
    """Decimals between two, with all digits of the scale."""

    type: LogicalType
    low: int
    """In units of the last digit."""
    high: int
    scale: int

    def make(self, indexes: Any, bits: Any) -> Any:
        pa = require_pyarrow("SQL")
        if max(abs(self.low), abs(self.high)) < 1 << 62:
            numbers = self.low + ((self.high - self.low + 1) * _unit(bits)).astype(np.int64)
            values: Any = pa.array(np.clip(numbers, self.low, self.high))
        else:
            span = self.high - self.low + 1
            values = pa.array([self.low + (bit * span >> 64) for bit in bits.tolist()], pa.decimal128(38, 0))
        unscaled = values.cast(pa.decimal128(38, 0))
        target = arrow_type(self.type)
        # the same digits, with the point elsewhere
        return pa.Array.from_buffers(target, len(unscaled), unscaled.buffers(), unscaled.null_count)


def _matrix(bits: Any, width: int) -> Any:
    """So many random bytes for each."""
    words = -(-width // 8)
    steps = np.arange(1, words + 1, dtype=np.uint64)
    mixed = mix_all((bits[:, None] + steps).ravel())
    return mixed.view(np.uint8).reshape(len(bits), words * 8)


def _lengths(bits: Any, length: int) -> Any:
    """Random lengths from 1 to the greatest."""
    return (mix_all(bits) % np.uint64(max(length, 1))).astype(np.int64) + min(length, 1)


def _variable(type_: Any, table: Any, lengths: Any) -> Any:
    """A column of rows of bytes, of which the first ones are taken."""
    pa = require_pyarrow("SQL")
    count, width = table.shape
    if lengths is None:
        offsets, data = np.arange(count + 1, dtype=np.int32) * np.int32(width), np.ascontiguousarray(table)
    else:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        data = table[np.arange(width) < lengths[:, None]]
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(type_, count, buffers)


@dataclass(frozen=True)
class Texts(Generator):
    """Hexadecimal digits."""

    length: int
    is_variable: bool = False

    def make(self, indexes: Any, bits: Any) -> Any:
        digits = _HEX[_matrix(bits, (self.length + 1) // 2)].view(np.uint8).reshape(len(bits), -1)
        lengths = _lengths(bits, self.length) if self.is_variable else None
        return _variable(require_pyarrow("SQL").string(), digits[:, : self.length], lengths)


@dataclass(frozen=True)
class Bytes(Generator):
    """Bytes."""

    type: LogicalType
    length: int
    is_variable: bool = False

    def make(self, indexes: Any, bits: Any) -> Any:
        lengths = _lengths(bits, self.length) if self.is_variable else None
        made = _variable(require_pyarrow("SQL").binary(), _matrix(bits, self.length)[:, : self.length], lengths)
        return made.cast(arrow_type(self.type))


@dataclass(frozen=True)
class Now(Generator):
    """The date or the time of day, in UTC."""

    type: LogicalType
    is_date: bool

    def make(self, indexes: Any, bits: Any) -> Any:
        days, millis = divmod(time.time_ns() // 1_000_000, _MILLIS_PER_DAY)
        return to_column([days if self.is_date else millis] * len(indexes), self.type)


@dataclass(frozen=True)
class Timestamps(Generator):
    """The time, less a random part of a duration."""

    type: LogicalType
    max_past_ms: int

    def make(self, indexes: Any, bits: Any) -> Any:
        pa = require_pyarrow("SQL")
        now = time.time_ns() // 1_000_000
        past = (_unit(bits) * self.max_past_ms).astype(np.int64) if self.max_past_ms else np.zeros(len(bits), np.int64)
        target = arrow_type(self.type)
        return pa.array(now - past).cast(pa.timestamp("ms", tz=target.tz)).cast(target, safe=False)


@dataclass(frozen=True)
class Sequence_(Generator):  # noqa: N801 - Sequence is taken
    """Numbers one after the other, as the values of a type."""

    type: LogicalType
    start: int

    def make(self, indexes: Any, bits: Any) -> Any:
        return require_pyarrow("SQL").array(indexes + self.start).cast(arrow_type(self.type), safe=False)


@dataclass(frozen=True)
class Nullable(Generator):
    """Null now and then."""

    values: Generator
    rate: float

    def make(self, indexes: Any, bits: Any) -> Any:
        import pyarrow.compute as pc

        pa = require_pyarrow("SQL")
        made = self.values.make(indexes, bits)
        is_null = _unit(mix_all(bits)) < self.rate
        return pc.if_else(pa.array(is_null), pa.scalar(None, made.type), made)


@dataclass(frozen=True)
class Rows(Generator):
    """Rows of fields."""

    type: LogicalType
    fields: tuple[tuple[str, Generator], ...]

    def make(self, indexes: Any, bits: Any) -> Any:
        made = [part.make(indexes, mix_all(bits ^ np.uint64(own_bits(name)))) for name, part in self.fields]
        target = arrow_type(self.type)
        return require_pyarrow("SQL").StructArray.from_arrays(made, fields=[target.field(i) for i in range(len(made))])


def _repeated(indexes: Any, bits: Any, length: int) -> tuple[Any, Any]:
    steps = np.arange(1, length + 1, dtype=np.uint64)
    return np.repeat(indexes, length), mix_all((bits[:, None] + steps).ravel())


@dataclass(frozen=True)
class Lists(Generator):
    """A number of elements."""

    type: LogicalType
    element: Generator
    length: int

    def make(self, indexes: Any, bits: Any) -> Any:
        pa = require_pyarrow("SQL")
        elements = self.element.make(*_repeated(indexes, bits, self.length))
        offsets = pa.array(np.arange(len(indexes) + 1, dtype=np.int32) * np.int32(self.length))
        return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(self.type))


@dataclass(frozen=True)
class Maps(Generator):
    """At most a number of entries: of equal keys the last one counts."""

    type: LogicalType
    key: Generator
    value: Generator
    length: int

    def make(self, indexes: Any, bits: Any) -> Any:
        pa = require_pyarrow("SQL")
        places, mixed = _repeated(indexes, bits, self.length)
        keys = self.key.make(places, mixed).to_pylist()
        last: dict[Any, int] = {}
        for place, key in enumerate(keys):
            last[place // self.length, _hashable(key)] = place
        kept = np.array(sorted(last.values()), np.int64)
        offsets = np.searchsorted(kept, np.arange(len(indexes) + 1) * self.length).astype(np.int32)
        key_column = self.key.make(places, mixed).take(pa.array(kept))
        values = self.value.make(places, mix_all(mixed)).take(pa.array(kept))
        return pa.MapArray.from_arrays(pa.array(offsets), key_column, values).cast(arrow_type(self.type))


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value


@dataclass(frozen=True)
class Words(Generator):
    """Texts of a function of an index and random bits: names, addresses."""

    field: Callable[[], Field]

    def make(self, indexes: Any, bits: Any) -> Any:
        field = self.field()
        pairs: Sequence[Any] = list(zip(indexes.tolist(), bits.tolist(), strict=True))
        return require_pyarrow("SQL").array([field(index, bit) for index, bit in pairs], "string")
