"""Splits and events of a HybridSource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.spi.source import Source

__all__ = [
    "HybridSourceSplit",
    "NoMoreSplitsEvent",
    "SourceReaderFinishedEvent",
    "SourceReaderStartedEvent",
    "SwitchSourceEvent",
    "WrappedEvent",
    "split_id_of",
]


def split_id_of(index: int, split_id: str) -> str:
    """The id of a split of the source with this index, unlike any other source's."""
    return f"{index}-{split_id}"


@dataclass(frozen=True)
class HybridSourceSplit:
    """A split of one of the sources, which comes along if it was made when its turn came."""

    source_index: int
    split: Any
    source: Source[Any] | None = None

    @property
    def split_id(self) -> str:
        """The split's own id with the source's index before it."""
        return split_id_of(self.source_index, self.split.split_id)


@dataclass(frozen=True)
class SourceReaderStartedEvent:
    """A reader requests the source to read. (Only running readers send this.)"""


@dataclass(frozen=True)
class SourceReaderFinishedEvent:
    """A reader has read all its splits of a source that is not the last, and gets no more of them."""

    source_index: int


@dataclass(frozen=True)
class SwitchSourceEvent:
    """This is the source to read; it comes along if it was made when its turn came."""

    source_index: int
    source: Source[Any] | None


@dataclass(frozen=True)
class NoMoreSplitsEvent:
    """There are no more splits of a source that is not the last."""

    source_index: int


@dataclass(frozen=True)
class WrappedEvent:
    """An event of one of the sources, of its reader or its enumerator."""

    source_index: int
    event: Any
