"""The interfaces of sources and sinks, and base classes for user-defined ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from firesteel.connectors.base import AtLeastOnceSink, IteratorSource, TwoPhaseCommitSink
from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream

__all__ = [
    "AtLeastOnceSink",
    "Boundedness",
    "Committer",
    "DeliveryGuarantee",
    "InputStatus",
    "IteratorSource",
    "ReaderContext",
    "ReaderOutput",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "StreamTransformer",
    "SupportsPreprocessing",
    "TwoPhaseCommitSink",
    "WriterContext",
]


class StreamTransformer(ABC):
    """Prepares a stream for a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """Returns the stream that the sink consumes."""


class SupportsPreprocessing(ABC):
    """A sink that transforms its input stream."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Returns the transformer of the stream, or None."""
