"""Which slot a key has: for keys of any kind, and for integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from firesteel.runtime.columns.keys import state_key
from firesteel.runtime.state.columnar.integer_index import IntegerIndex
from firesteel.runtime.state.columnar.keys import BatchKeys, are_hashed, are_integers
from firesteel.runtime.state.columnar.pairs import PairColumn

__all__ = ["IntegerSlots", "KeySlots", "ObjectSlots", "SlotPool", "grown", "key_slots", "reset"]

_MIN_CAPACITY = 1024
_NULL = state_key(None)


class SlotPool:
    """Slots from 0 on; those given back are taken again."""

    def __init__(self) -> None:
        self.capacity = _MIN_CAPACITY
        """The length that arrays by slot need."""
        self.is_live = np.zeros(self.capacity, bool)
        self._free: list[Any] = []
        """Arrays of slots that were given back."""
        self._next = 0
        self.count = 0
        """The number of slots that are taken."""

    def live(self) -> Any:
        """All slots that are taken."""
        return np.flatnonzero(self.is_live[: self._next])

    def take(self, count: int) -> Any:
        """Slots that are free; the caller sees to it that arrays reach ``capacity``."""
        taken = []
        self.count += count
        while count and self._free:
            last = self._free.pop()
            if len(last) > count:
                self._free.append(last[count:])
                last = last[:count]
            taken.append(last)
            count -= len(last)
        if count or not taken:
            taken.append(np.arange(self._next, self._next + count))
            self._next += count
            while self._next > self.capacity:
                self.capacity *= 2
        slots = taken[0] if len(taken) == 1 else np.concatenate(taken)
        self.is_live = grown(self.is_live, self.capacity)
        self.is_live[slots] = True
        return slots

    def give_back(self, slots: Any) -> None:
        """The slots are free again."""
        self.is_live[slots] = False
        self.count -= len(slots)
        self._free.append(slots)


class KeySlots(SlotPool, ABC):
    """Numbers keys; the numbers of removed ones are given again."""

    @abstractmethod
    def find(self, keys: BatchKeys) -> Any:
        """The slot of each key, -1 if it has none."""

    @abstractmethod
    def insert(self, keys: BatchKeys, codes: Any, slots: Any) -> None:
        """Gives slots to some of the keys of a batch."""

    @abstractmethod
    def remove(self, slots: Any) -> None:
        """Takes the slots of keys back."""

    @abstractmethod
    def keys_at(self, slots: Any) -> list[Any]:
        """The keys of slots as keyed state has them."""

    @abstractmethod
    def slots_of(self, keys: Sequence[Any]) -> Any:
        """The slot of each key, as keyed state has it; -1 if it has none."""

    def slot_of(self, key: Any) -> int:
        """The slot of one key, -1 if it has none."""
        return int(self.slots_of([key])[0])

    @abstractmethod
    def load(self, keys: list[Any]) -> None:
        """Gives the slots from 0 on to keys, when there are none yet."""


class IntegerSlots(KeySlots):
    """Slots of integers, and of null."""

    def __init__(self) -> None:
        super().__init__()
        self._index = IntegerIndex()
        self._keys = np.zeros(self.capacity, np.int64)
        self._null_slot = -1

    def find(self, keys: BatchKeys) -> Any:
        slots = self._index.find(keys.integers)
        if keys.null_code >= 0:
            slots[keys.null_code] = self._null_slot
        return slots

    def insert(self, keys: BatchKeys, codes: Any, slots: Any) -> None:
        if keys.null_code >= 0:
            is_null = codes == keys.null_code
            if is_null.any():
                self._null_slot = int(slots[is_null][0])
                codes, slots = codes[~is_null], slots[~is_null]
        self._add(keys.integers[codes], slots)

    def remove(self, slots: Any) -> None:
        self.give_back(slots)
        if self._null_slot >= 0:
            is_null = slots == self._null_slot
            if is_null.any():
                self._null_slot = -1
                slots = slots[~is_null]
        self._index.remove(self._keys[slots], slots)

    def keys_at(self, slots: Any) -> list[Any]:
        keys: list[Any] = self._keys[slots].tolist()
        if self._null_slot >= 0:
            for index in np.flatnonzero(slots == self._null_slot).tolist():
                keys[index] = _NULL
        return keys

    def slots_of(self, keys: Sequence[Any]) -> Any:
        is_null = np.fromiter((key == _NULL for key in keys), bool, len(keys))
        slots = self._index.find(np.array([0 if key == _NULL else key for key in keys], np.int64))
        return np.where(is_null, self._null_slot, slots)

    def load(self, keys: list[Any]) -> None:
        slots = self.take(len(keys))
        if _NULL in keys:
            self._null_slot = keys.index(_NULL)
        numbers = np.array([0 if key == _NULL else key for key in keys], np.int64)
        is_number = slots != self._null_slot
        self._add(numbers[is_number], slots[is_number])

    def _add(self, numbers: Any, slots: Any) -> None:
        self._keys = grown(self._keys, self.capacity)
        self._keys[slots] = numbers
        self._index.insert(numbers, slots)


class ObjectSlots(KeySlots):
    """Slots of keys of any kind, in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self._index: dict[Any, int] = {}
        self._keys = np.full(self.capacity, None, object)

    def find(self, keys: BatchKeys) -> Any:
        get = self._index.get
        return np.fromiter([get(key, -1) for key in keys.values], np.intp, keys.count)

    def insert(self, keys: BatchKeys, codes: Any, slots: Any) -> None:
        values = keys.values
        self._add(values if len(codes) == len(values) else [values[code] for code in codes.tolist()], slots)

    def remove(self, slots: Any) -> None:
        for key in self._keys[slots].tolist():
            del self._index[key]
        self._keys[slots] = None
        self.give_back(slots)

    def keys_at(self, slots: Any) -> list[Any]:
        keys: list[Any] = self._keys[slots].tolist()
        return keys

    def slots_of(self, keys: Sequence[Any]) -> Any:
        return np.array([self._index.get(key, -1) for key in keys], np.intp)

    def load(self, keys: list[Any]) -> None:
        self._add(keys, self.take(len(keys)))

    def _add(self, keys: list[Any], slots: Any) -> None:
        self._keys = grown(self._keys, self.capacity)
        self._keys[slots] = np.fromiter(keys, object, len(keys))
        self._index.update(zip(keys, slots.tolist(), strict=True))


def key_slots(types: Sequence[Any]) -> KeySlots:
    """Slots for keys whose columns have these types of Arrow."""
    if are_integers(types):
        return IntegerSlots()
    if are_hashed(types):
        from firesteel.runtime.state.columnar.hashed_slots import HashedSlots

        return HashedSlots(tuple(types))
    return ObjectSlots()


def grown(array: Any, capacity: int) -> Any:
    """The array with room for more; what is new has the initial value."""
    if isinstance(array, PairColumn) or len(array) >= capacity:
        return array
    larger = np.full(capacity, None, object) if array.dtype == object else np.zeros(capacity, array.dtype)
    larger[: len(array)] = array
    return larger


def reset(columns: Iterable[Any], slots: Any) -> None:
    """Gives columns their initial values at slots."""
    for column in columns:
        if isinstance(column, PairColumn):
            column.clear(slots)
        else:
            column[slots] = None if column.dtype == object else 0
