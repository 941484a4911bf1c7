"""Sources and sinks that come with Firesteel."""

from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.connectors.client.discarding_sink import DiscardingSink
from firesteel.connectors.client.print_sink import PrintSink
from firesteel.connectors.client.socket_source import SocketSource
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.connectors.files.sink import (
    BucketAssigner,
    DefaultRollingPolicy,
    FileSink,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)
from firesteel.connectors.generators.collection import CollectionSource
from firesteel.connectors.generators.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.connectors.generators.number_sequence import NumberSequenceSource

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
