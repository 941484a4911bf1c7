"""The source of the connector ``filesystem``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import ByteArraySchema
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.files.source import FileSource
from firesteel.filesystem.stores import get_filesystem
from firesteel.formats.csv.file import CsvReaderFormat, CsvRowReader
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import BulkFormat, StreamFormat
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.source import ReaderOutput
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.format import DecodingFormat
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.filesystem.bulk_files import BulkFiles
from firesteel.table.connectors.filesystem.partitions import Partitioning, values_of_path
from firesteel.table.connectors.filesystem.spark_files import spark_read
from firesteel.table.formats.csv.factory import CsvDecodingFormat
from firesteel.table.runtime.decoding_source import BatchDecoder, DecodingSource
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import arrow_type, columns_schema, to_column
from firesteel.types.logical import (
    BigIntType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    RowType,
    VarCharType,
)

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["METADATA", "FileSystemTableSource", "FilesDecoder"]

METADATA: dict[str, tuple[type[LogicalType], ...]] = {
    "file.path": (VarCharType,),
    "file.name": (VarCharType,),
    "file.size": (BigIntType, IntType),
    "file.modification-time": (LocalZonedTimestampType,),
}
"""The metadata that can be read, and the types of its columns."""


class _CsvLines(CsvReaderFormat):
    """The rows of CSV files as text."""

    def open_split(self, source: SplitInput) -> FormatReader:
        return _CsvLineReader(source, self)


class _CsvLineReader(CsvRowReader):
    def decode(self, batch: FetchedBatch, items: Sequence[Any], first: int, output: ReaderOutput) -> Sequence[Any]:
        return [item for item in items if item] if "" in items else items


class FilesDecoder(BatchDecoder):
    """Makes columns of the messages or columns of a file, and adds those of its partition."""

    def __init__(self, source: FileSystemTableSource) -> None:
        self._source = source
        self._of_path: dict[str, dict[str, Any]] = {}

    def open(self) -> None:
        source = self._source
        files = source.format
        self._decoder = None if isinstance(files, BulkFiles) else files.create_decoder(source.data_type)

    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        pa = require_pyarrow("SQL")
        if self._decoder is None:
            assert isinstance(values, ColumnBatch)
            data, kinds = _cast(values.data, self._source.data_type), None
        else:
            decoded = self._decoder.decode(values)
            data, kinds = decoded.data, decoded.kinds
        rows = data.num_rows
        if self._source.type == self._source.data_type:
            return ColumnBatch(data, kinds)
        constants = self._constants(split_id)
        names = list(self._source.data_type.field_names)
        columns = []
        for part in self._source.type.fields:
            if part.name in names:
                columns.append(data.column(names.index(part.name)))
            else:
                columns.append(pa.repeat(constants[part.name], rows))
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=columns_schema(self._source.type)), kinds)

    def _constants(self, split_id: str) -> dict[str, Any]:
        if split_id not in self._of_path:
            # a split is named by a number, the path and where it begins
            path = split_id.split(":", 1)[1].rsplit(":", 1)[0]
            source, texts = self._source, values_of_path(path)
            found: dict[str, Any] = {}
            for part in source.type.fields:
                if part.name in source.metadata:
                    value: Any = _metadata(path, source.metadata[part.name])
                elif part.name in source.partitioning.keys:
                    value = source.partitioning.value(texts, part.name)
                else:
                    continue
                found[part.name] = to_column([value], part.type)[0]
            self._of_path = {split_id: found}
        return self._of_path[split_id]


def _metadata(path: str, key: str) -> Any:
    """The value of a column of metadata for all rows of a file."""
    if key == "file.path":
        return path
    if key == "file.name":
        return path.rsplit("/", 1)[-1]
    status = get_filesystem(path).status(path)
    if key == "file.size":
        return status.size
    if status.modified_ms is None:
        raise InvalidProgramError(f"The store of {path} does not say when files were written.")
    return status.modified_ms * 1_000_000


def _cast(data: Any, row_type: RowType) -> Any:
    columns = []
    for part in row_type.fields:
        column, wanted = data.column(part.name), arrow_type(part.type)
        columns.append(column if column.type == wanted else column.cast(wanted, safe=False))
    return require_pyarrow("SQL").RecordBatch.from_arrays(columns, schema=columns_schema(row_type))


@dataclass(frozen=True)
class FileSystemTableSource(ScanTableSource):
    """All rows of the files beneath a path."""

    path: str
    type: RowType
    format: DecodingFormat | BulkFiles
    partitioning: Partitioning
    monitor_interval_ms: int | None = None
    metadata_columns: tuple[tuple[str, str], ...] = ()
    supports_watermark_push_down = True

    @property
    def metadata(self) -> dict[str, str]:
        """The key of metadata of each such column."""
        return dict(self.metadata_columns)

    @property
    def data_type(self) -> RowType:
        """The columns that are in the files."""
        others = {*self.partitioning.keys, *self.metadata}
        return RowType([part for part in self.type.fields if part.name not in others], nullable=False)

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return self.monitor_interval_ms is None

    @property
    def changelog_mode(self) -> Any:
        return super().changelog_mode if isinstance(self.format, BulkFiles) else self.format.changelog_mode

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        files = self._file_format()
        if isinstance(files, BulkFormat):
            builder = FileSource.for_bulk_file_format(files, self.path)
        else:
            builder = FileSource.for_record_stream_format(files, self.path)
        if self.monitor_interval_ms is not None:
            builder = builder.monitor_continuously(self.monitor_interval_ms)
        inner = builder.build()
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        return context.environment.from_source(DecodingSource(inner, FilesDecoder(self)), strategy, context.name)

    def _file_format(self) -> BulkFormat | StreamFormat:
        if isinstance(self.format, BulkFiles):
            return self.format.reader(self.data_type)
        if isinstance(self.format, CsvDecodingFormat):
            return _CsvLines(self.format.options.schema)
        return StreamFormat.schema_line_format(ByteArraySchema())

    def to_dataframe(self, session: Any) -> Any:
        read = spark_read(self)
        return None if isinstance(read, str) else read.dataframe(session)

    def spark_reader(self, session: Any) -> str:
        read = spark_read(self)
        return f"a job of Firesteel, since {read}" if isinstance(read, str) else read.describe()

    def with_projection(self, columns: Sequence[int]) -> FileSystemTableSource | None:
        if not columns:
            return None
        kept = RowType([self.type.fields[column] for column in columns], nullable=False)
        changed = replace(self, type=kept)
        # rows have to be counted in the files
        return changed if changed.data_type.fields else None

    def with_metadata(self, keys: Sequence[str], produced_type: RowType) -> FileSystemTableSource | None:
        unknown = [key for key in keys if key not in METADATA]
        if unknown:
            raise ValidationError(
                f"Invalid metadata key '{unknown[0]}' of connector 'filesystem'.", hint=f"Known: {', '.join(METADATA)}."
            )
        columns = produced_type.fields[len(produced_type.fields) - len(keys) :]
        for column, key in zip(columns, keys, strict=True):
            if not isinstance(column.type, METADATA[key]):
                known = " or ".join(kind().as_summary_string() for kind in METADATA[key])
                raise ValidationError(f"A column of metadata '{key}' must be {known}.")
        names = [column.name for column in columns]
        return replace(self, type=produced_type, metadata_columns=tuple(zip(names, keys, strict=True)))

    def as_summary_string(self) -> str:
        return "Filesystem"
