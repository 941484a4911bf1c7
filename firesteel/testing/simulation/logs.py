"""An external log for simulated sources, like a topic: records appear over time and can be read again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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

__all__ = ["LogRecord", "LogSource"]


@dataclass(frozen=True)
class LogRecord:
    """A record that can be read once so many seconds have passed since the simulation began."""

    at_s: float
    value: Any
    timestamp: int | None = None


@dataclass(frozen=True)
class _Split:
    split_id: str
    position: int = 0


class LogSource(Source[_Split]):
    """Reads a log to its end, or waits there for ever."""

    name: ClassVar[str] = "Log Source"

    def __init__(self, splits: Sequence[Sequence[LogRecord]], *, ends_at_s: float | None, linger_s: float = 0.0):
        self.splits = splits
        self.ends_at_s = ends_at_s
        self.linger_s = linger_s
        """A reader ends so long after it has read all at the earliest."""

    def get_boundedness(self) -> Boundedness:
        """Streaming, even if it ends."""
        return Boundedness.BOUNDED if self.ends_at_s is not None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[_Split]:
        """Each split to its subtask."""
        return OwnedSplitEnumerator(context, [_Split(str(number)) for number in range(len(self.splits))])

    def restore_enumerator(self, context: SplitEnumeratorContext, state: list[_Split]) -> OwnedSplitEnumerator[_Split]:
        """Continues with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> SourceReader[_Split]:
        """A reader of this subtask's splits."""
        return _Reader(context, self)


class _Reader(SourceReader[_Split]):
    def __init__(self, context: ReaderContext, source: LogSource):
        self._context = context
        self._source = source
        self._positions: dict[str, int] = {}
        self._complete = False
        self._read_at = 0.0
        """When a record was last read."""

    def start(self) -> None:
        self._context.send_split_request()

    def add_splits(self, splits: Sequence[_Split]) -> None:
        self._positions.update({split.split_id: split.position for split in splits})

    def notify_no_more_splits(self) -> None:
        self._complete = True

    def snapshot_state(self, checkpoint_id: int) -> list[_Split]:
        return [_Split(split_id, position) for split_id, position in self._positions.items()]

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        now = time.monotonic()
        progressed = False
        for split_id in list(self._positions):
            log, start = self._source.splits[int(split_id)], self._positions[split_id]
            end = start
            while end < len(log) and end - start < max_records and log[end].at_s <= now:
                if (log[end].timestamp is None) != (log[start].timestamp is None):
                    break
                end += 1
            if end > start:
                run = log[start:end]
                self._positions[split_id] = end
                self._read_at = now
                timestamps = None if run[0].timestamp is None else [record.timestamp for record in run]
                output.collect(split_id, [record.value for record in run], timestamps)  # type: ignore[arg-type]
                progressed = True
            elif end == len(log) and (ends_at := self._ends_at()) is not None and now >= ends_at:
                del self._positions[split_id]
                output.release_split(split_id)
                progressed = True
        if not self._positions and self._complete:
            return InputStatus.END_OF_INPUT
        return InputStatus.MORE_AVAILABLE if progressed else InputStatus.NOTHING_AVAILABLE

    def _ends_at(self) -> float | None:
        ends_at = self._source.ends_at_s
        return None if ends_at is None else max(ends_at, self._read_at + self._source.linger_s)

    def available_at(self) -> float | None:
        times = [
            log[position].at_s if position < len(log) else self._ends_at()
            for log, position in ((self._source.splits[int(key)], at) for key, at in self._positions.items())
        ]
        return min((at for at in times if at is not None), default=None)
