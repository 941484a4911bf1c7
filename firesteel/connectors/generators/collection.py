"""A source of the elements of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.connectors.generators.number_sequence import split_evenly
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SplitEnumeratorContext,
)

__all__ = ["CollectionReader", "CollectionSource", "CollectionSplit"]


@dataclass(frozen=True)
class CollectionSplit:
    """The elements at indexes from ``position`` up to but not including ``stop``."""

    split_id: str
    position: int
    stop: int


class CollectionSource(Source[CollectionSplit]):
    """Emits the elements of a list in order.

    The whole list is one split, so that order is kept at any parallelism; with ``parallel`` each reader gets
    one contiguous part instead. The elements travel with the program: this is for examples and tests.
    """

    name: ClassVar[str] = "Collection Source"

    def __init__(self, elements: Iterable[Any], parallel: bool = False) -> None:
        self.elements = list(elements)
        self.parallel = parallel

    def __repr__(self) -> str:
        return f"CollectionSource({len(self.elements)} elements{', parallel' if self.parallel else ''})"

    def get_boundedness(self) -> Boundedness:
        """Always bounded."""
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[CollectionSplit]:
        """One split, or one for each reader."""
        count = context.current_parallelism() if self.parallel else 1
        ranges = split_evenly(0, len(self.elements), count)
        return OwnedSplitEnumerator(
            context, [CollectionSplit(str(i), start, stop) for i, (start, stop) in enumerate(ranges)]
        )

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[CollectionSplit]
    ) -> OwnedSplitEnumerator[CollectionSplit]:
        """Continues with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> CollectionReader:
        """A reader of this source's own list."""
        return CollectionReader(context, self.elements)


class CollectionReader(SequentialSplitReader[CollectionSplit]):
    """Emits slices of a list."""

    def __init__(self, context: ReaderContext, elements: list[Any]) -> None:
        super().__init__(context)
        self._elements = elements
        self._position = 0

    def open_split(self, split: CollectionSplit) -> None:
        """Begins at the split's position."""
        self._position = split.position

    def read_split(self, split: CollectionSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits the next slice."""
        begin = self._position
        end = min(begin + max_records, split.stop)
        self._position = end
        output.collect(split.split_id, self._elements[begin:end])
        return InputStatus.END_OF_INPUT if end == split.stop else InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: CollectionSplit) -> CollectionSplit:
        """The split from the next element on."""
        return replace(split, position=self._position)
