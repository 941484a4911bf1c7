"""Source reader of an IteratorSource."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.connectors.base.iterator_split import IteratorSourceSplit
from firesteel.connectors.base.split_cursor import SplitCursor, open_cursor
from firesteel.filesystem.stores import current_stores
from firesteel.spi.source import Boundedness, InputStatus, ReaderContext, ReaderOutput, SourceReader

if TYPE_CHECKING:
    from firesteel.connectors.base.iterator_source import IteratorSource

__all__ = ["IteratorSourceReader"]


class IteratorSourceReader(SourceReader[IteratorSourceSplit]):
    """Reads one split after another if the source is bounded, else all side by side."""

    can_pause_splits: ClassVar[bool] = True

    def __init__(self, context: ReaderContext, source: IteratorSource) -> None:
        self._context = context
        self._source = source
        self._is_bounded = source.get_boundedness() is Boundedness.BOUNDED
        self._waiting: deque[IteratorSourceSplit] = deque()
        self._cursors: deque[SplitCursor] = deque()
        self._paused: set[str] = set()
        self._no_more_splits = False
        self._acknowledger = _acknowledger_of(source)

    def start(self) -> None:
        """Asks for the first split unless some were restored."""
        self._ask_if_empty()

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Goes once round the open splits, or until there are enough records."""
        if self._acknowledger is not None:
            self._acknowledger.check()
        self._open_waiting()
        left, ended = max_records, False
        for _ in range(len(self._cursors)):
            cursor = self._cursors[0]
            self._cursors.rotate(-1)
            if cursor.split.split_id in self._paused:
                continue
            values, timestamps = cursor.take(left)
            if values:
                left -= len(values)
                output.collect(cursor.split.split_id, values, timestamps)
            if cursor.ended:
                ended = True
                self._end(cursor, output)
            if left <= 0:
                break
        if ended:
            self._ask_if_empty()
        return self._status(progressed=ended or left < max_records)

    def add_splits(self, splits: Sequence[IteratorSourceSplit]) -> None:
        """Queues splits; they are opened by the next poll."""
        self._waiting.extend(splits)

    def notify_no_more_splits(self) -> None:
        """The reader ends after the splits it has."""
        self._no_more_splits = True

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        """Splits that are paused keep what was read ahead."""
        self._paused.difference_update(to_resume)
        self._paused.update(to_pause)

    def snapshot_state(self, checkpoint_id: int) -> list[IteratorSourceSplit]:
        """The open splits with their positions, then those not begun."""
        splits = [*(cursor.snapshot() for cursor in self._cursors), *self._waiting]
        if self._acknowledger is not None:
            self._acknowledger.snapshot(checkpoint_id, splits)
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Has the positions of the checkpoint acknowledged."""
        if self._acknowledger is not None:
            self._acknowledger.complete(checkpoint_id)

    def available_at(self) -> float | None:
        """When the next split may have something."""
        times = [cursor.available_at for cursor in self._cursors if cursor.split.split_id not in self._paused]
        return min(times, default=None)

    def pending_records(self) -> int | None:
        """How many were read ahead, where threads do that."""
        known = [cursor.pending for cursor in self._cursors]
        return None if None in known or not known else sum(filter(None, known))

    def close(self) -> None:
        """Ends all threads and closes all iterators."""
        deadline = time.monotonic() + self._source.close_timeout_s
        cursors, self._cursors = self._cursors, deque()
        closes: list[Callable[[float], None]] = [cursor.close for cursor in cursors]
        if self._acknowledger is not None:
            closes.append(self._acknowledger.close)
        # all are stopped before the first is joined
        for cursor in cursors:
            cursor.stop()
        failure: BaseException | None = None
        for close in closes:
            try:
                close(deadline)
            except BaseException as error:  # noqa: BLE001 - the others are closed first
                failure = failure or error
        if failure is not None:
            raise failure

    def _open_waiting(self) -> None:
        while self._waiting and not (self._is_bounded and self._cursors):
            # taken off only once it is open: if read() raises, the split is still known
            self._cursors.append(open_cursor(self._source, self._waiting[0], not self._context.reuses_objects))
            self._waiting.popleft()

    def _end(self, cursor: SplitCursor, output: ReaderOutput) -> None:
        self._cursors.remove(cursor)
        self._paused.discard(cursor.split.split_id)
        cursor.close(time.monotonic() + self._source.close_timeout_s)
        if self._acknowledger is not None:
            self._acknowledger.ended(cursor.snapshot())
        output.release_split(cursor.split.split_id)

    def _ask_if_empty(self) -> None:
        if self._is_bounded and not (self._cursors or self._waiting or self._no_more_splits):
            self._context.send_split_request()

    def _status(self, progressed: bool) -> InputStatus:
        if not (self._cursors or self._waiting):
            return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
        return InputStatus.MORE_AVAILABLE if progressed else InputStatus.NOTHING_AVAILABLE


def _acknowledger_of(source: IteratorSource) -> _Acknowledger | None:
    from firesteel.connectors.base.iterator_source import IteratorSource

    if type(source).acknowledge is IteratorSource.acknowledge:
        return None
    return _Acknowledger(source.acknowledge, type(source).__name__)


class _Acknowledger:
    """Calls the source's ``acknowledge`` in a thread of its own, with the latest positions."""

    def __init__(self, acknowledge: Callable[[Mapping[str, Any]], None], name: str) -> None:
        self._acknowledge = acknowledge
        self._name = name
        self._ended: dict[str, Any] = {}
        self._snapshots: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}
        """The positions of each checkpoint, and which splits had ended by then."""
        self._lock = threading.Lock()
        self._due: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def ended(self, split: IteratorSourceSplit) -> None:
        """A split has been read to its end."""
        self._ended[split.split_id] = split.position

    def snapshot(self, checkpoint_id: int, splits: Sequence[IteratorSourceSplit]) -> None:
        """Remembers the positions of a checkpoint."""
        positions = {**self._ended, **{split.split_id: split.position for split in splits}}
        self._snapshots[checkpoint_id] = (positions, frozenset(self._ended))

    def complete(self, checkpoint_id: int) -> None:
        """Has them acknowledged; a checkpoint of which no snapshot was taken came after the end."""
        positions, ended = self._snapshots.pop(checkpoint_id, (self._ended, frozenset(self._ended)))
        for number in [number for number in self._snapshots if number < checkpoint_id]:
            del self._snapshots[number]
        due = {split: position for split, position in positions.items() if position is not None}
        for split in ended:
            self._ended.pop(split, None)
        with self._lock:
            self._due.update(due)
            if self._due and self._thread is None:
                self._thread = threading.Thread(
                    target=current_stores().bind(self._run), name=f"firesteel-{self._name}-acknowledge", daemon=True
                )
                self._thread.start()

    def check(self) -> None:
        """Raises what a call has raised."""
        if self._error is not None:
            raise self._error

    def close(self, deadline: float) -> None:
        """Waits for the call that is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _run(self) -> None:
        while True:
            with self._lock:
                due, self._due = self._due, {}
                if not due or self._error is not None:
                    self._thread = None
                    return
            try:
                self._acknowledge(due)
            except BaseException as error:  # noqa: BLE001 - raised in the task's own thread
                self._error = error
