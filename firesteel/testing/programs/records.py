"""The records of generated programs: four fields, in one of several shapes.

``k`` is an integer from which keys are made, ``v`` a number, ``t`` an event time in milliseconds and ``trail`` a short
sequence of numbers. The shapes differ in what is mutable, how a field is read and how the record is serialised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.types import Row

__all__ = ["MUTABLE_SHAPES", "SHAPES", "TRAIL_LENGTH", "Event", "canonical", "change", "fields", "make", "merge_trails"]

SHAPES = ("numbers", "tuple", "list", "dict", "row", "event")
"""``numbers`` is a tuple without a trail."""
MUTABLE_SHAPES = frozenset(("list", "dict", "row", "event"))
TRAIL_LENGTH = 6


@dataclass
class Event:
    """A mutable record."""

    k: int
    v: int
    t: int
    trail: list[int] = field(default_factory=list)


def make(shape: str, k: int, v: int, t: int, trail: Iterable[int] = ()) -> Any:
    """Returns a new record of a shape.

    >>> make("list", 1, 20, 300, [4])
    [1, 20, 300, [4]]
    >>> make("numbers", 1, 20, 300, [4])
    (1, 20, 300)
    """
    if shape == "numbers":
        return k, v, t
    if shape == "tuple":
        return k, v, t, tuple(trail)
    if shape == "list":
        return [k, v, t, list(trail)]
    if shape == "dict":
        return {"k": k, "v": v, "t": t, "trail": list(trail)}
    if shape == "row":
        return Row(k=k, v=v, t=t, trail=list(trail))
    if shape == "event":
        return Event(k, v, t, list(trail))
    raise ValueError(f"Unknown shape {shape!r}")


def fields(record: Any) -> tuple[int, int, int, Any]:
    """Returns k, v, t and the trail of a record; the trail is the record's own object.

    >>> fields(make("dict", 1, 20, 300, [4]))
    (1, 20, 300, [4])
    """
    if isinstance(record, tuple):
        return record if len(record) == 4 else (*record, ())
    if isinstance(record, list):
        return record[0], record[1], record[2], record[3]
    if isinstance(record, (dict, Row)):
        return record["k"], record["v"], record["t"], record["trail"]
    return record.k, record.v, record.t, record.trail


def canonical(record: Any) -> tuple[int, int, int, tuple[int, ...]]:
    """Returns a record as an immutable tuple, the same for every shape.

    >>> canonical(make("event", 1, 20, 300, [4]))
    (1, 20, 300, (4,))
    """
    k, v, t, trail = fields(record)
    return k, v, t, tuple(trail)


def change(record: Any, v: int) -> None:
    """Changes a mutable record in place: sets v and appends it to the trail. Immutable records stay as they are."""
    if isinstance(record, tuple):
        return
    trail = fields(record)[3]
    trail.append(v)
    del trail[:-TRAIL_LENGTH]
    if isinstance(record, list):
        record[1] = v
    elif isinstance(record, (dict, Row)):
        record["v"] = v
    else:
        record.v = v


def merge_trails(first: Iterable[int], second: Iterable[int], *, ordered: bool) -> list[int]:
    """Joins two trails: in order, keeping the last numbers, or sorted, keeping the smallest.

    Both are associative. The second is commutative as well, for records that come in no fixed order.

    >>> merge_trails([9, 1], [5], ordered=True), merge_trails([9, 1], [5], ordered=False)
    ([9, 1, 5], [1, 5, 9])
    """
    joined = [*first, *second]
    return joined[-TRAIL_LENGTH:] if ordered else sorted(joined)[:TRAIL_LENGTH]
