"""Throttled source, so that a short job has several checkpoints."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
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

__all__ = ["PacedSource"]

RECORDS = 2
PAUSE_S = 0.005


class PacedSource(Source[Any]):
    """Another source, of which each reader gives a few records and then nothing for some milliseconds."""

    name: ClassVar[str] = "Paced Source"

    def __init__(self, source: Source[Any]) -> None:
        self.source = source

    def get_boundedness(self) -> Boundedness:
        """As the other."""
        return self.source.get_boundedness()

    def can_rewind(self) -> bool:
        """As the other."""
        return self.source.can_rewind()

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[Any]:
        """The other's."""
        return self.source.create_enumerator(context)

    def restore_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator[Any]:
        """The other's."""
        return self.source.restore_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> SourceReader[Any]:
        """The other's, slowed down."""
        return _PacedReader(self.source.create_reader(context))


class _PacedReader(SourceReader[Any]):
    def __init__(self, reader: SourceReader[Any]) -> None:
        self._reader = reader
        self._next = 0.0

    def start(self) -> None:
        self._reader.start()

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        if time.monotonic() < self._next:
            return InputStatus.NOTHING_AVAILABLE
        status = self._reader.poll_next(output, min(RECORDS, max_records))
        if status is not InputStatus.MORE_AVAILABLE:
            return status
        self._next = time.monotonic() + PAUSE_S
        return InputStatus.NOTHING_AVAILABLE

    def available_at(self) -> float | None:
        return self._next if time.monotonic() < self._next else self._reader.available_at()

    def add_splits(self, splits: Sequence[Any]) -> None:
        self._reader.add_splits(splits)

    def notify_no_more_splits(self) -> None:
        self._reader.notify_no_more_splits()

    def handle_source_event(self, event: Any) -> None:
        self._reader.handle_source_event(event)

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        self._reader.pause_or_resume_splits(to_pause, to_resume)

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return self._reader.snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_complete(checkpoint_id)

    def pending_records(self) -> int | None:
        return self._reader.pending_records()

    def close(self) -> None:
        self._reader.close()
