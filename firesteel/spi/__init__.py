"""What a connector implements: sources, sinks and their parts."""

from firesteel.spi.metrics import ConnectorMetrics
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

__all__ = [
    "Boundedness",
    "Committer",
    "ConnectorMetrics",
    "DeliveryGuarantee",
    "InputStatus",
    "ReaderContext",
    "ReaderOutput",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "WriterContext",
]
