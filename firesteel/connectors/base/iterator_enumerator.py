"""Split enumerator of an IteratorSource."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.connectors.base.iterator_split import IteratorSourceSplit, wrap_splits
from firesteel.spi.source import Boundedness, SplitEnumerator, SplitEnumeratorContext

if TYPE_CHECKING:
    from firesteel.connectors.base.iterator_source import IteratorSource

__all__ = ["IteratorEnumeratorState", "IteratorSourceEnumerator"]


@dataclass(frozen=True)
class IteratorEnumeratorState:
    """The ids of all splits that were found, and the splits that no reader has had."""

    known: frozenset[str]
    pending: tuple[IteratorSourceSplit, ...]


class IteratorSourceEnumerator(SplitEnumerator[IteratorSourceSplit]):
    """Asks the source for its splits in another thread, and hands them out: to who asks, or evenly if unbounded."""

    def __init__(
        self, context: SplitEnumeratorContext, source: IteratorSource, state: IteratorEnumeratorState | None = None
    ) -> None:
        self._context = context
        self._source = source
        self._is_bounded = source.get_boundedness() is Boundedness.BOUNDED
        self._discovers = not self._is_bounded and source.discovery_interval_ms is not None
        # None: not found yet, neither now nor before the checkpoint
        self._known: set[str] | None = None if state is None else set(state.known)
        self._pending = deque(() if state is None else state.pending)
        self._asking: list[int] = []

    def start(self) -> None:
        """Looks for splits, unless all are known."""
        if self._known is not None:
            self._hand_out()
        if self._known is None or self._discovers:
            source = self._source
            self._context.call_async(
                lambda: wrap_splits(type(source).__name__, source.splits()),
                self._found,
                period_ms=source.discovery_interval_ms if self._discovers else None,
            )

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns one split, or signals that there are none left; unbounded sources assign without requests."""
        if not self._is_bounded:
            return
        if self._known is None:
            self._asking.append(subtask)
        elif self._pending:
            self._context.assign_split(self._pending.popleft(), subtask)
        else:
            self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[IteratorSourceSplit], subtask: int) -> None:
        """Puts splits back in front, to be read first."""
        self._pending.extendleft(reversed(splits))
        self._hand_out()

    def snapshot_state(self, checkpoint_id: int) -> IteratorEnumeratorState | None:
        """What is known; nothing as long as the source has not answered."""
        return None if self._known is None else IteratorEnumeratorState(frozenset(self._known), tuple(self._pending))

    def _found(self, splits: list[IteratorSourceSplit] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert splits is not None
        known = set() if self._known is None else self._known
        self._known = known
        self._pending.extend(split for split in splits if split.split_id not in known)
        known.update(split.split_id for split in splits)
        self._hand_out()

    def _hand_out(self) -> None:
        if self._is_bounded:
            asking, self._asking = self._asking, []
            for subtask in asking:
                self.handle_split_request(subtask, None)
            return
        parallelism = self._context.current_parallelism()
        # the first new split continues where the last one that was found before stopped
        number = len(self._known or ()) - len(self._pending)
        while self._pending:
            self._context.assign_split(self._pending.popleft(), number % parallelism)
            number += 1
        if not self._discovers:
            for subtask in range(parallelism):
                self._context.signal_no_more_splits(subtask)
