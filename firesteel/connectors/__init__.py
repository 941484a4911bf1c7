"""Sources and sinks that come with Firesteel."""

from firesteel.connectors.collect_sink import CollectSink
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.connectors.discarding_sink import DiscardingSink
from firesteel.connectors.file_sink import (
    BucketAssigner,
    DefaultRollingPolicy,
    FileSink,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)
from firesteel.connectors.number_sequence import NumberSequenceSource
from firesteel.connectors.parquet import ParquetSource
from firesteel.connectors.print_sink import PrintSink
from firesteel.connectors.rate_limiter import RateLimiterStrategy
from firesteel.connectors.socket_source import SocketSource

__all__ = [
    "BucketAssigner",
    "CollectSink",
    "CollectionSource",
    "DataGeneratorSource",
    "DefaultRollingPolicy",
    "DiscardingSink",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "GeneratorFunction",
    "NumberSequenceSource",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "ParquetSource",
    "PrintSink",
    "RateLimiterStrategy",
    "RollingPolicy",
    "SocketSource",
    "StreamFormat",
]
