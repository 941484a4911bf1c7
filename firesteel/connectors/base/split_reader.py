"""The reader shared by sources whose readers read one split after another."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, SourceReader, SourceSplit

__all__ = ["AskAgain", "SequentialSplitReader"]

SplitT = TypeVar("SplitT", bound=SourceSplit)


@dataclass(frozen=True)
class AskAgain:
    """A split without records, for a reader whose enumerator is not yet ready to answer."""

    split_id: str


class SequentialSplitReader(SourceReader[SplitT]):
    """Requests a split, reads it to its end, and requests the next.

    A subclass defines how one split is opened, read, snapshotted and closed. With ``ask_interval_ms`` a reader without
    a split asks again after so long: an enumerator cannot detect new splits by itself.
    """

    def __init__(self, context: ReaderContext, ask_interval_ms: int | None = None) -> None:
        self._context = context
        self._ask_interval = ask_interval_ms
        self._ask_at = 0
        self._alarm_at: int | None = None
        """When the reader will be polled, or was."""
        self._waiting: deque[SplitT] = deque()
        self._current: SplitT | None = None
        self._no_more_splits = False

    @abstractmethod
    def open_split(self, split: SplitT) -> None:
        """Goes to where the split is to be read from."""

    @abstractmethod
    def read_split(self, split: SplitT, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits records of the open split; END_OF_INPUT means that this split has ended."""

    @abstractmethod
    def snapshot_split(self, split: SplitT) -> SplitT:
        """The open split with its present position."""

    def close_split(self) -> None:
        """Releases what the open split holds; must bear being called when none is open."""

    def start(self) -> None:
        """Asks for the first split unless some were restored."""
        self._ask_if_empty()

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits what the current split has now, up to about max_records."""
        split = self._current
        if split is None:
            if not self._waiting:
                self._ask_again_if_due()
                return self._status_between_splits()
            split = self._waiting.popleft()
            if isinstance(split, AskAgain):
                return self._end_split(split.split_id, output)
            self.open_split(split)
            self._current = split
        status = self.read_split(split, output, max_records)
        if status is not InputStatus.END_OF_INPUT:
            return status
        self.close_split()
        self._current = None
        return self._end_split(split.split_id, output)

    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Queues splits behind those already here."""
        self._waiting.extend(splits)

    def notify_no_more_splits(self) -> None:
        """The reader ends after the splits it has."""
        self._no_more_splits = True

    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """The current split with its position, then those not begun."""
        current = [] if self._current is None else [self.snapshot_split(self._current)]
        return [*current, *self._waiting]

    def has_split(self) -> bool:
        """Whether there is anything to read."""
        return self._current is not None or bool(self._waiting)

    def close(self) -> None:
        """Closes the open split."""
        self.close_split()

    def _end_split(self, split_id: str, output: ReaderOutput) -> InputStatus:
        output.release_split(split_id)
        self._ask_if_empty()
        return self._status_between_splits()

    def _ask_if_empty(self) -> None:
        if not self.has_split() and not self._no_more_splits:
            if self._ask_interval is not None:
                now = self._context.monotonic_ms()
                self._ask_at = now + self._ask_interval
                self._set_alarm(now)
            self._context.send_split_request()

    def _ask_again_if_due(self) -> None:
        if self._ask_interval is None:
            return
        now = self._context.monotonic_ms()
        if now >= self._ask_at:
            self._ask_if_empty()
        else:
            self._set_alarm(now)

    def _set_alarm(self, now: int) -> None:
        # one at a time, however many splits come and go meanwhile
        if self._alarm_at is None or self._alarm_at <= now:
            self._alarm_at = self._ask_at
            self._context.poll_after(self._ask_at - now)

    def _status_between_splits(self) -> InputStatus:
        if self._waiting:
            return InputStatus.MORE_AVAILABLE
        return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
