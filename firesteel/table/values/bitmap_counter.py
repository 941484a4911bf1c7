"""How often each integer is in a collection of bitmaps.

The counts are binary numbers: layer ``n`` is the bitmap of the integers whose count has bit ``n``. Whole bitmaps are
added and subtracted by operations of sets, and integers that occur once take one bitmap.
"""

from __future__ import annotations

from typing import Any

from firesteel.table.values.bitmap import new_bitmap

__all__ = ["Layers", "add", "cancel", "present", "shared"]

Layers = list[Any]


def add(layers: Layers, bitmap: Any, place: int = 0) -> None:
    """Adds ``2 ** place`` to the counts of the integers of a bitmap."""
    carry = bitmap
    while carry:
        while place >= len(layers):
            layers.append(new_bitmap())
        layer = layers[place]
        following = layer & carry
        layer ^= carry
        carry = following
        place += 1


def cancel(plus: Layers, minus: Layers) -> tuple[Layers, Layers]:
    """Two counts less what they have in common: of each integer at least one of them is 0."""
    places = max(len(plus), len(minus))
    left, missing = _difference(plus, minus, places)
    right, _ = _difference(minus, plus, places)
    surplus = _stripped([layer - missing for layer in left])
    return surplus, _stripped([layer & missing for layer in right])


def present(layers: Layers) -> Any:
    """The integers whose count is not 0."""
    found = new_bitmap()
    for layer in layers:
        found |= layer
    return found


def shared(layers: Layers, number: int) -> Any:
    """The integers with a count, which is more than 0."""
    if number.bit_length() > len(layers):
        return new_bitmap()
    found = present(layers)
    for place, layer in enumerate(layers):
        found = found & layer if number >> place & 1 else found - layer
    return found


def _difference(left: Layers, right: Layers, places: int) -> tuple[Layers, Any]:
    """The counts less others, and the integers for which they are too small."""
    borrow = new_bitmap()
    found = []
    for place in range(places):
        one = left[place] if place < len(left) else new_bitmap()
        other = right[place] if place < len(right) else new_bitmap()
        found.append(one ^ other ^ borrow)
        borrow = ((other | borrow) - one) | (other & borrow)
    return found, borrow


def _stripped(layers: Layers) -> Layers:
    while layers and not layers[-1]:
        layers.pop()
    return layers
