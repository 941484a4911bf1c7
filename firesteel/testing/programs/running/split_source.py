"""A source that gives the records it was made with, split by split, at an uneven pace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from firesteel.testing.programs.records import make
from firesteel.testing.programs.running.faults import Trip, complete, step

__all__ = ["Item", "Many", "Pause", "Position", "Split", "SplitReader", "SplitSource", "WatermarkAt", "expanded"]

_EPOCH_BURST = 10


@dataclass(frozen=True)
class Pause:
    """For so long nothing comes from a split; with ``checkpoint`` at most until one is complete that includes that.

    So a job is sure to have a checkpoint in the middle of its records, however slow the machine is. In epochs each is
    one, and nothing has to wait for it.
    """

    ms: int
    checkpoint: bool = False


@dataclass(frozen=True)
class WatermarkAt:
    """A watermark that the source itself emits here."""

    t: int


@dataclass(frozen=True)
class Many:
    """Many records in a row: the keys in turn, v counting up from a number, t from a time in equal steps."""

    count: int
    keys: tuple[int, ...]
    v: int
    t: int
    dt: int


Item = tuple[int, int, int] | Pause | WatermarkAt | Many
"""A record as k, v and t, or what happens between two records."""


def expanded(items: Sequence[Item]) -> Iterator[tuple[int, int, int] | Pause | WatermarkAt]:
    """Yields the items with the records of `Many` one by one.

    >>> list(expanded([Many(3, (7, 8), 1, 100, 5)]))
    [(7, 1, 100), (8, 2, 105), (7, 3, 110)]
    """
    for item in items:
        if isinstance(item, Many):
            for i in range(item.count):
                yield item.keys[i % len(item.keys)], item.v + i, item.t + i * item.dt
        else:
            yield item


@dataclass(frozen=True)
class Split:
    """A part of a source with its own pace: so many records at a time, with a gap after them."""

    items: tuple[Item, ...]
    burst: int = 1
    gap_ms: int = 0


@dataclass(frozen=True)
class Position:
    """A split to be read from a position on."""

    split_id: str
    position: int = 0


@dataclass
class SplitSource(Source[Position]):
    """Gives the records of its splits, each in its order."""

    splits: tuple[Split, ...]
    shape: str = "numbers"
    timestamps: bool = True
    shared: bool = False
    bounded: bool = True
    trip: Trip | None = None
    on_complete: Trip | None = None
    """Fails when a certain checkpoint is complete."""

    name: ClassVar[str] = "Split Source"

    def get_boundedness(self) -> Boundedness:
        """Returns whether readers end after the last record."""
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[Position]:
        """Returns an enumerator of all splits."""
        return self.restore_enumerator(context, [Position(str(index)) for index in range(len(self.splits))])

    def restore_enumerator(self, context: SplitEnumeratorContext, state: list[Position]) -> SplitEnumerator[Position]:
        """Returns an enumerator of the splits that no reader had."""
        return _Enumerator(context, state, shared=self.shared, bounded=self.bounded)

    def create_reader(self, context: ReaderContext) -> SourceReader[Position]:
        """Returns a reader."""
        return SplitReader(context, self)


class _Enumerator(SplitEnumerator[Position]):
    """Gives each reader its own splits, or one split to each that asks.

    Readers of an unbounded source never get the signal that there are no more splits.
    """

    def __init__(self, context: SplitEnumeratorContext, splits: list[Position], *, shared: bool, bounded: bool):
        self._context = context
        self._splits = list(splits)
        self._shared = shared
        self._bounded = bounded

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns what is the reader's."""
        if self._shared:
            mine = self._splits[:1]
        else:
            parallelism = self._context.current_parallelism()
            mine = [split for split in self._splits if int(split.split_id) % parallelism == subtask]
        for split in mine:
            self._splits.remove(split)
            self._context.assign_split(split, subtask)
        if self._bounded and not (self._shared and mine):
            self._context.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Position], subtask: int) -> None:
        """Keeps splits for when they are asked for again."""
        self._splits += splits

    def snapshot_state(self, checkpoint_id: int) -> list[Position]:
        """Returns the splits that no reader has."""
        return list(self._splits)


