"""Streams as the oracle sees them: lists of records with watermarks in between."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["MAX_TIME", "MIN_TIME", "Flow", "Mark", "Mode", "Record", "by_time", "copied"]

MIN_TIME = -(2**63)
MAX_TIME = 2**63 - 1


class Mode(Enum):
    """What the oracle computes."""

    STREAM = "stream"
    """All results of a stream that ends."""
    BATCH = "batch"
    """The results of a batch."""
    STAY = "stay"
    """The results that a stream must give before its sources end."""


@dataclass(frozen=True)
class Record:
    """A value with its timestamp."""

    value: Any
    time: int | None = None


@dataclass(frozen=True)
class Mark:
    """A watermark."""

    time: int


@dataclass
class Flow:
    """A stream from its first record to its last watermark."""

    items: list[Record | Mark] = field(default_factory=list)
    watermark: int = MIN_TIME
    """The last watermark."""

    def emit(self, value: Any, time: int | None) -> None:
        """Appends a copy of a value."""
        self.items.append(Record(copied(value), time))

    def mark(self, time: int) -> None:
        """Appends a watermark if it is an advance."""
        if time > self.watermark:
            self.watermark = time
            self.items.append(Mark(time))

    def records(self) -> Iterator[Record]:
        """Yields the records, with a copy of each value for who reads them."""
        for item in self.items:
            if isinstance(item, Record):
                yield Record(copied(item.value), item.time)


def by_time(records: Iterable[Record]) -> list[Record]:
    """Returns records in the order of their timestamps, as a batch has them; those without stay as they are."""
    return sorted(records, key=lambda record: MIN_TIME if record.time is None else record.time)


_IMMUTABLE = (int, str, float, bytes)


def copied(value: Any) -> Any:
    """Returns a copy that shares nothing mutable with the value."""
    if isinstance(value, _IMMUTABLE) or (value.__class__ is tuple and all(isinstance(x, _IMMUTABLE) for x in value)):
        return value
    return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
