"""Source reader of a HybridSource: reads its sources one after the other, in one subtask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, cast

from firesteel.api.output_tag import OutputTag
from firesteel.connectors.hybrid.split import (
    HybridSourceSplit,
    NoMoreSplitsEvent,
    SourceReaderFinishedEvent,
    SourceReaderStartedEvent,
    SwitchSourceEvent,
    WrappedEvent,
    split_id_of,
)
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, Source, SourceReader

__all__ = ["HybridSourceReader"]


class HybridSourceReader(SourceReader[HybridSourceSplit]):
    """Has the reader of one source at a time, the one the enumerator names; see there for the steps.

    Splits, and that there are no more of them, may come before it is named: they wait. In a batch nothing is named:
    once all splits have come, the sources are read in their order as far as there are splits of them.
    """

    can_pause_splits: ClassVar[bool] = True

    def __init__(self, context: ReaderContext, sources: Sequence[Source[Any] | None]) -> None:
        self._context = context
        self._sources = dict(enumerate(sources))
        """By index; None for those that are yet to be made."""
        self._index = -1
        self._reader: SourceReader[Any] | None = None
        self._output: _SourceOutput | None = None
        self._waiting: list[HybridSourceSplit] = []
        self._no_more: set[int] = set()
        self._has_all_splits = False
        self._said_finished = False
        self._made = {index for index, source in enumerate(sources) if source is None}
        """The sources that are not known from the start: their splits carry them, for who restores a split."""
        self._open: set[str] = set()
        """The present source's splits that have not ended, by their own ids."""
        self._paused: set[str] = set()

    def start(self) -> None:
        """Asks which source to read (1)."""
        self._context.send_source_event(SourceReaderStartedEvent())

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Polls the present source's reader; its end is the end of all only if no source follows."""
        if self._reader is None and not self._goes_on_by_itself():
            return InputStatus.END_OF_INPUT if self._is_over() else InputStatus.NOTHING_AVAILABLE
        assert self._reader is not None
        if self._said_finished:
            return InputStatus.NOTHING_AVAILABLE
        if self._is_paused():
            return InputStatus.NOTHING_AVAILABLE
        if self._output is None or self._output.output is not output:
            self._output = _SourceOutput(output, self._index, self._open)
        status = self._reader.poll_next(self._output, max_records)
        if status is not InputStatus.END_OF_INPUT:
            return status
        if self._index == len(self._sources) - 1:
            return InputStatus.END_OF_INPUT
        if self._has_all_splits:
            self._close_reader()
            if self._goes_on_by_itself():
                return InputStatus.MORE_AVAILABLE
            return InputStatus.END_OF_INPUT
        self._said_finished = True
        self._context.send_source_event(SourceReaderFinishedEvent(self._index))
        return InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits: Sequence[HybridSourceSplit]) -> None:
        """Hands splits to the present source's reader; others wait for theirs."""
        for split in splits:
            if split.source is not None:
                self._sources[split.source_index] = split.source
        own = [split.split for split in splits if split.source_index == self._index]
        self._waiting += (split for split in splits if split.source_index > self._index)
        if own:
            assert self._reader is not None
            self._said_finished = False
            self._open.update(split.split_id for split in own)
            self._reader.add_splits(own)

    def notify_no_more_splits(self) -> None:
        """The last source has no more splits; in a batch, none has."""
        self._has_all_splits = True
        if self._reader is not None:
            self._reader.notify_no_more_splits()

    def handle_source_event(self, event: Any) -> None:
        """The enumerator names the source to read (1, 4), or signals that it has no more splits (2)."""
        if isinstance(event, SwitchSourceEvent):
            # a reader that was reloaded may get the same switch event twice
            if event.source_index > self._index:
                if event.source is not None:
                    self._sources[event.source_index] = event.source
                self._switch(event.source_index)
        elif isinstance(event, NoMoreSplitsEvent):
            self._no_more.add(event.source_index)
            if event.source_index == self._index and self._reader is not None:
                self._reader.notify_no_more_splits()
        elif isinstance(event, WrappedEvent) and event.source_index == self._index and self._reader is not None:
            self._reader.handle_source_event(event.event)

    def snapshot_state(self, checkpoint_id: int) -> list[HybridSourceSplit]:
        """The splits of the present source's reader, and those that wait."""
        current = [] if self._reader is None else self._reader.snapshot_state(checkpoint_id)
        made = self._sources.get(self._index) if self._index in self._made else None
        return [*(HybridSourceSplit(self._index, split, made) for split in current), *self._waiting]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notifies the present source's reader."""
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        """Passes it on; a reader that cannot do it waits as a whole, once all of its splits are paused."""
        self._paused.difference_update(to_resume)
        self._paused.update(to_pause)
        if self._reader is not None and self._reader.can_pause_splits:
            self._reader.pause_or_resume_splits(self._own_ids(to_pause), self._own_ids(to_resume))

    def available_at(self) -> float | None:
        """The value of the present source's reader."""
        return None if self._reader is None or self._said_finished else self._reader.available_at()

    def pending_records(self) -> int | None:
        """The value of the present source's reader."""
        return None if self._reader is None else self._reader.pending_records()

    def close(self) -> None:
        """Closes the present source's reader."""
        self._close_reader()

    def _switch(self, index: int) -> None:
        self._close_reader()
        source = self._sources[index]
        assert source is not None
        reader = source.create_reader(cast(ReaderContext, _SourceReaderContext(self._context, index)))
        self._index, self._reader, self._output = index, reader, None
        self._said_finished = False
        own = [split.split for split in self._waiting if split.source_index == index]
        self._open = {split.split_id for split in own}
        self._waiting = [split for split in self._waiting if split.source_index != index]
        if own:
            reader.add_splits(own)
        reader.start()
        if index in self._no_more or self._has_all_splits:
            reader.notify_no_more_splits()
        if self._paused and reader.can_pause_splits:
            reader.pause_or_resume_splits(self._own_ids(self._paused), ())

    def _goes_on_by_itself(self) -> bool:
        """In a batch: switches to the next source of which there are splits."""
        if not self._has_all_splits or not self._waiting:
            return False
        self._switch(min(split.source_index for split in self._waiting))
        return True

    def _is_over(self) -> bool:
        return self._has_all_splits and not self._waiting

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _own_ids(self, split_ids: Collection[str]) -> list[str]:
        prefix = split_id_of(self._index, "")
        return [split_id.removeprefix(prefix) for split_id in split_ids if split_id.startswith(prefix)]

    def _is_paused(self) -> bool:
        """Whether the present reader, which cannot pause single splits, has no other."""
        assert self._reader is not None
        if not self._paused or self._reader.can_pause_splits:
            return False
        return bool(self._open) and self._open <= set(self._own_ids(self._paused))


class _SourceReaderContext:
    """What the reader of one of the sources sees."""

    def __init__(self, context: ReaderContext, index: int) -> None:
        self._context = context
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def send_source_event(self, event: Any) -> None:
        """Sends an event to the source's own enumerator."""
        self._context.send_source_event(WrappedEvent(self._index, event))


class _SourceOutput:
    """Puts the source's index before the ids of its splits."""

    def __init__(self, output: ReaderOutput, index: int, open_splits: set[str]) -> None:
        self.output = output
        self._open = open_splits
        self._prefix = split_id_of(index, "")

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        """Emits records of one split."""
        self.output.collect(self._prefix + split_id, values, timestamps)

    def emit_watermark(self, split_id: str, timestamp: int) -> None:
        """Says how far event time has come in a split."""
        self.output.emit_watermark(self._prefix + split_id, timestamp)

    def emit_side(self, tag: OutputTag, values: Sequence[Any]) -> None:
        """Emits records to a side output."""
        self.output.emit_side(tag, values)

    def release_split(self, split_id: str) -> None:
        """The split has ended."""
        self._open.discard(split_id)
        self.output.release_split(self._prefix + split_id)
