"""Hashes of 64 bits of the rows of Arrow columns, all rows at a time. Another process has other hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["SEED", "hash_bytes", "hash_words", "raw_values"]

SEED = np.uint64(0x2545F4914F6CDD1D)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_WORD = 8
_MAX_WORDS = 32
"""Longer strings are hashed one by one."""
_MASKS = np.array([(1 << (8 * count)) - 1 for count in range(_WORD)] + [2**64 - 1], np.uint64)
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def hash_words(hashes: Any, words: Any) -> Any:
    """Mixes a word of 64 bits into each hash."""
    mixed = (hashes ^ words) * _FACTOR
    mixed ^= mixed >> _HALF
    mixed *= _FACTOR
    mixed ^= mixed >> _HALF
    return mixed


def hash_bytes(hashes: Any, offsets: Any, data: Any) -> Any:
    """Mixes a string into each hash: those between the offsets, in words of 8 bytes."""
    first, last = int(offsets[0]), int(offsets[-1])
    padded = np.zeros(last - first + _WORD, np.uint8)
    padded[: last - first] = data[first:last]
    # a word begins at each byte
    words = np.ndarray((last - first + 1,), "<u8", padded.data, strides=(1,))
    places = offsets[:-1].astype(np.int64) - first
    left = np.diff(offsets).astype(np.int64)
    hashes = hash_words(hashes, left.astype(np.uint64))
    is_long = left > _WORD * _MAX_WORDS
    if is_long.any():
        for row in np.flatnonzero(is_long).tolist():
            text = padded[places[row] : places[row] + left[row]].tobytes()
            hashes[row : row + 1] = hash_words(hashes[row : row + 1], np.uint64(hash(text) & (2**64 - 1)))
        left[is_long] = 0
    rows = np.flatnonzero(left > 0)
    if len(rows) == len(left):
        hashes = hash_words(hashes, words[places] & _MASKS[np.minimum(left, _WORD)])
        places, left = places + _WORD, left - _WORD
        rows = np.flatnonzero(left > 0)
    while len(rows):
        found = words[places[rows]] & _MASKS[np.minimum(left[rows], _WORD)]
        hashes[rows] = hash_words(hashes[rows], found)
        places, left = places + _WORD, left - _WORD
        rows = np.flatnonzero(left > 0)
    return hashes


def raw_values(array: Any) -> Any:
    """The bits of an array of a fixed width as integers: of 16 bytes as two. There is one NaN.

    >>> raw_values(pa.array([1, -1], pa.int16())).tolist()
    [1, 65535]
    """
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if width == 16:
        return np.frombuffer(data, np.uint64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    values = np.frombuffer(data, _UNSIGNED[width])[array.offset : array.offset + len(array)]
    if pa.types.is_floating(array.type) and width > 2:
        numbers = values.view(np.float64 if width == 8 else np.float32)
        is_nan = np.isnan(numbers)
        if is_nan.any():
            return np.where(is_nan, np.array([np.nan], numbers.dtype).view(values.dtype), values)
    return values
