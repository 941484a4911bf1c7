"""A hash table from integers to slots that looks up whole arrays."""

from __future__ import annotations

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
        """The slot of each key, -1 for those that are not there."""
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

    def insert(self, keys: Any, slots: Any) -> None:
        """Adds keys, each once, that are not there."""
        if 2 * (self._used + len(keys)) > len(self._slots):
            self._grow(len(keys))
        self._put(keys, slots.astype(np.int32))

    def remove(self, keys: Any) -> None:
        """Removes keys that are there."""
        places = self._places(keys)
        left = np.arange(len(keys))
        while len(left):
            hits = (self._keys[places] == keys[left]) & (self._slots[places] >= 0)
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
