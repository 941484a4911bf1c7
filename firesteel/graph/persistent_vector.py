"""Persistent vector: an immutable sequence with cheap copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

import msgspec

__all__ = ["PersistentVector"]

T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS


class PersistentVector(msgspec.Struct, Generic[T], frozen=True):
    """A tuple in chunks. A copy with another element shares all chunks but one.

    A copy of a tuple of 400 objects touches each of them, to count its references; a copy of this touches 45.

    >>> vector = PersistentVector.of("abc")
    >>> list(vector.replaced(1, "x")), list(vector), vector[2], len(vector)
    (['a', 'x', 'c'], ['a', 'b', 'c'], 'c', 3)
    """

    _chunks: tuple[tuple[T, ...], ...] = ()
    """All but the last are full."""

    @classmethod
    def of(cls, items: Iterable[T]) -> PersistentVector[T]:
        """A vector of these elements."""
        known = tuple(items)
        return cls(tuple(known[start : start + _WIDTH] for start in range(0, len(known), _WIDTH)))

    def replaced(self, index: int, item: T) -> PersistentVector[T]:
        """A copy with another element at an index that there is; IndexError if there is none."""
        number = index >> _BITS
        chunk = list(self._chunks[number])
        chunk[index & _WIDTH - 1] = item
        chunks = list(self._chunks)
        chunks[number] = tuple(chunk)
        return PersistentVector(tuple(chunks))

    def __getitem__(self, index: int) -> T:
        return self._chunks[index >> _BITS][index & _WIDTH - 1]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._chunks)

    def __len__(self) -> int:
        return (len(self._chunks) - 1 << _BITS) + len(self._chunks[-1]) if self._chunks else 0
