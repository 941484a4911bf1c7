"""A source of columns over a source of messages: each batch of messages of a split is decoded at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from firesteel.runtime.columns.batch import ColumnBatch
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

__all__ = ["BatchDecoder", "DecodingSource"]


class BatchDecoder(ABC):
    """Makes columns of what a source emits; picklable until it is opened."""

    def open(self) -> None:  # noqa: B027 - not all prepare something
        """Called once per reader, before the first batch."""

    @abstractmethod
    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        """The rows of some records of a split; None if there are none."""


class DecodingSource(Source[Any]):
    """Reads as another source does and emits columns. Positions, splits and their events are those of the other."""

    name: ClassVar[str] = "Decoding Source"
    emits_own_records = True
    emits_columns = True

    def __init__(self, inner: Source[Any], decoder: BatchDecoder) -> None:
        self.inner = inner
        self.decoder = decoder

    def __repr__(self) -> str:
        return f"DecodingSource({self.inner!r}, {self.decoder!r})"

    def get_boundedness(self) -> Boundedness:
        """That of the other source."""
        return self.inner.get_boundedness()

    def can_rewind(self) -> bool:
        """Whether the other source can."""
        return self.inner.can_rewind()

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[Any]:
        """That of the other source."""
        return self.inner.create_enumerator(context)

    def restore_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator[Any]:
        """That of the other source."""
        return self.inner.restore_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> SourceReader[Any]:
        """A reader that decodes what the other's reader emits."""
        self.decoder.open()
        reader = self.inner.create_reader(context)
        kind = _PausingReader if reader.can_pause_splits else _DecodingReader
        return kind(reader, self.decoder)


class _DecodingReader(SourceReader[Any]):
    def __init__(self, inner: SourceReader[Any], decoder: BatchDecoder) -> None:
        self._inner = inner
        self._decoder = decoder
        self.start = inner.start  # type: ignore[method-assign]
        self.handle_source_event = inner.handle_source_event  # type: ignore[method-assign]
        self.notify_checkpoint_complete = inner.notify_checkpoint_complete  # type: ignore[method-assign]
        self.available_at = inner.available_at  # type: ignore[method-assign]
        self.pending_records = inner.pending_records  # type: ignore[method-assign]
        self.close = inner.close  # type: ignore[method-assign]

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        return self._inner.poll_next(_DecodedOutput(output, self._decoder), max_records)

    def add_splits(self, splits: Sequence[Any]) -> None:
        self._inner.add_splits(splits)

    def notify_no_more_splits(self) -> None:
        self._inner.notify_no_more_splits()

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return self._inner.snapshot_state(checkpoint_id)

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        self._inner.pause_or_resume_splits(to_pause, to_resume)


class _PausingReader(_DecodingReader):
    can_pause_splits = True


class _DecodedOutput:
    """Passes on columns instead of messages."""

    def __init__(self, output: ReaderOutput, decoder: BatchDecoder) -> None:
        self._output = output
        self._decoder = decoder
        self.release_split = output.release_split
        self.emit_watermark = output.emit_watermark
        self.emit_side = output.emit_side

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        batch = self._decoder.to_columns(values, split_id)
        if batch is not None and len(batch):
            self._output.collect(split_id, batch)
