"""Records that a source reader returned and that its task has not processed yet.

A reader is asked for many records at once. If they take long the turn ends in the middle, so that a barrier need not
wait for all of them. The reader's position is behind them already: a checkpoint keeps them beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.types.copying import copy_all

__all__ = ["HELD", "Held", "HeldItem", "Records", "SplitEnd", "SplitWatermark", "items_of", "own_items"]

HELD = "_held"
"""The operator state (union) that they are in."""


@dataclass(frozen=True)
class Records:
    """Records of a split, as its reader gave them."""

    split_id: str
    values: Sequence[Any]
    timestamps: Sequence[int] | None

    def first(self, count: int) -> Records:
        """Returns the first ones."""
        if count >= len(self.values):
            return self
        timestamps = None if self.timestamps is None else self.timestamps[:count]
        return Records(self.split_id, self.values[:count], timestamps)

    def last(self, count: int) -> Records:
        start = len(self.values) - count
        timestamps = None if self.timestamps is None else self.timestamps[start:]
        return Records(self.split_id, self.values[start:], timestamps)

    def copy(self) -> Records:
        """Returns records that the reader cannot change any more."""
        return Records(self.split_id, copy_all(self.values), self.timestamps)


@dataclass(frozen=True)
class SplitWatermark:
    """A watermark that the reader found in a split."""

    split_id: str
    timestamp: int


@dataclass(frozen=True)
class SplitEnd:
    """The end of a split."""

    split_id: str


Held = Records | SplitWatermark | SplitEnd


@dataclass(frozen=True)
class HeldItem:
    """One of them in a checkpoint."""

    held: Held
    subtask: int
    is_of_ended_split: bool
    """Whether no reader has the split any more."""


def items_of(held: Iterable[Held], splits: Iterable[str], subtask: int) -> list[HeldItem]:
    """Returns what the checkpoint of a subtask keeps, whose reader has not ended these splits."""
    unfinished = set(splits)
    return [HeldItem(each, subtask, each.split_id not in unfinished) for each in held]


def own_items(items: Iterable[HeldItem], splits: Iterable[str], subtask: int, parallelism: int) -> Iterator[Held]:
    """Yields the records of all subtasks that one of the restored job is to process: those of its splits.

    Any subtask may process those of splits that have ended.
    """
    own = set(splits)
    for item in items:
        if item.subtask % parallelism == subtask if item.is_of_ended_split else item.held.split_id in own:
            yield item.held
