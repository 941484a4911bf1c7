"""A source of the whole numbers of a range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SplitEnumeratorContext,
)

__all__ = ["NumberSequenceReader", "NumberSequenceSource", "NumberSequenceSplit", "split_evenly"]


@dataclass(frozen=True)
class NumberSequenceSplit:
    """The numbers from ``position`` up to but not including ``stop``."""

    split_id: str
    position: int
    stop: int


def split_evenly(start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Cuts [start, stop) into at most ``count`` adjoining non-empty ranges whose sizes differ by at most one.

    >>> split_evenly(0, 10, 3)
    [(0, 4), (4, 7), (7, 10)]
    """
    size, longer = divmod(stop - start, count)
    ranges = []
    for index in range(count):
        end = start + size + (1 if index < longer else 0)
        if end > start:
            ranges.append((start, end))
        start = end
    return ranges


class NumberSequenceSource(Source[NumberSequenceSplit]):
    """Emits every whole number from ``start`` to ``end``, both included, in order within each subtask.

    With several readers each gets one contiguous part of the range.
    """

    name: ClassVar[str] = "Sequence Source"
    emits_own_records = True

    def __init__(self, start: int, end: int) -> None:
        for label, value in (("start", start), ("end", end)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidProgramError(f"NumberSequenceSource: {label} must be an int, not {value!r}.")
        if start > end:
            raise InvalidProgramError(
                f"NumberSequenceSource: start ({start}) must not be greater than end ({end}).",
                hint="Both bounds belong to the sequence: NumberSequenceSource(1, 1) emits one number.",
            )
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"NumberSequenceSource({self.start}, {self.end})"

    def get_boundedness(self) -> Boundedness:
        """Always bounded."""
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[NumberSequenceSplit]:
        """One split for each reader, as long as there are numbers enough."""
        ranges = split_evenly(self.start, self.end + 1, context.current_parallelism())
        return OwnedSplitEnumerator(
            context, [NumberSequenceSplit(str(i), start, stop) for i, (start, stop) in enumerate(ranges)]
        )

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[NumberSequenceSplit]
    ) -> OwnedSplitEnumerator[NumberSequenceSplit]:
        """Continues with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> NumberSequenceReader:
        """A reader that emits ranges."""
        return NumberSequenceReader(context)


class NumberSequenceReader(SequentialSplitReader[NumberSequenceSplit]):
    """Emits ``range`` objects: no number exists before an operator asks for it."""

    _position = 0

    def open_split(self, split: NumberSequenceSplit) -> None:
        """Begins at the split's position."""
        self._position = split.position

    def read_split(self, split: NumberSequenceSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits the next numbers as one range."""
        begin = self._position
        end = min(begin + max_records, split.stop)
        self._position = end
        output.collect(split.split_id, range(begin, end))
        return InputStatus.END_OF_INPUT if end == split.stop else InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: NumberSequenceSplit) -> NumberSequenceSplit:
        """The split from the next number on."""
        return replace(split, position=self._position)
