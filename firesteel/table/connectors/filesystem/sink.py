"""The sink of the connector ``filesystem``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from firesteel.common.serialization import Encoder
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.compaction import ConcatFileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_content import BulkContent, RowContent
from firesteel.connectors.files.sink import FileSink
from firesteel.connectors.files.sink_policies import BucketAssigner, CheckpointRollingPolicy, DefaultRollingPolicy
from firesteel.connectors.files.writer import FileSinkWriter
from firesteel.datastream.data_stream import parallelism_of
from firesteel.filesystem.local_paths import to_local_path
from firesteel.filesystem.s3_uploads import S3Object, is_s3_path
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.spi.sink import Committer, SinkWriter, WriterContext
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.format import EncodingFormat
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.filesystem.bulk_files import BulkFiles, Part
from firesteel.table.connectors.filesystem.overwriting import OverwritingCommitter, OverwritingWriter
from firesteel.table.connectors.filesystem.partition_commits import (
    AT_ONCE,
    CommitTrigger,
    PartitionCommitter,
    PartitionCommitWriter,
    PartWatermark,
    PendingPartition,
)
from firesteel.table.connectors.filesystem.partitions import Partitioning
from firesteel.table.connectors.sinks import add_sink
from firesteel.table.runtime.operators.to_records import RecordConverter, ToRecordsOperator, ToRecordsSpec
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["FileSystemTableSink", "Rolling"]


class _ByPartition(BucketAssigner):
    def get_bucket_id(self, element: Part, context: BucketAssigner.Context) -> str:
        return element.bucket


class _Lines(Encoder):
    def encode(self, element: Part, stream: BinaryIO) -> None:
        stream.write(element.payload)


class _LineContent(RowContent):
    slice_records = 1  # a part has many rows


class _ColumnContent(BulkContent):
    slice_records = 1


@dataclass(frozen=True)
class _Parts(RecordConverter):
    """Rows by partition, encoded."""

    row_type: RowType
    partitioning: Partitioning
    format: EncodingFormat | BulkFiles

    def open(self) -> Any:
        names = self.row_type.field_names
        keys = [names.index(key) for key in self.partitioning.keys]
        others = [index for index in range(len(names)) if index not in keys]
        data_type = self.partitioning.data_type(self.row_type)
        files = self.format
        encoder = None if isinstance(files, BulkFiles) else files.create_encoder(data_type)
        schema = columns_schema(data_type)

        def convert(batch: ColumnBatch) -> Sequence[Part]:
            parts = []
            for bucket, rows in self.partitioning.split(batch, keys):
                data = rows.data.select(others)
                if encoder is None:
                    payload: Any = require_pyarrow("SQL").RecordBatch.from_arrays(data.columns, schema=schema)
                else:
                    lines = encoder.encode(ColumnBatch(data, rows.kinds))
                    payload = b"\n".join([*(line for line in lines if line is not None), b""])
                parts.append(Part(bucket, payload))
            return parts

        return convert


@dataclass(frozen=True)
class Rolling:
    """When files are finished."""

    file_size: int = 128 * 1024 * 1024
    rollover_ms: int = 30 * 60_000
    inactivity_ms: int = 30 * 60_000
    check_ms: int = 60_000


class _BulkRolling(CheckpointRollingPolicy):
    def __init__(self, rolling: Rolling) -> None:
        self._rolling = rolling

    def should_roll_on_event(self, size: int) -> bool:
        return size > self._rolling.file_size

    def should_roll_on_processing_time(self, age_ms: int, inactive_ms: int) -> bool:
        return age_ms >= self._rolling.rollover_ms or inactive_ms >= self._rolling.inactivity_ms


class _TableFileSink(FileSink):
    """Marks partitions that are complete, and deletes files that are overwritten."""

    success_file: str | None = None
    trigger = AT_ONCE
    overwrites = False
    is_partitioned = False

    def create_writer(self, context: WriterContext) -> Any:
        return self._wrapped(super().create_writer(context), context, ())

    def restore_writer(self, context: WriterContext, state: list[Any]) -> Any:
        pending = [item for item in state if isinstance(item, PendingPartition)]
        files = [item for item in state if not isinstance(item, PendingPartition)]
        return self._wrapped(super().restore_writer(context, files), context, pending)

    def _wrapped(self, files: FileSinkWriter, context: WriterContext, pending: Sequence[PendingPartition]) -> Any:
        writer: SinkWriter[Any] = files
        if self.success_file is not None:
            assert isinstance(self.base_path, Path)
            writer = PartitionCommitWriter(files, self.base_path, self.trigger, pending, self.clock)
        return OverwritingWriter(writer, context.subtask_index) if self.overwrites else writer

    def create_committer(self) -> Committer[Any]:
        committer = super().create_committer()
        if self.overwrites:
            committer = OverwritingCommitter(committer, self.base_path, self.is_partitioned)
        return committer if self.success_file is None else PartitionCommitter(committer, self.success_file)


@dataclass(frozen=True)
class _WatermarkedSpec(ToRecordsSpec):
    """Makes records of columns, and of watermarks."""

    def create(self, runtime: OperatorRuntime) -> ToRecordsOperator:
        return _WatermarkedOperator(self.converter)


class _WatermarkedOperator(ToRecordsOperator):
    def process_watermark(self, timestamp: int) -> None:
        self.context.emit([PartWatermark(timestamp)], None)
        super().process_watermark(timestamp)


@dataclass(frozen=True)
class FileSystemTableSink(DynamicTableSink):
    """Writes rows into files beneath a path, exactly once."""

    path: str
    format: EncodingFormat | BulkFiles
    partitioning: Partitioning
    rolling: Rolling = Rolling()
    success_file: str | None = None
    """Of partitions that are complete; None if they are not marked."""
    compaction_size: int | None = None
    parallelism: int | None = None
    is_streaming: bool = True
    overwrites: bool = False
    trigger: CommitTrigger = AT_ONCE
    replaces_all: bool = False
    """Whether the files of all partitions are overwritten."""

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.insert_only() if isinstance(self.format, BulkFiles) else self.format.changelog_mode

    def consume(self, stream: Any, context: SinkContext) -> Any:
        parts = _Parts(context.row_type, self.partitioning, self.format)
        trigger, parallelism = self.trigger, self.parallelism
        if self.is_streaming and self.success_file is not None and (trigger.by_partition_time or trigger.delay_ms):
            # one subtask has all rows of a partition, and the watermark of all rows
            parallelism = parallelism or parallelism_of(stream._transformation)
            names = context.row_type.field_names
            selector = ColumnKeySelector(tuple(names.index(key) for key in self.partitioning.keys))
            stream = type(stream)(stream._environment, stream._partition(KeyGroupPartitioner(selector)))
        spec = _WatermarkedSpec(parts) if trigger.by_partition_time else ToRecordsSpec(parts)
        return add_sink(stream, spec, self._sink(context.row_type), context, parallelism)

    def _sink(self, row_type: RowType) -> FileSink:
        rolling = self.rolling
        if isinstance(self.format, BulkFiles):
            content: Any = _ColumnContent(self.format.writer(self.partitioning.data_type(row_type)))
            policy: Any = _BulkRolling(rolling)
        else:
            content = _LineContent(_Lines())
            policy = DefaultRollingPolicy(rolling.file_size, rolling.rollover_ms, rolling.inactivity_ms)
        compaction = None
        if self.compaction_size is not None:
            builder = FileCompactStrategy.builder().set_size_threshold(self.compaction_size)
            compaction = builder.enable_compaction_on_checkpoint(1).build(), ConcatFileCompactor()
        sink = _TableFileSink(
            self.path,
            content,
            bucket_assigner=_ByPartition(),
            rolling_policy=policy,
            bucket_check_interval=rolling.check_ms,
            compaction=compaction,
        )
        sink.success_file = self.success_file
        sink.trigger = self.trigger
        sink.overwrites = self.overwrites
        sink.is_partitioned = bool(self.partitioning.keys) and not self.replaces_all
        return sink

    def with_partition(self, values: dict[str, str]) -> FileSystemTableSink:
        return self  # the values are columns of the rows

    def with_overwrite(self) -> FileSystemTableSink:
        if self.is_streaming:
            raise ValidationError("Streaming mode not support overwrite.", hint="Use batch mode.")
        return replace(self, overwrites=True)

    def replacing_all(self) -> FileSystemTableSink:
        return replace(self.with_overwrite(), replaces_all=True)

    def truncate(self) -> bool:
        root = S3Object.parse(self.path) if is_s3_path(self.path) else to_local_path(self.path)
        # without new files there is nothing that another committer would do
        OverwritingCommitter(FileCommitter(), root, is_partitioned=False).commit([])
        return True

    def as_summary_string(self) -> str:
        return "Filesystem"
