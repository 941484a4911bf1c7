"""Split enumerators of bounded sources: static assignment per subtask, or assignment on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeVar

from firesteel.spi.source import SourceSplit, SplitEnumerator, SplitEnumeratorContext

__all__ = ["OwnedSplitEnumerator", "SharedSplitEnumerator"]

SplitT = TypeVar("SplitT", bound=SourceSplit)


class OwnedSplitEnumerator(SplitEnumerator[SplitT]):
    """Gives split i to subtask i modulo the parallelism, whenever it starts.

    No reader takes another's share: each run gives the same, and a rate divided over the readers holds.
    """

    def __init__(self, context: SplitEnumeratorContext, splits: Iterable[SplitT]) -> None:
        self._context = context
        self._pending: dict[int, list[SplitT]] = {}
        parallelism = context.current_parallelism()
        for index, split in enumerate(splits):
            self._pending.setdefault(index % parallelism, []).append(split)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns all splits of the subtask at once."""
        for split in self._pending.pop(subtask, ()):
            self._context.assign_split(split, subtask)
        self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[SplitT], subtask: int) -> None:
        """Keeps the splits for when the subtask's reader asks again."""
        self._pending[subtask] = [*splits, *self._pending.get(subtask, ())]

    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """The splits no reader has."""
        return [split for splits in self._pending.values() for split in splits]


class SharedSplitEnumerator(SplitEnumerator[SplitT]):
    """Assigns the next split, in order, to the reader that requests one."""

    def __init__(self, context: SplitEnumeratorContext, splits: Iterable[SplitT]) -> None:
        self._context = context
        self._pending = deque(splits)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns one split, or signals that there are none left."""
        if self._pending:
            self._context.assign_split(self._pending.popleft(), subtask)
        else:
            self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[SplitT], subtask: int) -> None:
        """Puts splits back in front, to be read first."""
        self._pending.extendleft(reversed(splits))

    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """The splits no reader has."""
        return list(self._pending)
