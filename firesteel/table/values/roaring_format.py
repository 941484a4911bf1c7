"""The portable format of Roaring bitmaps: https://github.com/RoaringBitmap/RoaringFormatSpec."""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

__all__ = ["tied_runs"]

_WITH_RUNS = 12347
_MIN_OFFSETS = 4
"""The number of containers from which a bitmap with runs has their offsets."""
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192


def tied_runs(data: bytes) -> Iterator[int]:
    """The upper 16 bits of the containers that are runs, but would be as long as arrays.

    These are 2n + 1 values in n runs. An operation of sets may leave them as either.
    """
    (cookie,) = unpack_from("<I", data)
    if cookie & 0xFFFF != _WITH_RUNS:
        return
    count = (cookie >> 16) + 1
    heads = 4 + (count + 7) // 8
    position = heads + (8 if count >= _MIN_OFFSETS else 4) * count
    for index in range(count):
        key, last = unpack_from("<HH", data, heads + 4 * index)
        cardinality = last + 1
        if data[4 + index // 8] >> index % 8 & 1:
            (runs,) = unpack_from("<H", data, position)
            if cardinality == 2 * runs + 1:
                yield key
            position += 2 + 4 * runs
        else:
            position += 2 * cardinality if cardinality <= _MAX_ARRAY else _BITSET_BYTES
