"""A column with numbers for each value of a key, such as how often it occurs: all keys in one hash table of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PackedMap", "PairColumn", "Pairs", "map_value", "numbers_of", "stored_value"]

_EMPTY = -1
_GOLDEN, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HALF = np.uint64(32)
_MIN_BITS = 8
_MIN_PLACES = 64


@dataclass(frozen=True)
class Pairs:
    """The dtype of such a column: how many numbers a value has, and whether values are objects or integers."""

    width: int
    has_objects: bool
    in_rows: bool = False
    """Whether snapshots have the values of a key as a dictionary in its tuple instead of in a map state."""


class PairColumn:
    """Pairs of a slot and a value have numbers, which are 0 at first; those with zeros only take no room.

    Open addressing with linear probing. Each step is done for all pairs that are left. A column that was never read
    after it was written, such as that of a local phase, has no hash table.

    >>> column = PairColumn(Pairs(1, has_objects=False))
    >>> slots, values = np.array([3, 3, 4]), np.array([10, 20, 10])
    >>> column.read(slots, values).tolist()
    [[0], [0], [0]]
    >>> column.write(np.array([[1], [2], [1]]))
    >>> column.read(np.array([3, 4]), np.array([20, 20])).tolist()
    [[2], [0]]
    >>> column.maps_at(np.array([3, 4, 5]))
    [{10: 1, 20: 2}, {10: 1}, {}]
    """

    def __init__(self, dtype: Pairs) -> None:
        self._width = dtype.width
        self._interner = _Interner() if dtype.has_objects else None
        self._slots = np.zeros(0, np.int64)
        self._values = np.zeros(0, np.int64)
        self._numbers = np.zeros((0, dtype.width), np.int64)
        self._next = 0
        """Places that have been given."""
        self._dead = 0
        """How many of them have no pair any more; their slot is -1."""
        self._sizes = np.zeros(0, np.int64)
        """Pairs by slot."""
        self._indexed = 0
        """Places below are in the hash table."""
        self._table = np.full(1 << _MIN_BITS, _EMPTY, np.int32)
        self._shift = np.uint64(64 - _MIN_BITS)
        self._read: tuple[Any, Any, Any] = ((), (), ())

    def __len__(self) -> int:
        return self._next - self._dead

    # -- numbers --------------------------------------------------------------------------------------

    def read(self, slots: Any, values: Any) -> Any:
        """The numbers of pairs, each of which occurs once."""
        numbers = np.zeros((len(slots), self._width), np.int64)
        keys = values if self._interner is None else self._interner.find(values)
        if len(self):
            places = self._find(slots, keys)
            known = places >= 0
            numbers[known] = self._numbers[places[known]]
        else:
            places = np.full(len(slots), _EMPTY, np.intp)
        self._read = (slots, values, places)
        return numbers

    def write(self, numbers: Any) -> None:
        """Sets the numbers of the pairs that were read last."""
        slots, values, places = self._read
        is_there = numbers[:, 0] != 0 if self._width == 1 else numbers.any(axis=1)
        known = places >= 0
        kept = known & is_there
        self._numbers[places[kept]] = numbers[kept]
        gone = known & ~is_there
        if gone.any():
            self._remove(places[gone])
        added = ~known & is_there
        if added.any():
            self._append(slots[added], values[added], numbers[added])

    def clear(self, slots: Any) -> None:
        """Removes all pairs of slots."""
        slots = slots[slots < len(self._sizes)]
        if len(slots) and self._sizes[slots].any():
            self._remove(self._places_of(slots)[1])

    # -- all values of slots --------------------------------------------------------------------------

    def of(self, slots: Any) -> tuple[Any, Any, Any]:
        """How many pairs each slot has, then their values and numbers, slot by slot as they came."""
        owners, places = self._places_of(slots)
        return np.bincount(owners, minlength=len(slots)), self._values_at(places), self._numbers[places]

    def maps_at(self, slots: Any) -> list[dict[Any, Any]]:
        """A dictionary for each slot, from a value to its number, or to a tuple of its numbers."""
        return [packed.unpacked() for packed in self.packed_at(slots)]

    def packed_at(self, slots: Any) -> list[PackedMap]:
        """The same, packed."""
        sizes, values, numbers = self.of(slots)
        ends = np.cumsum(sizes)
        bounds = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
        return [PackedMap(values[start:end], numbers[start:end]) for start, end in bounds]

    def load(self, slots: Any, maps: Iterable[Mapping[Any, Any]]) -> None:
        """Adds the values of slots that have none."""
        owners: list[int] = []
        values: list[Any] = []
        numbers: list[Any] = []
        for slot, entries in zip(slots.tolist(), maps, strict=True):
            owners += [slot] * len(entries)
            values += entries
            numbers += entries.values()
        if owners:
            kept = np.fromiter(values, np.int64 if self._interner is None else object, len(values))
            self._append(np.array(owners, np.int64), kept, numbers_of(numbers, self._width))

    # -- places ---------------------------------------------------------------------------------------

    def _places_of(self, slots: Any) -> tuple[Any, Any]:
        """For each pair of slots which of these it belongs to, and its place."""
        live = np.flatnonzero(self._slots[: self._next] >= 0)
        order_of = np.full(max(len(self._sizes), int(slots.max(initial=-1)) + 1), -1, np.intp)
        order_of[slots] = np.arange(len(slots))
        owners = order_of[self._slots[live]]
        live, owners = live[owners >= 0], owners[owners >= 0]
        order = np.argsort(owners, kind="stable")
        return owners[order], live[order]

    def _values_at(self, places: Any) -> Any:
        values = self._values[places]
        return values if self._interner is None else self._interner.values_of(values)

    def _append(self, slots: Any, values: Any, numbers: Any) -> None:
        count = len(slots)
        self._reserve(count)
        start = self._next
        self._slots[start : start + count] = slots
        self._values[start : start + count] = values if self._interner is None else self._interner.refer(values)
        self._numbers[start : start + count] = numbers
        self._next += count
        highest = int(slots.max())
        if highest >= len(self._sizes):
            self._sizes = _resized(self._sizes, max(2 * len(self._sizes), highest + 1))
        np.add.at(self._sizes, slots, 1)

    def _remove(self, places: Any) -> None:
        np.subtract.at(self._sizes, self._slots[places], 1)
        self._slots[places] = -1
        self._dead += len(places)
        if self._interner is not None:
            self._interner.release(self._values[places])

    def _reserve(self, count: int) -> None:
        needed = self._next + count
        if needed <= len(self._slots):
            return
        if self._dead > self._next // 4:
            live = np.flatnonzero(self._slots[: self._next] >= 0)
            self._slots, self._values, self._numbers = self._slots[live], self._values[live], self._numbers[live]
            self._next, self._dead, needed = len(live), 0, len(live) + count
            self._indexed = 0
            self._table[:] = _EMPTY
        capacity = max(needed, 3 * self._next // 2, _MIN_PLACES)
        self._slots, self._values = _resized(self._slots, capacity), _resized(self._values, capacity)
        self._numbers = _resized(self._numbers, capacity)

    # -- the hash table -------------------------------------------------------------------------------

    def _find(self, slots: Any, values: Any) -> Any:
        """The place of each pair, -1 for those that are not there."""
        self._index()
        mask = len(self._table) - 1
        at = self._home(slots, values)
        places = self._table[at].astype(np.intp)
        left = np.flatnonzero((places >= 0) & ((self._values[places] != values) | (self._slots[places] != slots)))
        at = at[left]
        while len(left):
            at = (at + 1) & mask
            found = self._table[at]
            places[left] = found
            differs = (self._values[found] != values[left]) | (self._slots[found] != slots[left])
            differs &= found >= 0
            left, at = left[differs], at[differs]
        return places

    def _index(self) -> None:
        """Puts the places that were given since into the hash table."""
        if self._indexed == self._next:
            return
        if 2 * self._next > len(self._table):
            bits = _MIN_BITS
            while 1 << bits < 3 * self._next:
                bits += 1
            self._table = np.full(1 << bits, _EMPTY, np.int32)
            self._shift = np.uint64(64 - bits)
            self._indexed = 0
        mask = len(self._table) - 1
        places = np.arange(self._indexed, self._next, dtype=np.int32)
        at = self._home(self._slots[places], self._values[places])
        while len(places):
            free = self._table[at] == _EMPTY
            # several pairs may have one home: the last writer has it
            self._table[at[free]] = places[free]
            lost = self._table[at] != places
            places, at = places[lost], (at[lost] + 1) & mask
        self._indexed = self._next

    def _home(self, slots: Any, values: Any) -> Any:
        mixed = values.view(np.uint64) * _GOLDEN + slots.astype(np.int64, copy=False).view(np.uint64) * _OTHER
        mixed ^= mixed >> _HALF
        return ((mixed * _GOLDEN) >> self._shift).astype(np.intp)


class _Interner:
    """Numbers objects that pairs have, and forgets those that none has."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._objects = np.full(64, None, object)
        self._references = np.zeros(64, np.int64)
        self._free: list[int] = []

    def find(self, values: Any) -> Any:
        """The number of each object, -1 if it has none."""
        get = self._numbers.get
        return np.fromiter([get(value, -1) for value in values.tolist()], np.int64, len(values))

    def refer(self, values: Any) -> Any:
        """The number of each object, which one more pair has."""
        numbers = np.fromiter(map(self._number, values.tolist()), np.int64, len(values))
        np.add.at(self._references, numbers, 1)
        return numbers

    def release(self, numbers: Any) -> None:
        """One pair less has each of these objects."""
        np.subtract.at(self._references, numbers, 1)
        for number in np.unique(numbers[self._references[numbers] == 0]).tolist():
            del self._numbers[self._objects[number]]
            self._objects[number] = None
            self._free.append(number)

    def values_of(self, numbers: Any) -> Any:
        """The objects of numbers."""
        return self._objects[numbers]

    def _number(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._free.pop() if self._free else len(self._numbers)
            if number >= len(self._objects):
                self._objects = _resized(self._objects, 2 * number)
                self._references = _resized(self._references, 2 * number)
            self._numbers[value] = number
            self._objects[number] = value
        return number


class PackedMap:
    """The values of a key and their numbers, which are a dictionary when they have been pickled and read."""

    __slots__ = ("_numbers", "_values")

    def __init__(self, values: Any, numbers: Any) -> None:
        self._values = values
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._values)

    def unpacked(self) -> dict[Any, Any]:
        """The dictionary."""
        return _dictionary(self._values.tolist(), self._numbers)

    def stored(self) -> PackedMap:
        """The same as a map state has it, where null is not a key."""
        if self._values.dtype != object:
            return self
        values = [stored_value(value) for value in self._values.tolist()]
        return PackedMap(np.fromiter(values, object, len(values)), self._numbers)

    def __reduce__(self) -> Any:
        # not numpy's own form, which names its modules
        values = self._values.tolist() if self._values.dtype == object else self._values.tobytes()
        return _restored, (values, self._numbers.shape[1], self._numbers.tobytes())


def _restored(values: Any, width: int, numbers: bytes) -> dict[Any, Any]:
    if isinstance(values, bytes):
        values = np.frombuffer(values, np.int64).tolist()
    return _dictionary(values, np.frombuffer(numbers, np.int64).reshape(-1, width))


def _dictionary(values: list[Any], numbers: Any) -> dict[Any, Any]:
    entries = numbers[:, 0].tolist() if numbers.shape[1] == 1 else map(tuple, numbers.tolist())
    return dict(zip(values, entries, strict=True))


def numbers_of(entries: Any, width: int) -> Any:
    """The numbers of a list of entries of maps as an array with a row for each."""
    return np.array(entries, np.int64).reshape(len(entries), width)


def stored_value(value: Any) -> Any:
    """A value as the key of a map state: a stand-in for null."""
    return (None,) if value is None else value


def map_value(stored: Any) -> Any:
    """The value that a key of a map state stands for."""
    return None if stored == (None,) else stored


def _resized(array: Any, capacity: int) -> Any:
    if array.dtype == object:
        larger = np.full(capacity, None, object)
    else:
        larger = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
