"""Values of the type BITMAP: sets of integers of 32 bits, as bytes in Roaring's portable format.

Equal sets are equal bytes. The integers are without a sign: -1 is the greatest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from firesteel.common.errors import FiresteelError
from firesteel.table.values.roaring_format import tied_runs

__all__ = [
    "BitmapError",
    "MissingPyroaringError",
    "bitmap_array",
    "bitmap_cardinality",
    "bitmap_text",
    "dump_bitmap",
    "from_bytes",
    "from_integers",
    "load_bitmap",
    "new_bitmap",
]

_UNSIGNED = 0xFFFFFFFF
_MAX_TEXT = 0x80000
"""The length after which Java's library leaves out the rest of a text."""


class BitmapError(ValueError):
    """Bytes that are no bitmap."""


class MissingPyroaringError(FiresteelError):
    """pyroaring is not installed where it is needed."""


@lru_cache(maxsize=1)
def _bitmap_class() -> Any:
    try:
        import pyroaring
    except ImportError as error:
        raise MissingPyroaringError(
            f"The type BITMAP needs pyroaring, which cannot be imported: {error}.",
            hint="Install it where the program and its tasks run: pip install 'firesteel[sql]'.",
        ) from error
    return pyroaring.BitMap


def new_bitmap(numbers: Iterable[int] = ()) -> Any:
    """A set of integers as the library has it; they may have a sign."""
    return _bitmap_class()([number & _UNSIGNED for number in numbers])


def load_bitmap(value: bytes) -> Any:
    """The set of a value as the library has it."""
    return _bitmap_class().deserialize(value)


def dump_bitmap(bitmap: Any) -> bytes:
    """The value of a set of the library, whose form may change.

    >>> runs = load_bitmap(from_integers(range(9)))
    >>> dump_bitmap(runs & new_bitmap(range(3))) == dump_bitmap(new_bitmap(range(3)))
    True
    """
    bitmap.run_optimize()
    value: bytes = bitmap.serialize()
    tied = list(tied_runs(value))
    if not tied:
        return value
    for key in tied:
        start = key << 16
        container = bitmap[bitmap.rank(start) - (start in bitmap) : bitmap.rank(start + 0xFFFF)].to_array()
        bitmap.remove_range(start, start + 0x10000)
        bitmap.update(container)
    return bytes(bitmap.serialize())


def from_integers(numbers: Iterable[int | None]) -> bytes:
    """The value for integers; NULL is left out.

    >>> bitmap_text(from_integers([3, None, -1, 3]))
    '{3,4294967295}'
    """
    return dump_bitmap(new_bitmap(number for number in numbers if number is not None))


def from_bytes(data: bytes) -> bytes:
    """The value for bytes in the portable format."""
    try:
        return dump_bitmap(load_bitmap(data))
    except (ValueError, IndexError) as error:
        raise BitmapError("Failed to deserialize bitmap from bytes") from error


def bitmap_cardinality(value: bytes) -> int:
    return len(load_bitmap(value))


def bitmap_array(value: bytes) -> list[int]:
    """The integers in the order without a sign.

    >>> bitmap_array(from_integers([-1, 0, 5]))
    [0, 5, -1]
    """
    return [number if number < 2**31 else number - 2**32 for number in load_bitmap(value).to_array()]


def bitmap_text(value: bytes) -> str:
    """The integers without a sign; a long text ends with dots, as in Java."""
    parts: list[str] = []
    length = 1
    for number in load_bitmap(value):
        if length > _MAX_TEXT:
            parts.append("...")
            break
        parts.append(str(number))
        length += len(parts[-1]) + 1
    return f"{{{','.join(parts)}}}"
