"""Split enumerator of a HybridSource: runs the enumerators of its sources one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.hybrid.split import (
    HybridSourceSplit,
    NoMoreSplitsEvent,
    SourceReaderFinishedEvent,
    SourceReaderStartedEvent,
    SwitchSourceEvent,
    WrappedEvent,
)
from firesteel.spi.source import Source, SplitEnumerator, SplitEnumeratorContext

__all__ = ["HybridSourceEnumerator", "HybridSourceEnumeratorState"]


@dataclass(frozen=True)
class HybridSourceEnumeratorState:
    """Which source is being read, that source if it was made when its turn came, and its enumerator's own state."""

    source_index: int
    source: Source[Any] | None
    enumerator_state: Any


class HybridSourceEnumerator(SplitEnumerator[HybridSourceSplit]):
    """Passes on to the present source's enumerator; switches when all readers have finished that source.

    1. A reader that starts reports that, and gets the source to read: the switch event.
    2. What it asks for, and what it is given, is passed on, marked with the source's index. Where the source's
       enumerator signals that there are no more splits, the reader gets an event: it is not the end yet, unless
       this is the last source.
    3. A reader that has read its splits to their end reports that it has finished.
    4. When all have, the next source's enumerator starts, and each reader gets the switch event.

    A checkpoint finds enumerator and readers at the same source: it is taken here before the readers are triggered,
    in order with all other messages to them. Their last messages may be lost in a failure; they start again with
    step 1, and find again in step 3 that they have finished.

    In a batch no reader runs while splits are handed out: readers never report that they have started. Then a reader
    that got the signal for no more splits counts as finished.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        sources: list[Source[Any] | Callable[[SplitEnumerator[Any]], Source[Any]]],
        state: HybridSourceEnumeratorState | None = None,
    ) -> None:
        self._context = context
        self._sources = sources
        self._restored = state
        self._index = 0 if state is None else state.source_index
        self._made: Source[Any] | None = None if state is None else state.source
        self._enumerator: SplitEnumerator[Any] | None = None
        self._started: set[int] = set()
        self._finished: set[int] = set()
        self._no_more: set[int] = set()
        self._asking: dict[int, str | None] = {}
        """In a batch: readers that were not answered yet."""
        self._upfront = False

    def start(self) -> None:
        """Starts the present source's enumerator."""
        self._start_enumerator(self._made or self._given(self._index), restored=self._restored)
        self._restored = None

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Passes the request on; from a reader that does not run, it begins the handing out for a batch."""
        if not self._upfront and subtask not in self._started:
            self._upfront = True
            for reader in self._context.registered_readers():
                self._running.add_reader(reader)
        if self._upfront:
            self._asking[subtask] = host
        if subtask not in self._no_more or self._is_last:
            self._running.handle_split_request(subtask, host)
        self._switch_if_finished()

    def add_splits_back(self, splits: list[HybridSourceSplit], subtask: int) -> None:
        """Gives splits of the present source back to its enumerator."""
        own = [split.split for split in splits if split.source_index == self._index]
        if own:
            self._finished.discard(subtask)
            self._running.add_splits_back(own, subtask)

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """A reader has started or finished (1, 3), or sends an event to its source's enumerator."""
        if self._upfront:
            # it has all it needs
            return
        if isinstance(event, SourceReaderStartedEvent):
            self._finished.discard(subtask)
            self._tell_source(subtask)
        elif isinstance(event, SourceReaderFinishedEvent):
            if event.source_index == self._index:
                self._finished.add(subtask)
                self._switch_if_finished()
        elif isinstance(event, WrappedEvent) and event.source_index == self._index:
            self._running.handle_source_event(subtask, event.event)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notifies the present source's enumerator."""
        self._running.notify_checkpoint_complete(checkpoint_id)

    def snapshot_state(self, checkpoint_id: int) -> HybridSourceEnumeratorState:
        """The present source, and what its enumerator keeps."""
        return HybridSourceEnumeratorState(self._index, self._made, self._running.snapshot_state(checkpoint_id))

    def close(self) -> None:
        """Closes the present source's enumerator."""
        enumerator, self._enumerator = self._enumerator, None
        if enumerator is not None:
            enumerator.close()

    @property
    def _running(self) -> SplitEnumerator[Any]:
        assert self._enumerator is not None
        return self._enumerator

    @property
    def _is_last(self) -> bool:
        return self._index == len(self._sources) - 1

    def _given(self, index: int) -> Source[Any]:
        source = self._sources[index]
        assert isinstance(source, Source)
        return source

    def _start_enumerator(self, source: Source[Any], restored: HybridSourceEnumeratorState | None = None) -> None:
        context = _SourceContext(self, self._index)
        if restored is None:
            self._enumerator = source.create_enumerator(context)
        else:
            self._enumerator = source.restore_enumerator(context, restored.enumerator_state)
        self._enumerator.start()

    def _tell_source(self, subtask: int) -> None:
        """Steps 1 and 4 for one reader; a reader that has started again gets all messages again."""
        self._started.add(subtask)
        self._context.send_event_to_reader(subtask, SwitchSourceEvent(self._index, self._made))
        if subtask in self._no_more and not self._is_last:
            self._context.send_event_to_reader(subtask, NoMoreSplitsEvent(self._index))
        self._running.add_reader(subtask)

    def _switch_if_finished(self) -> None:
        """Step 4."""
        while len(self._finished) == self._context.current_parallelism() and not self._is_last:
            previous = self._running
            following = self._sources[self._index + 1]
            self._made = None if isinstance(following, Source) else following(previous)
            self._enumerator = None
            previous.close()
            self._index += 1
            self._finished.clear()
            self._no_more.clear()
            self._start_enumerator(self._made or self._given(self._index))
            if self._upfront:
                for subtask in self._context.registered_readers():
                    self._running.add_reader(subtask)
                for subtask, host in list(self._asking.items()):
                    self._running.handle_split_request(subtask, host)
            else:
                for subtask in sorted(self._started):
                    self._tell_source(subtask)

    # What the present source's enumerator does

    def assign(self, split: Any, subtask: int) -> None:
        """Assigns a split of the present source."""
        self._asking.pop(subtask, None)
        self._context.assign_split(HybridSourceSplit(self._index, split, self._made), subtask)

    def no_more_splits(self, subtask: int) -> None:
        """A reader has all its splits of the present source."""
        self._no_more.add(subtask)
        if self._is_last:
            self._asking.pop(subtask, None)
            self._context.signal_no_more_splits(subtask)
        elif self._upfront:
            self._finished.add(subtask)
        elif subtask in self._started:
            self._context.send_event_to_reader(subtask, NoMoreSplitsEvent(self._index))

    def call(
        self,
        index: int,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        initial_delay_ms: int,
        period_ms: int | None,
    ) -> None:
        """Has a call made; its result no longer counts once the source has been read."""

        def handle(result: Any, error: Exception | None) -> None:
            if index == self._index and self._enumerator is not None:
                handler(result, error)
                self._switch_if_finished()

        if period_ms is None or self._index == len(self._sources) - 1:
            self._context.call_async(call, handle, initial_delay_ms=initial_delay_ms, period_ms=period_ms)
            return

        # a periodic call cannot be taken back: it is made one by one, as long as its source is read
        def handle_and_repeat(result: Any, error: Exception | None) -> None:
            handle(result, error)
            if index == self._index and self._enumerator is not None:
                self._context.call_async(call, handle_and_repeat, initial_delay_ms=period_ms)

        self._context.call_async(call, handle_and_repeat, initial_delay_ms=initial_delay_ms)

    @property
    def started(self) -> list[int]:
        """The readers that read the present source; in a batch, all."""
        return self._context.registered_readers() if self._upfront else sorted(self._started)

    @property
    def context(self) -> SplitEnumeratorContext:
        """The job's."""
        return self._context


class _SourceContext:
    """What the enumerator of one of the sources sees."""

    def __init__(self, hybrid: HybridSourceEnumerator, index: int) -> None:
        self._hybrid = hybrid
        self._index = index

    def current_parallelism(self) -> int:
        """How many readers there are."""
        return self._hybrid.context.current_parallelism()

    def registered_readers(self) -> list[int]:
        """Readers that have switched to this source."""
        return self._hybrid.started

    def assign_split(self, split: Any, subtask: int) -> None:
        """Gives a split to a reader."""
        self._hybrid.assign(split, subtask)

    def signal_no_more_splits(self, subtask: int) -> None:
        """Signals a reader that it gets no more splits of this source."""
        self._hybrid.no_more_splits(subtask)

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """Sends an event to this source's reader."""
        self._hybrid.context.send_event_to_reader(subtask, WrappedEvent(self._index, event))

    def call_async(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        *,
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        """Has a call made, as long as this source is read."""
        self._hybrid.call(self._index, call, handler, initial_delay_ms, period_ms)
