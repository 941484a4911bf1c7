"""Files as source and sink."""

from firesteel.connectors.files.compaction import FileCompactor, FileCompactStrategy
from firesteel.connectors.files.sink import FileSink, StreamingFileSink
from firesteel.connectors.files.sink_policies import (
    BucketAssigner,
    CheckpointRollingPolicy,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from firesteel.formats.bad_records import BadRecord, BadRecords
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.stream_format import BulkFormat, SimpleStreamFormat, StreamFormat
from firesteel.formats.writers.encoders import CsvEncoder, JsonLinesEncoder, SchemaEncoder

__all__ = [
    "BadRecord",
    "BadRecords",
    "BucketAssigner",
    "BulkFormat",
    "CheckpointRollingPolicy",
    "CheckpointedPosition",
    "CsvEncoder",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
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
    "StreamingFileSink",
]
