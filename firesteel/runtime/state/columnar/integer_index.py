"""A hash table from integers to slots that looks up whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["IntegerIndex"]

_EMPTY, _REMOVED = -1, -2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIN_BITS = 10


class IntegerIndex:
    """Open addressing with linear probing, at most half full. Each step is done for all keys that are left.

    >>> index = IntegerIndex()
    >>> index.insert(np.array([5, 7]), np.array([0, 1]))
    >>> index.find(np.array([7, 6, 5])).tolist()
    [1, -1, 0]
    """

    def __init__(self) -> None:
        self._allocate(_MIN_BITS)

    def _allocate(self, bits: int) -> None:
        self._bits = bits
        self._shift = np.uint64(64 - bits)
        self._mask = (1 << bits) - 1
        self._keys = np.zeros(1 << bits, np.int64)
        self._slots = np.full(1 << bits, _EMPTY, np.int32)
        self._used = 0
        """Places that are not empty."""

    @property
    def nbytes(self) -> int:
        return int(self._keys.nbytes + self._slots.nbytes)

    def find(self, keys: Any) -> Any:
        """The slot of each key, -1 for those that are not there; one of those that a key has."""
        places = self._places(keys)
        found = self._slots[places]
        misses = (self._keys[places] != keys) | (found == _REMOVED)
        misses &= found != _EMPTY
        if not misses.any():
            return found.astype(np.intp)
        slots = found.astype(np.intp)
        left = np.flatnonzero(misses)
        while len(left):
            places = (places[misses] + 1) & self._mask
            found = self._slots[places]
            misses = ((self._keys[places] != keys[left]) | (found == _REMOVED)) & (found != _EMPTY)
            slots[left[~misses]] = found[~misses]
            left = left[misses]
        return slots

    def find_equal(self, hashes: Any, equal: Callable[[Any, Any], Any]) -> Any:
        """As ``find``, of hashes: ``equal(positions, slots)`` is whether the same was hashed."""
        slots = self.find(hashes)
        found = np.flatnonzero(slots >= 0)
        if len(found):
            for position in found[~equal(found, slots[found])].tolist():
                candidates = np.array(self.slots_of(int(hashes[position])))
                same = candidates[equal(np.full(len(candidates), position), candidates)]
                slots[position] = same[0] if len(same) else -1
        return slots

    def insert(self, keys: Any, slots: Any) -> None:
        """Adds keys that are not there; or, of a hash table whose owner compares what keys are hashes of, any."""
        if 2 * (self._used + len(keys)) > len(self._slots):
            self._grow(len(keys))
        self._put(keys, slots.astype(np.int32))

    def slots_of(self, key: int) -> list[int]:
        """All slots of a key that was added more than once."""
        (place,) = self._places(np.array([key], np.int64)).tolist()
        found = []
        while (slot := int(self._slots[place])) != _EMPTY:
            if slot != _REMOVED and self._keys[place] == key:
                found.append(slot)
            place = (place + 1) & self._mask
        return found

    def remove(self, keys: Any, slots: Any) -> None:
        """Removes keys that are there with these slots."""
        places = self._places(keys)
        left = np.arange(len(keys))
        while len(left):
            hits = (self._keys[places] == keys[left]) & (self._slots[places] == slots[left])
            self._slots[places[hits]] = _REMOVED
            places = (places[~hits] + 1) & self._mask
            left = left[~hits]

    def _put(self, keys: Any, slots: Any) -> None:
        self._used += len(keys)
        places = self._places(keys)
        while len(keys):
            free = self._slots[places] < 0
            # several keys may have one place: the last writer has it
            self._slots[places[free]] = slots[free]
            won = self._slots[places] == slots
            self._keys[places[won]] = keys[won]
            lost = ~won
            keys, slots, places = keys[lost], slots[lost], (places[lost] + 1) & self._mask

    def _grow(self, more: int) -> None:
        live = np.flatnonzero(self._slots >= 0)
        keys, slots = self._keys[live], self._slots[live]
        bits = _MIN_BITS
        while 1 << bits < 3 * (len(live) + more):
            bits += 1
        self._allocate(bits)
        self._put(keys, slots)

    def _places(self, keys: Any) -> Any:
        return ((keys.view(np.uint64) * _GOLDEN) >> self._shift).astype(np.intp)
