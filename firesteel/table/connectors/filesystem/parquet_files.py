"""Tables of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from firesteel.common.serialization import BulkWriterFactory
from firesteel.config.option import ConfigOptions
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.parquet.file import ParquetFormat, ParquetReader
from firesteel.formats.stream_format import BulkFormat
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.source import ReaderOutput
from firesteel.table.connectors.filesystem.bulk_files import BatchWriter, BulkFiles, compression_of, writing_with
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import RowType

__all__ = ["COMPRESSION", "ParquetFiles"]

COMPRESSION = ConfigOptions.key("parquet.compression").string_type().default_value("SNAPPY")
_COMPRESSIONS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "LZ4": "lz4", "BROTLI": "brotli"}


class _Columns(ParquetFormat):
    """The rows of Parquet files as column batches."""

    fills_missing = True

    def open_split(self, source: SplitInput) -> FormatReader:
        return _ColumnReader(self, source)


class _ColumnReader(ParquetReader):
    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        return ColumnBatch(batch.items)


class _Writer(BatchWriter):
    def __init__(self, stream: BinaryIO, compression: str) -> None:
        super().__init__(stream)
        self._compression = compression
        self._writer: Any = None

    def write(self, batches: Sequence[Any]) -> None:
        pa = require_pyarrow("SQL")
        import pyarrow.parquet

        table = pa.Table.from_batches(batches)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self.stream, table.schema, compression=self._compression)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()


@dataclass(frozen=True)
class ParquetFiles(BulkFiles):
    """Parquet files."""

    compression: str = "snappy"
    name: ClassVar[str] = "parquet"

    @staticmethod
    def of(options: Mapping[str, str]) -> ParquetFiles:
        """The format with the options of a table."""
        return ParquetFiles(compression_of(options, COMPRESSION, _COMPRESSIONS))

    def reader(self, row_type: RowType) -> BulkFormat:
        return _Columns(row_type.field_names or None)

    def writer(self, row_type: RowType) -> BulkWriterFactory:
        return writing_with(_Writer, self.compression)
