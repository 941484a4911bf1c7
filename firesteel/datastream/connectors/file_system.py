"""Files as source and sink."""

from firesteel.connectors.bad_records import BadRecord, BadRecords
from firesteel.connectors.encoders import CsvEncoder, JsonLinesEncoder, SchemaEncoder
from firesteel.connectors.file_formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.connectors.file_formats.stream_format import BulkFormat, SimpleStreamFormat, StreamFormat
from firesteel.connectors.file_sink import FileSink
from firesteel.connectors.file_sink_policies import (
    BucketAssigner,
    CheckpointRollingPolicy,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)

__all__ = [
    "BadRecord",
    "BadRecords",
    "BucketAssigner",
    "BulkFormat",
    "CheckpointRollingPolicy",
    "CheckpointedPosition",
    "CsvEncoder",
    "DefaultRollingPolicy",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSourceSplit",
    "FileSplitAssignerProvider",
    "JsonLinesEncoder",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "SchemaEncoder",
    "SimpleStreamFormat",
    "StreamFormat",
]
