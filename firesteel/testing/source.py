"""Source from a list of records and of events between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from firesteel.common.errors import FiresteelError
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)

__all__ = [
    "ABORT",
    "EOF",
    "PAUSE",
    "WATERMARK",
    "At",
    "InjectedFailure",
    "TestingSource",
    "TestingSourceReader",
    "TestingSplit",
]


@dataclass(frozen=True)
class At:
    """A record with its event timestamp in milliseconds."""

    value: Any
    timestamp: int


@dataclass(frozen=True)
class WATERMARK:
    """No record of this split at or before the timestamp is expected any more."""

    timestamp: int


@dataclass(frozen=True)
class PAUSE:
    """The split waits for some time, or until a time, both in milliseconds on the job's clock.

    A duration is the same however the wall clock is set meanwhile.
    """

    milliseconds: int | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        if (self.milliseconds is None) == (self.until is None):
            raise ValueError("PAUSE needs a duration or a time: PAUSE(500) or PAUSE(until=60_000).")


@dataclass(frozen=True)
class ABORT:
    """The job fails here with an InjectedFailure, once: a job that starts again passes by.

    Of several in one split, the first one fails the first attempt, the second one the second, and so on, and no other:
    wherever in the split an attempt continues after a checkpoint, and regardless of other failures before. Items before
    that place count too, so in a job that starts from a savepoint those behind it may fail a later attempt or none.
    """

    message: str = "TestingSource has reached ABORT()."


@dataclass(frozen=True)
class EOF:
    """The split ends here, regardless of later items and even if the source is unbounded."""


class InjectedFailure(FiresteelError):
    """The failure that ABORT() asks for."""


@dataclass(frozen=True)
class TestingSplit:
    """One list of the source, to be read from a position on."""

    __test__: ClassVar[bool] = False

    split_id: str
    position: int = 0

    @property
    def index(self) -> int:
        """Which of the source's lists it is."""
        return int(self.split_id)


class TestingSource(Source[TestingSplit]):
    """Emits the records of a list, and executes the special items between them.

    ``TestingSource([1, 2, ABORT(), 3])`` emits 1 and 2, fails the job once and, after the restart, emits 1, 2
    and 3; with checkpoints, what comes after the last one. A pause that a checkpoint falls into starts again. The
    special items are :class:`At`, :class:`WATERMARK`, :class:`PAUSE`, :class:`ABORT` and :class:`EOF`. An unbounded
    source (``bounded=False``) stays open after its last item.

    Several lists (:meth:`with_splits`) are splits of one source, each with its own watermark: list i goes to
    subtask i modulo the parallelism, and in a restored job to any. A subtask with several of them reads one item of
    each in turn.

    >>> TestingSource(["a", At("b", 1000), WATERMARK(2000)])
    TestingSource(1 split, 3 items, bounded)
    """

    __test__: ClassVar[bool] = False

    name: ClassVar[str] = "Testing Source"

    def __init__(self, items: Iterable[Any], *, bounded: bool = True):
        self.splits: list[list[Any]] = [list(items)]
        self.bounded = bounded

    @classmethod
    def with_splits(cls, *splits: Iterable[Any], bounded: bool = True) -> TestingSource:
        """A source of several lists, read side by side."""
        if not splits:
            raise ValueError("A source needs at least one split, even if it is empty: with_splits([]).")
        source = cls((), bounded=bounded)
        source.splits = [list(split) for split in splits]
        return source

    def __repr__(self) -> str:
        splits = f"{len(self.splits)} split{'s' if len(self.splits) > 1 else ''}"
        return f"TestingSource({splits}, {sum(map(len, self.splits))} items, {self.get_boundedness().value.lower()})"

    def get_boundedness(self) -> Boundedness:
        """The boundedness that the test has set."""
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[TestingSplit]:
        """Each list to its subtask."""
        return OwnedSplitEnumerator(context, [TestingSplit(str(index)) for index in range(len(self.splits))])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[TestingSplit]
    ) -> OwnedSplitEnumerator[TestingSplit]:
        """Continues with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> TestingSourceReader:
        """A reader of this source's own lists."""
        return TestingSourceReader(context, self.splits, self.bounded)


