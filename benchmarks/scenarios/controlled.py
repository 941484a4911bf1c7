"""A source that a scenario steers while the job runs, and a sink that notes when records arrive."""

from __future__ import annotations

import mmap
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)

__all__ = ["Control", "ControlledSource", "KeyTraffic", "NotingSink", "Outputs"]

_NO_LIMIT = 1 << 60
_PAUSE_S = 0.005
_READERS = 16


class InjectedFault(Exception):
    """What a source fails with when it is told to."""


class _Numbers:
    """Numbers that processes of this host share through a small file."""

    def __init__(self, path: Path, count: int, *, create: bool) -> None:
        with path.open("wb+" if create else "rb+") as file:
            if create:
                os.ftruncate(file.fileno(), 8 * count)
            self._mapped = mmap.mmap(file.fileno(), 8 * count)
        self.slots = memoryview(self._mapped).cast("q")

    def close(self) -> None:
        """Lets go of the file."""
        self.slots.release()
        self._mapped.close()


class Control:
    """How far readers may go, and how far they are; the scenario and all readers see the same numbers."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        self._numbers = _Numbers(path, 2 + _READERS, create=create)
        self._slots = self._numbers.slots

    def close(self) -> None:
        """Lets go of the file."""
        self._numbers.close()

    @property
    def limit(self) -> int:
        """The number of records that each split may have emitted."""
        return self._slots[0]

    @limit.setter
    def limit(self, records: int) -> None:
        self._slots[0] = records

    def lift_limit(self) -> None:
        """Lets readers go as fast as they can."""
        self.limit = _NO_LIMIT

    def fail_once(self) -> None:
        """Has one reader raise an exception."""
        self._slots[1] = 1

    def take_fault(self) -> bool:
        """Whether this reader is to fail now."""
        if self._slots[1]:
            self._slots[1] = 0
            return True
        return False

    def note_position(self, split: int, position: int) -> None:
        """A reader has come that far."""
        self._slots[2 + split] = position

    def positions(self) -> int:
        """What all splits together have emitted, counted from their beginnings."""
        return sum(self._slots[2 : 2 + _READERS])


@dataclass(frozen=True)
class KeyTraffic:
    """Numbers whose remainder by ``keys`` is a key: first every key once, then the first ``hot`` ones over and over."""

    keys: int
    hot: int

    def numbers(self, split: int, splits: int, position: int, most: int) -> range:
        """What a split emits from a position on, at most that many.

        >>> traffic = KeyTraffic(keys=10, hot=2)
        >>> [traffic.numbers(split, 2, position, 100) for split in (0, 1) for position in (0, 5, 7)]
        [range(0, 5), range(10, 12), range(20, 22), range(5, 10), range(11, 12), range(21, 22)]
        """
        share = self.keys // splits
        if position < share:
            begin = split * share + position
            return range(begin, begin + min(most, share - position))
        # splits go round the hot keys from different places: together they touch each once in a turn of theirs
        turn, offset = divmod(position - share + split * self.hot // splits, self.hot)
        begin = (turn + 1) * self.keys + offset
        return range(begin, begin + min(most, self.hot - offset))

    def fill(self, splits: int) -> int:
        """How many records of each split it takes to have seen every key."""
        return self.keys // splits


@dataclass(frozen=True)
class ControlledSplit:
    """One of ``splits`` parts of the traffic, from its next record on."""

    index: int
    splits: int
    position: int = 0

    @property
    def split_id(self) -> str:
        """The index."""
        return str(self.index)


class ControlledSource(Source[ControlledSplit]):
    """Emits as much of the traffic as the control permits, and pauses there."""

    name: ClassVar[str] = "Controlled Source"

    def __init__(self, traffic: KeyTraffic, control: Path) -> None:
        self._traffic = traffic
        self._control = control

    def get_boundedness(self) -> Boundedness:
        """It never ends."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[ControlledSplit]:
        """One split for each reader."""
        readers = context.current_parallelism()
        return OwnedSplitEnumerator(context, [ControlledSplit(index, readers) for index in range(readers)])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[ControlledSplit]
    ) -> OwnedSplitEnumerator[ControlledSplit]:
        """Goes on with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> ControlledReader:
        """A reader of one split."""
        return ControlledReader(context, self._traffic, Control(self._control))


class ControlledReader(SourceReader[ControlledSplit]):
    """Emits ranges, as the number sequence does, so that the source costs next to nothing."""

    def __init__(self, context: ReaderContext, traffic: KeyTraffic, control: Control) -> None:
        self._context = context
        self._traffic = traffic
        self._control = control
        self._split: ControlledSplit | None = None
        self._position = 0

    def start(self) -> None:
        """Asks for its split unless it was restored."""
        if self._split is None:
            self._context.send_split_request()

    def add_splits(self, splits: Sequence[ControlledSplit]) -> None:
        """Takes the split."""
        (self._split,) = splits
        self._position = self._split.position

    def notify_no_more_splits(self) -> None:
        """One split is all it gets anyway."""

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits what is permitted now."""
        split, control = self._split, self._control
        if control.take_fault():
            raise InjectedFault("told to fail")
        if split is None:
            return InputStatus.NOTHING_AVAILABLE
        permitted = min(control.limit - self._position, max_records)
        if permitted <= 0:
            return InputStatus.NOTHING_AVAILABLE
        numbers = self._traffic.numbers(split.index, split.splits, self._position, permitted)
        self._position += len(numbers)
        control.note_position(split.index, self._position)
        output.collect(split.split_id, numbers)
        return InputStatus.MORE_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[ControlledSplit]:
        """The split from its next record on."""
        return [] if self._split is None else [replace(self._split, position=self._position)]

    def available_at(self) -> float | None:
        """Soon: the limit may have been raised."""
        return None if self._split is None else time.monotonic() + _PAUSE_S

    def close(self) -> None:
        """Lets go of the control."""
        self._control.close()


