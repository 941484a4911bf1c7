"""The sink of the connector ``filesystem``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from firesteel.connectors.files.compaction import ConcatFileCompactor, FileCompactStrategy
from firesteel.connectors.files.part_content import BulkContent, RowContent
from firesteel.connectors.files.sink import FileSink
from firesteel.connectors.files.sink_policies import BucketAssigner, CheckpointRollingPolicy, DefaultRollingPolicy
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.sink import Committer
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.format import EncodingFormat
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.filesystem.partitions import Partitioning
from firesteel.table.connectors.sinks import add_sink
from firesteel.table.runtime.operators.to_records import RecordConverter
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["FileSystemTableSink", "Rolling"]

_GROUP_BYTES = 32 * 1024 * 1024


class _Part(NamedTuple):
    """Rows of one partition."""

    bucket: str
    payload: Any
    """Lines, or a RecordBatch."""


class _ByPartition(BucketAssigner):
    def get_bucket_id(self, element: _Part, context: BucketAssigner.Context) -> str:
        return element.bucket


class _Lines(Encoder):
    def encode(self, element: _Part, stream: BinaryIO) -> None:
        stream.write(element.payload)


class _LineContent(RowContent):
    slice_records = 1  # a part has many rows


class _ColumnContent(BulkContent):
    slice_records = 1


@dataclass(frozen=True)
class _ParquetColumns(BulkWriterFactory):
    compression: str

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _ParquetColumnWriter(stream, self.compression)


class _ParquetColumnWriter(BulkWriter):
    def __init__(self, stream: BinaryIO, compression: str) -> None:
        self._stream = stream
        self._compression = compression
        self._writer: Any = None
        self._batches: list[Any] = []
        self._bytes = 0

    def add_element(self, element: _Part) -> None:
        self._batches.append(element.payload)
        self._bytes += element.payload.nbytes
        if self._bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._batches:
            return
        pa = require_pyarrow("SQL")
        import pyarrow.parquet

        table = pa.Table.from_batches(self._batches)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._stream, table.schema, compression=self._compression)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._batches, self._bytes = [], 0

    def finish(self) -> None:
        self.flush()
        if self._writer is not None:
            self._writer.close()


@dataclass(frozen=True)
class _Parts(RecordConverter):
    """Rows by partition, encoded."""

    row_type: RowType
    partitioning: Partitioning
    format: EncodingFormat | None

    def open(self) -> Any:
        names = self.row_type.field_names
        keys = [names.index(key) for key in self.partitioning.keys]
        others = [index for index in range(len(names)) if index not in keys]
        data_type = RowType([self.row_type.fields[index] for index in others], nullable=False)
        encoder = None if self.format is None else self.format.create_encoder(data_type)
        schema = columns_schema(data_type)

        def convert(batch: ColumnBatch) -> Sequence[_Part]:
            parts = []
            for bucket, rows in self.partitioning.split(batch, keys):
                data = rows.data.select(others)
                if encoder is None:
                    payload: Any = require_pyarrow("SQL").RecordBatch.from_arrays(data.columns, schema=schema)
                else:
                    lines = encoder.encode(ColumnBatch(data, rows.kinds))
                    payload = b"\n".join([*(line for line in lines if line is not None), b""])
                parts.append(_Part(bucket, payload))
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


class _CommittingFileSink(FileSink):
    """Marks partitions whose files have been committed."""

    success_file: str | None = None

    def create_committer(self) -> Committer[Any]:
        committer = super().create_committer()
        return committer if self.success_file is None else _PartitionCommitter(committer, self.success_file)


class _PartitionCommitter(Committer[Any]):
    """Commits files, then writes a file that says so into each of their partitions."""

    def __init__(self, files: Committer[Any], success_file: str) -> None:
        self._files = files
        self._success_file = success_file
        self.finish = files.finish  # type: ignore[method-assign]

    def commit(self, committables: Sequence[Any]) -> None:
        self._files.commit(committables)
        self._mark(committables)

    def recommit(self, committables: Sequence[Any]) -> None:
        self._files.recommit(committables)
        self._mark(committables)

    def _mark(self, committables: Sequence[Any]) -> None:
        for directory in {Path(pending.final_path).parent for pending in committables}:
            directory.joinpath(self._success_file).touch()


@dataclass(frozen=True)
class FileSystemTableSink(DynamicTableSink):
    """Writes rows into files beneath a path, exactly once."""

    path: str
    format: EncodingFormat | None
    """None for Parquet."""
    partitioning: Partitioning
    rolling: Rolling = Rolling()
    success_file: str | None = None
    compaction_size: int | None = None
    compression: str = "snappy"
    parallelism: int | None = None

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.insert_only() if self.format is None else self.format.changelog_mode

    def consume(self, stream: Any, context: SinkContext) -> Any:
        parts = _Parts(context.row_type, self.partitioning, self.format)
        return add_sink(stream, parts, self._sink(), context, self.parallelism)

    def _sink(self) -> FileSink:
        rolling = self.rolling
        if self.format is None:
            content: Any = _ColumnContent(_ParquetColumns(self.compression))
            policy: Any = _BulkRolling(rolling)
        else:
            content = _LineContent(_Lines())
            policy = DefaultRollingPolicy(rolling.file_size, rolling.rollover_ms, rolling.inactivity_ms)
        compaction = None
        if self.compaction_size is not None:
            builder = FileCompactStrategy.builder().set_size_threshold(self.compaction_size)
            compaction = builder.enable_compaction_on_checkpoint(1).build(), ConcatFileCompactor()
        sink = _CommittingFileSink(
            self.path,
            content,
            bucket_assigner=_ByPartition(),
            rolling_policy=policy,
            bucket_check_interval=rolling.check_ms,
            compaction=compaction,
        )
        sink.success_file = self.success_file
        return sink

    def as_summary_string(self) -> str:
        return "Filesystem"