class _Cursor:
    def __init__(self, position: Position, split: Split):
        self.split_id = position.split_id
        self.items = list(expanded(split.items))
        self.position = position.position
        self.split = split
        self.ready_at = 0
        self.awaits = False
        """Whether a complete checkpoint ends the pause."""
        self.checkpoint: int | None = None
        """The first one that includes the pause."""

    def pause(self, pause: Pause, now: int, has_idle_gaps: bool) -> None:
        self.awaits, self.checkpoint = pause.checkpoint, None
        self.ready_at = now + (0 if pause.checkpoint and has_idle_gaps else pause.ms)


class SplitReader(SourceReader[Position]):
    """Reads splits, each at its own pace."""

    def __init__(self, context: ReaderContext, source: SplitSource):
        self._context = context
        self._source = source
        self.cursors: list[_Cursor] = []
        """The splits that are being read."""
        self._no_more_splits = False

    def start(self) -> None:
        """Asks for splits."""
        self._context.send_split_request()

    def add_splits(self, splits: Sequence[Position]) -> None:
        """Continues from the positions."""
        self.cursors += [_Cursor(split, self._source.splits[int(split.split_id)]) for split in splits]

    def notify_no_more_splits(self) -> None:
        """Ends after the splits it has."""
        self._no_more_splits = True

    def snapshot_state(self, checkpoint_id: int) -> list[Position]:
        """Returns how far each split was read."""
        for cursor in self.cursors:
            if cursor.awaits and cursor.checkpoint is None:
                cursor.checkpoint = checkpoint_id
        return [Position(cursor.split_id, cursor.position) for cursor in self.cursors]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Ends pauses that a checkpoint includes."""
        now = self.now_ms()
        for cursor in self.cursors:
            if cursor.awaits and cursor.checkpoint is not None and cursor.checkpoint <= checkpoint_id:
                cursor.awaits, cursor.ready_at = False, now
                self.await_ms(now)
        complete(self._source.on_complete, checkpoint_id)

    def now_ms(self) -> int:
        """What pauses are measured with."""
        return self._context.processing_time()

    def await_ms(self, time_ms: int) -> None:
        """Has the reader polled at a time."""
        self._context.poll_at(time_ms)

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Reads from the splits whose time has come."""
        now = self.now_ms()
        for cursor in list(self.cursors):
            if cursor.ready_at <= now:
                # an epoch costs more than a poll: it gets more records
                burst = cursor.split.burst + (_EPOCH_BURST if self._context.execution.has_idle_gaps else 0)
                self._read(cursor, output, min(max_records, burst), now)
        if not self.cursors and self._no_more_splits:
            return InputStatus.END_OF_INPUT
        waiting = [
            cursor.ready_at
            for cursor in self.cursors
            if self._source.bounded or cursor.position < len(cursor.items)  # the end of a split is read too
        ]
        if any(ready_at <= now for ready_at in waiting):
            return InputStatus.MORE_AVAILABLE
        if waiting:
            self.await_ms(min(waiting))
        return InputStatus.NOTHING_AVAILABLE

    def _read(self, cursor: _Cursor, output: ReaderOutput, limit: int, now: int) -> None:
        run: list[tuple[int, int, int]] = []
        while cursor.position < len(cursor.items) and len(run) < limit:
            item = cursor.items[cursor.position]
            if not isinstance(item, tuple):
                break
            run.append(item)
            cursor.position += 1
        if run:
            self._emit(cursor, output, run)
            cursor.ready_at = now + cursor.split.gap_ms
        elif cursor.position < len(cursor.items):
            item = cursor.items[cursor.position]
            cursor.position += 1
            if isinstance(item, Pause):
                cursor.pause(item, now, self._context.execution.has_idle_gaps)
            elif isinstance(item, WatermarkAt):
                output.emit_watermark(cursor.split_id, item.t)
        if self._source.bounded and cursor.position == len(cursor.items) and cursor.ready_at <= now:
            self.cursors.remove(cursor)
            output.release_split(cursor.split_id)
            if self._source.shared:
                self._context.send_split_request()

    def _emit(self, cursor: _Cursor, output: ReaderOutput, run: list[tuple[int, int, int]]) -> None:
        for _ in run:
            step(self._source.trip)
        values: list[Any] = [make(self._source.shape, k, v, t, (v % 7,)) for k, v, t in run]
        output.collect(cursor.split_id, values, [t for _, _, t in run] if self._source.timestamps else None)