_RECORDS, _FIRST_NS, _FIRST_TOTAL, _PID, _ATTEMPT, _OUTPUT_SLOTS = range(6)


class NotingWriter(SinkWriter[Any]):
    """Counts records, notes when the first came, and takes its time if it is to be slow."""

    def __init__(self, directory: Path, attempt: int, delay_s: float) -> None:
        self._numbers = _Numbers(directory / uuid.uuid4().hex, _OUTPUT_SLOTS, create=True)
        self._slots = self._numbers.slots
        self._slots[_PID] = os.getpid()
        self._slots[_ATTEMPT] = attempt
        self._delay_s = delay_s

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Drops the records."""
        slots = self._slots
        if not slots[_RECORDS]:
            slots[_FIRST_NS] = time.time_ns()
            slots[_FIRST_TOTAL] = values[0][1] if isinstance(values[0], tuple) else 0
        if self._delay_s:
            for _ in values:
                time.sleep(self._delay_s)
                slots[_RECORDS] += 1
        else:
            slots[_RECORDS] += len(values)

    def close(self) -> None:
        """Lets go of the file."""
        self._numbers.close()


class NotingSink(Sink):
    """Drops records; what it noted of them is in files of a directory."""

    name = "Noting Sink"

    def __init__(self, directory: Path, delay_s: float = 0.0) -> None:
        self._directory = directory
        self._delay_s = delay_s

    def create_writer(self, context: WriterContext) -> NotingWriter:
        """One writer per subtask and attempt, with a file of its own."""
        return NotingWriter(self._directory, context.attempt_number, self._delay_s)


@dataclass(frozen=True)
class _Output:
    records: int
    first_s: float
    first_total: int
    pid: int
    attempt: int


class Outputs:
    """What the writers of a job noted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def _read(self) -> list[_Output]:
        noted = []
        for path in self.directory.iterdir():
            data = path.read_bytes()
            if len(data) == 8 * _OUTPUT_SLOTS:
                slots = memoryview(data).cast("q")
                first_s, total = slots[_FIRST_NS] / 1e9, slots[_FIRST_TOTAL]
                noted.append(_Output(slots[_RECORDS], first_s, total, slots[_PID], slots[_ATTEMPT]))
        return noted

    def records(self) -> int:
        """Records written by all writers."""
        return sum(output.records for output in self._read())

    def latest_attempt(self) -> int:
        """The last attempt of the job that opened writers; -1 if none has."""
        return max((output.attempt for output in self._read()), default=-1)

    def pids(self) -> list[int]:
        """Processes of the last attempt."""
        noted, latest = self._read(), self.latest_attempt()
        return sorted({output.pid for output in noted if output.attempt == latest})

    def first_output(self, attempt: int) -> float | None:
        """When the first record of this or a later attempt was written, as time.time()."""
        times = [output.first_s for output in self._read() if output.attempt >= attempt and output.records]
        return min(times, default=None)

    def least_first_total(self) -> int:
        """Of the totals that the writers' first records had, the least."""
        return min(output.first_total for output in self._read() if output.records)
