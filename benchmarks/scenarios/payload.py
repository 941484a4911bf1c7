"""Values of a given size that no compression makes smaller, the same on every system."""

from __future__ import annotations

import random

__all__ = ["SCRAMBLE", "Payload"]

SCRAMBLE = 2_654_435_761
"""A prime: multiplied with it, numbers in turn become keys in no order that a cache could use."""
_POOL = 1 << 20
_COUNT = 8


class Payload:
    """Text of ``size`` characters: a count, and a piece of a pool of random letters.

    >>> payload = Payload(200)
    >>> len(payload.make(7, 3)), payload.count(payload.make(7, 3))
    (200, 3)
    """

    def __init__(self, size: int) -> None:
        self._length = size - _COUNT
        self._pool = "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=_POOL))

    def make(self, number: int, count: int) -> str:
        """The value of a key after so many updates."""
        begin = number * SCRAMBLE % (_POOL - self._length)
        return f"{count:08d}{self._pool[begin : begin + self._length]}"

    def count(self, value: str) -> int:
        """How many updates the value has seen."""
        return int(value[:_COUNT])