class _Cursor:
    """How far one split has been read."""

    def __init__(self, split: TestingSplit, items: Sequence[Any]):
        self.split_id = split.split_id
        self.items = items
        self.position = split.position
        self.paused_until: int | None = None
        self.resumes_at: int | None = None
        """The end of a pause by the monotonic clock."""

    def take_run(self, limit: int) -> tuple[list[Any], list[int] | None]:
        """The records from here on, up to the next special item or a change between with and without timestamp."""
        timed = isinstance(self.items[self.position], At)
        run: list[Any] = []
        while self.position < len(self.items) and len(run) < limit:
            item = self.items[self.position]
            if isinstance(item, _SPECIAL) or isinstance(item, At) is not timed:
                break
            run.append(item)
            self.position += 1
        if timed:
            return [record.value for record in run], [record.timestamp for record in run]
        return run, None

    def aborts_before(self) -> int:
        """How many ABORT items are before the present one."""
        return sum(isinstance(item, ABORT) for item in self.items[: self.position])


class TestingSourceReader(SourceReader[TestingSplit]):
    """Reads its splits side by side, one item of each in turn."""

    __test__: ClassVar[bool] = False

    def __init__(self, context: ReaderContext, splits: Sequence[Sequence[Any]], bounded: bool):
        self._context = context
        self._items = splits
        self._bounded = bounded
        self._cursors: list[_Cursor] = []
        self._no_more_splits = False

    def start(self) -> None:
        """Asks for this subtask's splits."""
        self._context.send_split_request()

    def add_splits(self, splits: Sequence[TestingSplit]) -> None:
        """Begins each split at its position."""
        self._cursors += [_Cursor(split, self._items[split.index]) for split in splits]

    def notify_no_more_splits(self) -> None:
        """The reader ends after the splits it has."""
        self._no_more_splits = True

    def snapshot_state(self, checkpoint_id: int) -> list[TestingSplit]:
        """The splits that have not ended, each with the position of its next item."""
        return [
            TestingSplit(cursor.split_id, cursor.position - 1 if self._is_paused(cursor) else cursor.position)
            for cursor in self._cursors
        ]

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Goes once through the splits that are not paused."""
        progressed = False
        for cursor in list(self._cursors):
            if not self._is_paused(cursor):
                progressed |= self._read(cursor, output, max_records)
        if not self._cursors and self._no_more_splits:
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE if progressed else InputStatus.NOTHING_AVAILABLE

    def _is_paused(self, cursor: _Cursor) -> bool:
        if cursor.paused_until is not None and cursor.paused_until <= self._context.processing_time():
            cursor.paused_until = None
        if cursor.resumes_at is not None and cursor.resumes_at <= self._context.monotonic_ms():
            cursor.resumes_at = None
        return cursor.paused_until is not None or cursor.resumes_at is not None

    def _read(self, cursor: _Cursor, output: ReaderOutput, max_records: int) -> bool:
        """Deals with the next item of a split, or several records at once if there is only this split."""
        if cursor.position == len(cursor.items):
            if self._bounded:
                self._end(cursor, output)
            return self._bounded
        item = cursor.items[cursor.position]
        if not isinstance(item, _SPECIAL):
            values, timestamps = cursor.take_run(max_records if len(self._cursors) == 1 else 1)
            output.collect(cursor.split_id, values, timestamps)
            return True
        if isinstance(item, ABORT) and cursor.aborts_before() == self._context.attempt_number:
            raise InjectedFailure(
                item.message,
                hint="The job fails here on purpose. To see it start again, set restart-strategy.type.",
            )
        cursor.position += 1
        if isinstance(item, WATERMARK):
            output.emit_watermark(cursor.split_id, item.timestamp)
        elif isinstance(item, PAUSE):
            self._pause(cursor, item)
        elif isinstance(item, EOF):
            self._end(cursor, output)
        return True

    def _pause(self, cursor: _Cursor, pause: PAUSE) -> None:
        if pause.until is not None:
            cursor.paused_until = pause.until
            self._context.poll_at(pause.until)
        elif pause.milliseconds is not None:
            cursor.resumes_at = self._context.monotonic_ms() + pause.milliseconds
            self._context.poll_after(pause.milliseconds)

    def _end(self, cursor: _Cursor, output: ReaderOutput) -> None:
        self._cursors.remove(cursor)
        output.release_split(cursor.split_id)


_SPECIAL = (WATERMARK, PAUSE, ABORT, EOF)
